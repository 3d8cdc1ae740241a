package promgate

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// scraped are what is found out at each scrape, most of it from the status of a database.
type scraped struct {
	up, usable, role, probeAge, applyDelay, flying, demandProbes, ejected, fenced, slow *prometheus.Desc
	fallbackLimit, fallbacksNow, fallbacksQueued, fallbackShare                         *prometheus.Desc
	primary, conflict, share, shadow, writesWithoutSession                              *prometheus.Desc

	// These are of what the hook was told.
	budget, stalenessMax *prometheus.Desc
}

func newScraped() scraped {
	return scraped{
		up:           desc("node_up", "Whether the newest probe was answered.", "cluster", "node"),
		usable:       desc("node_usable", "Whether this replica answers and is of the history of the cluster.", "cluster", "node"),
		role:         desc("node_role", "1 for the role that the node has.", "cluster", "node", "role"),
		probeAge:     desc("node_probe_age_seconds", "Time since the newest answered probe was sent.", "cluster", "node"),
		applyDelay:   desc("node_apply_delay_seconds", "Estimate of how long a replica takes to apply what the primary has, 0 while nothing slower than a look was seen.", "cluster", "node"),
		flying:       desc("node_reads_in_flight", "Reads in flight.", "cluster", "node"),
		demandProbes: desc("node_demand_probes_total", "Probes that reads and writes asked for.", "cluster", "node"),

		ejected: desc("node_ejected", "1 for the reason that reads leave this replica out, 0 for the others.", "cluster", "node", "reason"),
		fenced:  desc("node_fenced", "1 for why this node is not used although it answers, 0 for the other reasons.", "cluster", "node", "reason"),
		slow:    desc("node_slow", "Whether reads go around this replica because it answers late.", "cluster", "node"),

		fallbackLimit:   desc("fallback_limit", "How many reads may be on the primary for want of a replica now; below 1 the part of the time in which one may.", "cluster"),
		fallbacksNow:    desc("fallbacks_in_flight", "Reads that are on the primary for want of a replica and count against the limit.", "cluster"),
		fallbacksQueued: desc("fallbacks_queued", "Reads that wait for room on the primary.", "cluster"),
		fallbackShare:   desc("fallback_share_ratio", "The part of the reads that wanted the primary for want of a replica lately, of those that replicas are there for.", "cluster"),

		primary:              desc("primary_known", "Whether one primary is known.", "cluster"),
		conflict:             desc("primaries_conflict", "Whether more than one node says that it is the primary.", "cluster"),
		share:                desc("rollout_share_ratio", "The part of the sessions whose reads are routed.", "cluster"),
		shadow:               desc("rollout_shadow", "Whether decisions are made and not followed.", "cluster"),
		writesWithoutSession: desc("writes_sessionless_total", "Writes without a session, which nobody's reads will know of.", "cluster"),

		budget:       desc("class_budget_seconds", "How old the answers to the relaxed reads of the class may be.", "cluster", "class"),
		stalenessMax: desc("read_staleness_max_seconds", "The largest of read_staleness_seconds in the last one to two minutes.", "cluster", "class"),
	}
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
}

func (s *scraped) all() []*prometheus.Desc {
	return []*prometheus.Desc{
		s.up, s.usable, s.role, s.probeAge, s.applyDelay, s.flying, s.demandProbes, s.ejected, s.fenced, s.slow,
		s.fallbackLimit, s.fallbacksNow, s.fallbacksQueued, s.fallbackShare,
		s.primary, s.conflict, s.share, s.shadow, s.writesWithoutSession, s.budget, s.stalenessMax,
	}
}

// nodeRoles are the values of the label role of node_role.
var nodeRoles = []tidegate.Role{tidegate.RoleUnknown, tidegate.RolePrimary, tidegate.RoleReplica}

// ejections are the values of the label reason of node_ejected.
var ejections = []tidegate.EjectionReason{tidegate.EjectionLag, tidegate.EjectionFailing}

func (s *scraped) collect(ch chan<- prometheus.Metric, st engine.Status) {
	cluster := valid(st.Cluster)
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(s.primary, number(st.Primary != ""), cluster)
	gauge(s.conflict, number(st.Conflict), cluster)
	gauge(s.share, st.Rollout.Share(), cluster)
	if st.FallbackLimit > 0 {
		gauge(s.fallbackLimit, st.FallbackLimit, cluster)
	}
	gauge(s.fallbacksNow, float64(st.FallbacksNow), cluster)
	gauge(s.fallbacksQueued, float64(st.FallbacksQueued), cluster)
	gauge(s.fallbackShare, st.FallbackShare, cluster)
	gauge(s.shadow, number(st.Rollout.Shadow()), cluster)
	ch <- prometheus.MustNewConstMetric(s.writesWithoutSession, prometheus.CounterValue, float64(st.Stats.SessionlessWrites), cluster)
	for i := range st.Nodes {
		n := &st.Nodes[i]
		node := valid(n.Node)
		gauge(s.up, number(n.Err == nil && n.ProbeAge >= 0), cluster, node)
		gauge(s.usable, number(n.Usable), cluster, node)
		for _, r := range nodeRoles {
			gauge(s.role, number(n.Role == r), cluster, node, r.String())
		}
		if n.ProbeAge >= 0 {
			gauge(s.probeAge, n.ProbeAge.Seconds(), cluster, node)
		}
		gauge(s.applyDelay, n.Delay.Seconds(), cluster, node)
		gauge(s.flying, float64(n.Flying), cluster, node)
		for _, e := range ejections {
			gauge(s.ejected, number(n.Ejection == e), cluster, node, e.String())
		}
		for f := tidegate.FenceNone + 1; int(f) < tidegate.Fences; f++ {
			gauge(s.fenced, number(n.Fence == f), cluster, node, f.String())
		}
		gauge(s.slow, number(n.Slow), cluster, node)
		ch <- prometheus.MustNewConstMetric(s.demandProbes, prometheus.CounterValue, float64(n.DemandProbes), cluster, node)
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
