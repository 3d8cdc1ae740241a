package promgate_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/promgate"
)

func TestDecisions(t *testing.T) {
	t.Parallel()
	c := promgate.New(promgate.Config{})
	on := func(role tidegate.Role, class tidegate.Class, reason tidegate.Reason, more ...func(*tidegate.Decision)) {
		d := tidegate.Decision{Cluster: "main", Class: class, Role: role, Reason: reason}
		if role != tidegate.RoleUnknown {
			d.Node = map[tidegate.Role]string{tidegate.RolePrimary: "p", tidegate.RoleReplica: "r1"}[role]
		}
		for _, f := range more {
			f(&d)
		}
		c.Hook().Decided(t.Context(), d)
	}
	unproven := func(d *tidegate.Decision) { d.Unproven = true }
	waited := func(d *tidegate.Decision) { d.Waited = 3 * time.Millisecond }
	again := func(d *tidegate.Decision) { d.Retries, d.RetryCause = 2, tidegate.RetryNotReplayed }
	unnamed := func(d *tidegate.Decision) { d.Retries, d.RetryCause = 1, 250 }
	unsaid := func(d *tidegate.Decision) { d.Retries = 1 }
	none, primary, replica := tidegate.RoleUnknown, tidegate.RolePrimary, tidegate.RoleReplica

	on(replica, tidegate.Causal, tidegate.ReasonStayed)
	on(replica, tidegate.Causal, tidegate.ReasonStayed, again)
	on(replica, tidegate.Causal, tidegate.ReasonCovered, waited, unsaid)
	on(replica, dashboard, tidegate.ReasonWithinBudget, unnamed)
	on(primary, claim, tidegate.ReasonStrong)
	on(primary, claim, tidegate.ReasonStrong, unproven)
	on(primary, tidegate.Causal, tidegate.ReasonNoSession)
	on(primary, tidegate.Causal, tidegate.ReasonBehind, waited)
	on(primary, dashboard, tidegate.ReasonNoReplica)
	on(primary, tidegate.Causal, tidegate.ReasonPredicted)
	on(primary, tidegate.Causal, tidegate.ReasonReplicaFailed, again)
	on(primary, tidegate.Causal, tidegate.ReasonHistoryChanged, unproven)
	on(primary, tidegate.Causal, tidegate.ReasonRollout)
	on(primary, tidegate.Causal, tidegate.ReasonShadow, func(d *tidegate.Decision) { d.ShadowNode, d.ShadowReason = "r1", tidegate.ReasonCovered })
	on(primary, tidegate.Causal, tidegate.ReasonShadow, func(d *tidegate.Decision) { d.ShadowReason = tidegate.ReasonBehind })
	on(none, tidegate.Causal, tidegate.ReasonBehind, waited)
	queued := func(d *tidegate.Decision) { d.Queued = 20 * time.Millisecond }
	on(none, tidegate.Causal, tidegate.ReasonShed, queued)
	on(none, tidegate.Causal, tidegate.ReasonShed, queued)
	on(replica, dashboard, tidegate.ReasonStale, queued, func(d *tidegate.Decision) { d.Stale = true })

	same(t, c, `
		reads_total{class="causal",cluster="main",reason="behind",role="none"} 1
		reads_total{class="causal",cluster="main",reason="behind",role="primary"} 1
		reads_total{class="causal",cluster="main",reason="covered",role="replica"} 1
		reads_total{class="causal",cluster="main",reason="history-changed",role="primary"} 1
		reads_total{class="causal",cluster="main",reason="no-session",role="primary"} 1
		reads_total{class="causal",cluster="main",reason="predicted",role="primary"} 1
		reads_total{class="causal",cluster="main",reason="replica-failed",role="primary"} 1
		reads_total{class="causal",cluster="main",reason="rollout",role="primary"} 1
		reads_total{class="causal",cluster="main",reason="shadow",role="primary"} 2
		reads_total{class="causal",cluster="main",reason="shed",role="none"} 2
		reads_total{class="causal",cluster="main",reason="stayed",role="replica"} 2
		reads_total{class="claim",cluster="main",reason="strong",role="primary"} 2
		reads_total{class="dashboard",cluster="main",reason="no-replica",role="primary"} 1
		reads_total{class="dashboard",cluster="main",reason="stale",role="replica"} 1
		reads_total{class="dashboard",cluster="main",reason="within-budget",role="replica"} 1
	`, "reads_total")
	same(t, c, `
		node_reads_total{cluster="main",node="p"} 11
		node_reads_total{cluster="main",node="r1"} 5
		read_retries_total{cause="connection",cluster="main"} 2
		read_retries_total{cause="not-replayed",cluster="main"} 2
		read_retries_total{cause="pool",cluster="main"} 0
		read_retries_total{cause="recovery-conflict",cluster="main"} 0
		read_retries_total{cause="role",cluster="main"} 0
		read_retries_total{cause="shutdown",cluster="main"} 0
		read_retries_total{cause="stale-plan",cluster="main"} 0
		read_retries_total{cause="unproven",cluster="main"} 0
		read_retries_total{cause="unsupported",cluster="main"} 0
		read_waits_total{cluster="main",role="none"} 1
		read_waits_total{cluster="main",role="primary"} 1
		read_waits_total{cluster="main",role="replica"} 1
		reads_history_changed_total{cluster="main",verdict="ahead"} 0
		reads_history_changed_total{cluster="main",verdict="foreign"} 0
		reads_history_changed_total{cluster="main",verdict="lost"} 0
		reads_history_changed_total{cluster="main",verdict="unknown"} 1
		reads_refused_total{cluster="main"} 1
		reads_sessionless_total{cluster="main"} 1
		reads_shed_total{cluster="main"} 2
		reads_stale_total{cluster="main"} 1
		reads_unproven_total{cluster="main",reason="behind"} 0
		reads_unproven_total{cluster="main",reason="history-changed"} 1
		reads_unproven_total{cluster="main",reason="no-replica"} 0
		reads_unproven_total{cluster="main",reason="predicted"} 0
		reads_unproven_total{cluster="main",reason="replica-failed"} 0
		reads_unproven_total{cluster="main",reason="strong"} 1
		replica_fallback_total{cluster="main",reason="behind"} 1
		replica_fallback_total{cluster="main",reason="history-changed"} 1
		replica_fallback_total{cluster="main",reason="no-replica"} 1
		replica_fallback_total{cluster="main",reason="predicted"} 1
		replica_fallback_total{cluster="main",reason="replica-failed"} 1
		shadow_reads_total{cluster="main",reason="behind",role="none"} 1
		shadow_reads_total{cluster="main",reason="covered",role="replica"} 1
	`, "node_reads_total", "read_retries_total", "read_waits_total", "reads_history_changed_total", "reads_refused_total", "reads_sessionless_total", "reads_shed_total", "reads_stale_total",
		"reads_unproven_total", "replica_fallback_total", "shadow_reads_total")
	if h := find(t, c, "read_queue_seconds", "role=none").Histogram; h.GetSampleCount() != 2 || h.GetSampleSum() != .04 {
		t.Errorf("%v, want two reads that queued 20 ms each and went nowhere", h)
	}
	if h := find(t, c, "read_wait_seconds", "role=replica").Histogram; h.GetSampleCount() != 1 || h.GetSampleSum() != .003 || h.Schema == nil || len(h.Bucket) == 0 {
		t.Errorf("%v, want one wait of 3 ms in classic and native buckets", h)
	}
}

