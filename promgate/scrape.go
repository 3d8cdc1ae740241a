package promgate

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// scraped are what is found out at each scrape, most of it from the status of a database.
type scraped struct {
	up, usable, role, probeAge, applyDelay, flying, demandProbes *prometheus.Desc
	primary, conflict, share, shadow, writesWithoutSession       *prometheus.Desc

	// These are of what the hook was told.
	budget, stalenessMax *prometheus.Desc
}

func newScraped() scraped {
	return scraped{
		up:           desc("node_up", "Whether the newest probe was answered.", "cluster", "node"),
		usable:       desc("node_usable", "Whether reads may go to this replica.", "cluster", "node"),
		role:         desc("node_role", "1 for the role that the node has.", "cluster", "node", "role"),
		probeAge:     desc("node_probe_age_seconds", "Time since the newest answered probe was sent.", "cluster", "node"),
		applyDelay:   desc("node_apply_delay_seconds", "Estimate of how long a replica takes to apply what the primary has, 0 while nothing slower than a look was seen.", "cluster", "node"),
		flying:       desc("node_reads_in_flight", "Reads in flight.", "cluster", "node"),
		demandProbes: desc("node_demand_probes_total", "Probes that reads and writes asked for.", "cluster", "node"),

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
		s.up, s.usable, s.role, s.probeAge, s.applyDelay, s.flying, s.demandProbes,
		s.primary, s.conflict, s.share, s.shadow, s.writesWithoutSession, s.budget, s.stalenessMax,
	}
}

// nodeRoles are the values of the label role of node_role.
var nodeRoles = []tidegate.Role{tidegate.RoleUnknown, tidegate.RolePrimary, tidegate.RoleReplica}

func (s *scraped) collect(ch chan<- prometheus.Metric, st engine.Status) {
	cluster := valid(st.Cluster)
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(s.primary, number(st.Primary != ""), cluster)
	gauge(s.conflict, number(st.Conflict), cluster)
	gauge(s.share, st.Rollout.Share(), cluster)
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
		ch <- prometheus.MustNewConstMetric(s.demandProbes, prometheus.CounterValue, float64(n.DemandProbes), cluster, node)
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
