package promgate

import (
	"context"
	"slices"

	"github.com/tidegatedb/tidegate"
)

// decided counts a decision on a read. It is on the way of every read: where
// nothing is new it takes no lock and allocates nothing.
func (c *Collector) decided(_ context.Context, d tidegate.Decision) {
	k, role := c.cluster(d.Cluster), roleOf(d.Role)
	class := c.class(k, d.Class.Name())
	class.reads[role].inc(d.Reason)
	if d.Class.Need() == tidegate.NeedRelaxed {
		c.relaxed(class, &d)
	}
	if d.Node != "" {
		if n := c.nodeReads(k, d.Node); n != nil {
			n.Inc()
		}
	} else if d.Reason == tidegate.ReasonShed {
		k.shed.Inc()
	} else {
		k.refused.Inc()
	}
	if d.Queued > 0 {
		k.queueSeconds[role].Observe(d.Queued.Seconds())
	}
	if d.Stale {
		k.stale.Inc()
	}
	if d.Waited > 0 {
		k.waits[role].Inc()
		k.waitSeconds[role].Observe(d.Waited.Seconds())
	}
	if d.Retries > 0 {
		k.retries[causeOf(d.RetryCause)].Inc()
	}
	if role == tidegate.RoleReplica {
		return
	}
	if role == tidegate.RolePrimary && fellBack(&d) {
		k.fallbacks.inc(d.Reason)
	}
	if d.Unproven {
		k.unproven.inc(d.Reason)
	}
	switch d.Reason {
	case tidegate.ReasonNoSession:
		k.sessionless.Inc()
	case tidegate.ReasonHistoryChanged:
		k.historyChanged[verdictOf(d.Verdict)].Inc()
	case tidegate.ReasonShadow:
		to := tidegate.RoleUnknown
		if d.ShadowNode != "" {
			to = tidegate.RoleReplica
		}
		k.shadow[to].inc(d.ShadowReason)
	}
}

// fellBack reports whether a read on the primary was meant for a replica.
func fellBack(d *tidegate.Decision) bool {
	switch d.Reason {
	case tidegate.ReasonNoSession, tidegate.ReasonRollout, tidegate.ReasonShadow:
		return false
	}
	return d.Class.Need() != tidegate.NeedStrong
}

// probed takes in the result of a probe.
func (c *Collector) probed(p tidegate.Probe) {
	k := c.cluster(p.Cluster)
	c.mu.Lock() // a node is not removed meanwhile
	defer c.mu.Unlock()
	if slices.Contains(k.gone, p.Node) {
		return
	}
	cluster, node := valid(p.Cluster), valid(p.Node)
	if p.Err != nil {
		c.m.probes.WithLabelValues(cluster, node, "failed").Inc()
		return
	}
	c.m.probes.WithLabelValues(cluster, node, "answered").Inc()
	c.m.probeSeconds.WithLabelValues(cluster, node).Observe(p.Took.Seconds())
	if p.LagKnown {
		c.m.lagBytes.WithLabelValues(cluster, node).Observe(float64(p.Lag))
	}
	if p.StalenessKnown {
		c.m.stalenessSeconds.WithLabelValues(cluster, node).Observe(p.Staleness.Seconds())
	}
}

// changed takes in a change.
func (c *Collector) changed(x tidegate.Change) {
	k := c.cluster(x.Cluster)
	c.m.changes.WithLabelValues(valid(x.Cluster), x.Kind.String()).Inc()
	switch x.Kind {
	case tidegate.NodeAdded:
		c.added(k, x.Node)
	case tidegate.NodeRemoved:
		c.removed(k, x.Node)
	}
}