// A newer core may have reasons and roles that are not known here.
func TestUnknownReasonsAreCounted(t *testing.T) {
	t.Parallel()
	c := promgate.New(promgate.Config{})
	for range 2 {
		c.Hook().Decided(t.Context(), tidegate.Decision{Cluster: "main", Node: "x", Role: 77, Reason: 200})
	}
	if got := value(t, c, "reads_total", "reason=reason-200", "role=none"); got != 2 {
		t.Errorf("%v reads, want 2", got)
	}
}

func TestClassesAreBounded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ limit, own int }{{0, 100}, {3, 3}, {-1, 0}} {
		c := promgate.New(promgate.Config{MaxClasses: tt.limit})
		for range 2 {
			for i := range 150 {
				class := tidegate.NewCausal(fmt.Sprintf("class-%03d", i), "one of very many")
				c.Hook().Decided(t.Context(), tidegate.Decision{Cluster: "main", Node: "r1", Role: tidegate.RoleReplica, Class: class, Reason: tidegate.ReasonCovered})
			}
		}
		if n := testutil.CollectAndCount(c, "tidegate_reads_total"); n != tt.own+1 {
			t.Errorf("limit %d: %d series, want %d and the others'", tt.limit, n, tt.own)
		}
		if got := value(t, c, "reads_total", "class=other"); got != float64(2*(150-tt.own)) {
			t.Errorf("limit %d: %v reads of others", tt.limit, got)
		}
	}
}

// statusOf is a source that knows nodes of these names.
type statusOf []string

func (s statusOf) Status() engine.Status {
	st := engine.Status{Cluster: s[0]}
	for _, name := range s {
		st.Nodes = append(st.Nodes, engine.NodeStatus{Node: name})
	}
	return st
}

