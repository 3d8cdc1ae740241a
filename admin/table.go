package admin

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

type tablePage struct {
	Clusters []cluster `json:"clusters"`
}

type cluster struct {
	Cluster  string  `json:"cluster"`
	Epoch    *epoch  `json:"epoch"`
	Primary  *string `json:"primary"`
	Conflict bool    `json:"conflict"`
	// Shown is up to where the primary has been proven to show every commit.
	Shown *string `json:"shown"`
	// Floor is what a replica must have for any read of this process.
	Floor   *string `json:"floor"`
	Rollout string  `json:"rollout"`
	// FallbackLimit is how many reads may be on the primary for want of a replica now, null
	// without a limit; FallbackShare is the part of the reads that wanted to be lately.
	FallbackLimit   *float64 `json:"fallback_limit"`
	FallbacksNow    int      `json:"fallbacks_in_flight"`
	FallbacksQueued int      `json:"fallbacks_queued"`
	FallbackShare   float64  `json:"fallback_share_ratio"`
	FallbacksHigh   bool     `json:"fallbacks_high"`
	Nodes           []node   `json:"nodes"`
	Stats           stats    `json:"stats"`
}

type node struct {
	Node string  `json:"node"`
	Zone *string `json:"zone"`
	// Tags are what classes require or prefer; a dedicated node is read by those only.
	Tags      []string `json:"tags"`
	Dedicated bool     `json:"dedicated"`
	Role      *string  `json:"role"`
	Usable    bool     `json:"usable"`
	// Fence is why the node is not used although it answers.
	Fence       *string `json:"fence"`
	Epoch       *epoch  `json:"epoch"`
	Incarnation *string `json:"incarnation"`
	Applied     *string `json:"applied"`
	// Lag is in the engine's unit.
	Lag         *uint64  `json:"lag_engine_units"`
	StalenessMS *float64 `json:"staleness_ms"`
	// ApplyDelayMS estimates how long it takes to apply what the primary has, null
	// while nothing slower than a look was seen.
	ApplyDelayMS *float64 `json:"apply_delay_ms"`
	ProbeAgeMS   *float64 `json:"probe_age_ms"`
	Error        *string  `json:"error"`
	FailedForMS  *float64 `json:"failed_for_ms"`
	ReadsFlying  int64    `json:"reads_in_flight"`
	// Ejection is why reads leave the node out, for EjectedForMS, null where they do not;
	// Share is the part of its weight that it has.
	Ejection     *string  `json:"ejection"`
	EjectedForMS *float64 `json:"ejected_for_ms"`
	Share        float64  `json:"share_ratio"`
	// ReadMS is the median of the reads that were timed lately, null without any. Reads go
	// around a replica that is slow.
	ReadMS       *float64 `json:"read_ms"`
	Slow         bool     `json:"slow"`
	Probes       uint64   `json:"interval_probes_total"`
	DemandProbes uint64   `json:"demand_probes_total"`
}

// stats are counted since the start.
type stats struct {
	Waits             uint64 `json:"waits_total"`
	Fallbacks         uint64 `json:"fallbacks_total"`
	Predicted         uint64 `json:"predicted_total"`
	Queued            uint64 `json:"queued_total"`
	Shed              uint64 `json:"shed_total"`
	Stale             uint64 `json:"stale_total"`
	Suspects          uint64 `json:"suspects_total"`
	Unproven          uint64 `json:"unproven_total"`
	Refused           uint64 `json:"refused_total"`
	Sessionless       uint64 `json:"sessionless_reads_total"`
	SessionlessWrites uint64 `json:"sessionless_writes_total"`
	HistoryChanged    uint64 `json:"history_changed_total"`
	// Verdicts are what became of what sessions must see of another history.
	Verdicts      map[string]uint64 `json:"verdicts_total"`
	Shadowed      uint64            `json:"shadowed_total"`
	ShadowReplica uint64            `json:"shadow_replica_total"`
	// Retries are by cause; all causes are there.
	Retries      map[string]uint64 `json:"retries_total"`
	Probes       uint64            `json:"interval_probes_total"`
	DemandProbes uint64            `json:"demand_probes_total"`
}

func (h *handler) table(_ *http.Request, q url.Values) (any, *problem) {
	sources, p := h.named(q)
	if p != nil {
		return nil, p
	}
	t := tablePage{Clusters: []cluster{}}
	for _, s := range sources {
		t.Clusters = append(t.Clusters, clusterOf(s.Status()))
	}
	return t, nil
}

