package engine

import (
	"slices"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/mono"
	"github.com/tidegatedb/tidegate/internal/route"
)

// Status is the freshness table for people and their tools: what is known of the
// cluster and of each node now.
type Status struct {
	Cluster string
	// Epoch is the history of the newest primary that was seen.
	Epoch tidegate.Epoch
	// Primary names the primary, "" when none is known.
	Primary string
	// Conflict tells that more than one node says that it is the primary.
	Conflict bool
	// Shown is up to where the primary has been proven to show every commit.
	Shown tidegate.Position
	// Floor is what a replica must have for any read of this process, as far as it is
	// known; zero without a floor. See [Core.SetFloor].
	Floor tidegate.Position
	// FallbackLimit is how many reads may be on the primary for want of a replica now, and
	// below one the part of the time in which one may; zero without a limit. FallbacksNow
	// are, FallbacksQueued wait for room.
	FallbackLimit                 float64
	FallbacksNow, FallbacksQueued int
	// FallbackShare is the part of the reads that wanted the primary for want of a replica
	// within the last FallbackWindow, of those that replicas are there for. FallbacksHigh
	// tells that it was above Config.FallbackShare, and has not been below half of that
	// since.
	FallbackShare float64
	FallbacksHigh bool
	// Rollout says which reads are routed.
	Rollout tidegate.Rollout
	// Nodes has an entry for each node.
	Nodes []NodeStatus
	// Classes has an entry for each relaxed class whose reads went to a replica, by name;
	// those beyond a hundred share the entry "other".
	Classes []ClassStatus
	// Stats counts what happened since the start.
	Stats Stats
}

// NodeStatus is one node's part of a [Status].
type NodeStatus struct {
	Node string
	Zone string
	// Tags are the node's tags; Dedicated tells that only classes that ask for one of them
	// read there.
	Tags      []string
	Dedicated bool
	// Role is the node's role, RoleUnknown before it has answered.
	Role tidegate.Role
	// Usable tells that reads may go there: it answers, is a replica and belongs to
	// the cluster's history.
	Usable bool
	// Fence says why a node that answers is not used; FenceNone that nothing speaks against
	// it.
	Fence tidegate.Fence
	// Epoch is the node's history, as far as it is known.
	Epoch tidegate.Epoch
	// Incarnation is the node's life.
	Incarnation tidegate.Incarnation
	// Applied is what it has applied.
	Applied tidegate.Position
	// Lag is how far a usable replica was behind the primary's last known
	// position, in the engine's unit, when LagKnown says so.
	Lag      uint64
	LagKnown bool
	// Staleness is how old a usable replica's state can be at most, when
	// StalenessKnown says so.
	Staleness      time.Duration
	StalenessKnown bool
	// Delay is an estimate of how long a replica takes to apply what the primary has;
	// zero while nothing slower than a look was seen. Waits are planned by it.
	Delay time.Duration
	// ProbeAge is how long ago the newest answered probe was sent, negative when
	// none was answered.
	ProbeAge time.Duration
	// Err is why the newest probe failed, nil when it did not; FailedFor is how long
	// probes have been failing.
	Err       error
	FailedFor time.Duration
	// Ejection says why reads leave the node out, and Ejected for how long;
	// EjectionNone that they do not. Share is the part of its weight that a node has
	// which returns: 1 but for a moment.
	Ejection tidegate.EjectionReason
	Ejected  time.Duration
	Share    float64
	// Took is how long a read takes on the replica, the median of those timed in the last
	// ten seconds, zero without any. Slow tells that reads go around it because that is more
	// than three times what they take on another.
	Took time.Duration
	Slow bool
	// Flying is the number of reads in flight.
	Flying int64
	// Probes and DemandProbes count probes by the clock and asked for.
	Probes, DemandProbes uint64
}

// Status returns what is known now.
func (c *Core) Status() Status {
	t, now := c.watcher.Table(), mono.Now()
	s := Status{Cluster: c.cfg.Cluster, Epoch: t.Epoch, Conflict: t.Conflict, Shown: t.Shown, Floor: c.router.Floor(), Rollout: c.router.Rollout(), Stats: c.Stats(), Classes: c.ages.status()}
	s.FallbackLimit, s.FallbacksNow, s.FallbacksQueued = c.router.FallbackLimit()
	s.FallbackShare, s.FallbacksHigh = c.router.FallbackShare()
	if t.Primary != freshness.NoNode {
		s.Primary = c.NodeName(t.Primary)
	}
	for i := range t.Nodes {
		if m := c.members.get(i); m != nil {
			s.Nodes = append(s.Nodes, c.nodeStatus(t, i, m, now))
		}
	}
	return s
}

func (c *Core) nodeStatus(t *freshness.Table, i int, m *Node, now int64) NodeStatus {
	x := &t.Nodes[i]
	n := NodeStatus{Node: m.Name, Zone: m.Zone, Tags: slices.Clone(m.Tags), Dedicated: m.Dedicated, Usable: x.Usable, Fence: x.Fence, Epoch: x.Epoch, ProbeAge: -1, Err: x.Err, Flying: c.router.Flying(i)}
	n.Slow, n.Took = c.router.Slow(i, now)
	n.Probes, n.DemandProbes = c.watcher.Counts(i)
	var out route.Ejection
	if out, n.Share = c.router.Ejected(i); out.Why != tidegate.EjectionNone {
		n.Ejection, n.Ejected = out.Why, time.Duration(now-out.Since)
	}
	if x.Err != nil {
		n.FailedFor = time.Duration(now - x.FailedSince)
	}
	if x.Obs == nil {
		return n
	}
	n.Role, n.Incarnation, n.Applied, n.ProbeAge = x.Obs.Role, x.Incarnation, x.Applied, time.Duration(now-x.Sent)
	n.Lag, n.LagKnown = t.Lag(i)
	n.Delay = time.Duration(x.Delay)
	if x.Current != 0 {
		n.Staleness, n.StalenessKnown = time.Duration(now-x.Current), true
	}
	return n
}