// Names come from configurations: they need not be what Prometheus takes. Each has
// its own series all the same.
func TestNamesThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	c := promgate.New(promgate.Config{})
	h := c.Hook()
	labels := map[string]string{
		"b\xffd": "b\uFFFDffd", "b\xfed": "b\uFFFDfed", "b\xff\xfed": "b\uFFFDff\uFFFDfed", "b\uFFFDffd": "b\uFFFD00ffd", "bd\u00e9": "bd\u00e9", "b\xc3": "b\uFFFDc3",
	}
	for bad := range labels {
		h.Decided(t.Context(), tidegate.Decision{Cluster: bad, Node: bad, Role: tidegate.RoleReplica, Class: tidegate.NewCausal(bad, "a test"), Reason: tidegate.ReasonCovered})
		h.Probed(tidegate.Probe{Cluster: bad, Node: bad})
		h.Changed(tidegate.Change{Kind: tidegate.RoleChanged, Cluster: bad, Node: bad})
		all := statusOf{bad}
		for other := range labels {
			if other != bad {
				all = append(all, other)
			}
		}
		defer c.Watch(all)()
	}
	for bad, good := range labels {
		if got := value(t, c, "reads_total", "cluster="+good, "class="+good); got != 1 {
			t.Errorf("%q: %v reads of %q", bad, got, good)
		}
		for _, other := range labels {
			if find(t, c, "node_usable", "cluster="+good, "node="+other) == nil {
				t.Errorf("%q has no node %q", good, other)
			}
		}
	}
	h.Changed(tidegate.Change{Kind: tidegate.NodeRemoved, Cluster: "b\xffd", Node: "b\xffd"})
	for bad, good := range labels {
		if there := find(t, c, "probes_total", "node="+good) != nil; there != (bad != "b\xffd") {
			t.Errorf("b\\xffd has left: the series of %q are there: %v", bad, there)
		}
	}
}

func TestDecidedDoesNotAllocate(t *testing.T) {
	c := promgate.New(promgate.Config{})
	decided := c.Hook().Decided
	ctx := t.Context()
	for name, d := range map[string]tidegate.Decision{
		"on a replica":        {Cluster: "main", Node: "r1", Role: tidegate.RoleReplica, Reason: tidegate.ReasonStayed},
		"of a declared class": {Cluster: "main", Node: "r1", Role: tidegate.RoleReplica, Class: dashboard, Reason: tidegate.ReasonWithinBudget},
		"of a known age":      of(tidegate.Relaxed("report", "a test", tidegate.Within(time.Minute)), 80*time.Millisecond),
		"that fell back":      {Cluster: "main", Node: "p", Role: tidegate.RolePrimary, Reason: tidegate.ReasonBehind, Waited: time.Millisecond, Retries: 1, RetryCause: tidegate.RetryPool, Unproven: true},
	} {
		decided(ctx, d)
		if n := testing.AllocsPerRun(1000, func() { decided(ctx, d) }); n != 0 {
			t.Errorf("a read %s: %v allocations", name, n)
		}
	}
	small := promgate.New(promgate.Config{MaxClasses: -1})
	d := tidegate.Decision{Cluster: "main", Node: "r1", Role: tidegate.RoleReplica, Class: dashboard, Reason: tidegate.ReasonWithinBudget}
	small.Hook().Decided(ctx, d)
	if n := testing.AllocsPerRun(1000, func() { small.Hook().Decided(ctx, d) }); n > 0 {
		t.Errorf("a read of another class: %v allocations", n)
	}
}

// Nothing is counted twice or lost when all begin at once, while nodes come and
// go and the collector is scraped.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	c := promgate.New(promgate.Config{MaxClasses: 5})
	var classes []tidegate.Class
	for i := range 10 {
		class := tidegate.NewCausal(fmt.Sprintf("concurrent-%d", i), "a test")
		if i%2 == 0 {
			class = tidegate.Relaxed(class.Name(), "a test", tidegate.Within(time.Minute))
		}
		classes = append(classes, class)
	}
	const users, each = 8, 500
	var wg sync.WaitGroup
	for u := range users {
		wg.Go(func() {
			h := c.Hook()
			for i := range each {
				h.Decided(t.Context(), tidegate.Decision{Cluster: fmt.Sprint("c", i%2), Node: fmt.Sprint("r", i%5), Role: tidegate.RoleReplica, Class: classes[i%10], Reason: tidegate.ReasonCovered, Staleness: time.Second, StalenessKnown: true})
				if i%50 == u {
					h.Changed(tidegate.Change{Kind: tidegate.NodeRemoved, Cluster: "c0", Node: "r4"})
					h.Changed(tidegate.Change{Kind: tidegate.NodeAdded, Cluster: "c0", Node: "r4"})
					h.Probed(tidegate.Probe{Cluster: "c0", Node: "r4"})
					testutil.CollectAndCount(c)
				}
			}
		})
	}
	wg.Wait()
	total, aged := 0.0, uint64(0)
	for _, f := range gather(t, c) {
		for _, m := range f.Metric {
			switch f.GetName() {
			case "tidegate_reads_total":
				total += m.Counter.GetValue()
			case "tidegate_read_staleness_seconds":
				aged += m.Histogram.GetSampleCount()
			}
		}
	}
	if total != users*each || aged != users*each/2 {
		t.Errorf("%v reads and the ages of %d, want %d and half of it", total, aged, users*each)
	}
}