func clusterOf(s engine.Status) cluster {
	c := cluster{
		Cluster: s.Cluster, Epoch: epochOf(s.Epoch), Primary: text(s.Primary), Conflict: s.Conflict,
		Shown: known(s.Shown.String(), !s.Shown.IsZero()), Floor: known(s.Floor.String(), !s.Floor.IsZero()), Rollout: s.Rollout.String(), Nodes: []node{},
		FallbackLimit: known(s.FallbackLimit, s.FallbackLimit > 0), FallbacksNow: s.FallbacksNow, FallbacksQueued: s.FallbacksQueued,
		FallbackShare: s.FallbackShare, FallbacksHigh: s.FallbacksHigh,
		Stats: stats{
			Waits: s.Stats.Waits, Fallbacks: s.Stats.Fallbacks, Predicted: s.Stats.Predicted,
			Queued: s.Stats.Queued, Shed: s.Stats.Shed, Stale: s.Stats.Stale, Suspects: s.Stats.Suspects, Unproven: s.Stats.Unproven,
			Refused: s.Stats.Refused, Sessionless: s.Stats.Sessionless, SessionlessWrites: s.Stats.SessionlessWrites,
			HistoryChanged: s.Stats.HistoryChanged, Shadowed: s.Stats.Shadowed, ShadowReplica: s.Stats.ShadowReplica, Retries: map[string]uint64{}, Verdicts: map[string]uint64{},
			Probes: s.Stats.Probes, DemandProbes: s.Stats.DemandProbes,
		},
	}
	for i := 1; i < tidegate.RetryCauses; i++ {
		c.Stats.Retries[tidegate.RetryCause(i).String()] = s.Stats.Retries[i]
	}
	for v := tidegate.VerdictNone + 1; int(v) < tidegate.Verdicts; v++ {
		c.Stats.Verdicts[v.String()] = s.Stats.Verdicts[v]
	}
	for i := range s.Nodes {
		c.Nodes = append(c.Nodes, nodeOf(&s.Nodes[i]))
	}
	return c
}

func nodeOf(n *engine.NodeStatus) node {
	answered := n.ProbeAge >= 0
	x := node{
		Node: n.Node, Zone: text(n.Zone), Tags: append([]string{}, n.Tags...), Dedicated: n.Dedicated, Role: known(n.Role.String(), n.Role != 0), Usable: n.Usable, Fence: known(n.Fence.String(), n.Fence != tidegate.FenceNone), Epoch: epochOf(n.Epoch),
		Incarnation: known(fmt.Sprintf("%016x", uint64(n.Incarnation)), n.Incarnation != 0), Applied: known(n.Applied.String(), answered),
		Lag: known(n.Lag, n.LagKnown), StalenessMS: known(millis(n.Staleness), n.StalenessKnown), ProbeAgeMS: known(millis(n.ProbeAge), answered),
		ApplyDelayMS: known(millis(n.Delay), n.Delay > 0), ReadsFlying: n.Flying, Probes: n.Probes, DemandProbes: n.DemandProbes,
		Ejection: known(n.Ejection.String(), n.Ejection != tidegate.EjectionNone), EjectedForMS: known(millis(n.Ejected), n.Ejection != tidegate.EjectionNone),
		Share: n.Share, ReadMS: known(millis(n.Took), n.Took > 0), Slow: n.Slow,
	}
	if n.Err != nil {
		x.Error, x.FailedForMS = text(n.Err.Error()), known(millis(n.FailedFor), true)
	}
	return x
}

// named returns the sources of the parameter cluster, all without it.
func (h *handler) named(q url.Values) ([]Source, *problem) {
	name := q.Get("cluster")
	if name == "" {
		return h.Sources, nil
	}
	var found []Source
	for _, s := range h.Sources {
		if s.Status().Cluster == name {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		return nil, &problem{Status: http.StatusNotFound, Message: "there is no such cluster", Field: "cluster", Next: h.chooseCluster()}
	}
	return found, nil
}

// one returns the one source that the request is about.
func (h *handler) one(q url.Values) (Source, *problem) {
	found, p := h.named(q)
	switch {
	case p != nil:
		return nil, p
	case len(found) == 1:
		return found[0], nil
	case q.Get("cluster") == "":
		return nil, &problem{Status: http.StatusBadRequest, Message: "no cluster is named, and there is not exactly one", Field: "cluster", Next: h.chooseCluster()}
	}
	return nil, &problem{
		Status: http.StatusConflict, Message: fmt.Sprintf("%d databases of this process are of that cluster", len(found)), Field: "cluster",
		Next: "serve them by one handler each",
	}
}

func (h *handler) chooseCluster() string {
	if len(h.Sources) == 0 {
		return "there is none: fill admin.Config.Sources"
	}
	var names []string
	for _, s := range h.Sources {
		names = append(names, s.Status().Cluster)
	}
	return "use " + strings.Join(names, ", ")
}
