package promgate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
	"github.com/tidegatedb/tidegate/promgate"
)

func TestProbes(t *testing.T) {
	t.Parallel()
	c := promgate.New(promgate.Config{})
	probed := c.Hook().Probed
	probed(tidegate.Probe{Cluster: "main", Node: "p", Took: time.Millisecond, Role: tidegate.RolePrimary})
	probed(tidegate.Probe{Cluster: "main", Node: "r1", Took: time.Millisecond, Role: tidegate.RoleReplica, Lag: 0, LagKnown: true})
	probed(tidegate.Probe{Cluster: "main", Node: "r1", Took: time.Millisecond, Role: tidegate.RoleReplica, Lag: 20 << 20, LagKnown: true, Staleness: 2 * time.Second, StalenessKnown: true})
	probed(tidegate.Probe{Cluster: "main", Node: "r1", Took: time.Second, Err: fake.ErrRefused})
	same(t, c, `
		probes_total{cluster="main",node="p",result="answered"} 1
		probes_total{cluster="main",node="r1",result="answered"} 2
		probes_total{cluster="main",node="r1",result="failed"} 1
	`, "probes_total")
	if find(t, c, "replica_lag_bytes", "node=p") != nil {
		t.Error("a primary has a lag")
	}
	lag := find(t, c, "replica_lag_bytes", "node=r1").Histogram
	if b := lag.Bucket[0]; b.GetUpperBound() != 0 || b.GetCumulativeCount() != 1 {
		t.Errorf("first bucket %v, want the one without lag", b)
	}
	if lag.GetSampleCount() != 2 || lag.GetSampleSum() != 20<<20 || lag.Schema == nil {
		t.Errorf("%v", lag)
	}
	if s := find(t, c, "replica_staleness_seconds", "node=r1").Histogram; s.GetSampleCount() != 1 || s.GetSampleSum() != 2 || s.Schema == nil {
		t.Errorf("%v", s)
	}
	// How long a failure took says how long the timeout is.
	if d := find(t, c, "probe_duration_seconds", "node=r1").Histogram; d.GetSampleCount() != 2 || d.GetSampleSum() != .002 {
		t.Errorf("%v", d)
	}
}

func TestNodesThatLeave(t *testing.T) {
	t.Parallel()
	c := promgate.New(promgate.Config{})
	h := c.Hook()
	events := func() {
		for _, cluster := range []string{"main", "side"} {
			h.Decided(t.Context(), tidegate.Decision{Cluster: cluster, Node: "r1", Role: tidegate.RoleReplica, Reason: tidegate.ReasonCovered})
			h.Probed(tidegate.Probe{Cluster: cluster, Node: "r1", LagKnown: true, StalenessKnown: true})
			h.Probed(tidegate.Probe{Cluster: cluster, Node: "r1", Err: fake.ErrRefused})
		}
	}
	of := []string{"node_reads_total", "probes_total", "probe_duration_seconds", "replica_lag_bytes", "replica_staleness_seconds"}
	there := func(want bool) {
		t.Helper()
		for _, name := range of {
			if got := find(t, c, name, "cluster=main", "node=r1") != nil; got != want {
				t.Errorf("%s is there: %v, want %v", name, got, want)
			}
			if find(t, c, name, "cluster=side", "node=r1") == nil {
				t.Errorf("%s of another cluster is gone", name)
			}
		}
	}
	events()
	there(true)
	h.Changed(tidegate.Change{Kind: tidegate.NodeRemoved, Cluster: "main", Node: "r1"})
	there(false)
	events() // what was under way
	there(false)
	if got := value(t, c, "reads_total", "cluster=main"); got != 2 {
		t.Errorf("%v reads, want both", got)
	}
	h.Changed(tidegate.Change{Kind: tidegate.NodeAdded, Cluster: "main", Node: "r1"})
	events()
	there(true)
	if got := value(t, c, "node_reads_total", "cluster=main"); got != 1 {
		t.Errorf("%v reads of the node, want those of its new life", got)
	}
	same(t, c, `
		changes_total{cluster="main",kind="node-added"} 1
		changes_total{cluster="main",kind="node-removed"} 1
	`, "changes_total")
}

// Addresses that change all the time leave nothing behind.
func TestVeryManyNodes(t *testing.T) {
	t.Parallel()
	c := promgate.New(promgate.Config{})
	h := c.Hook()
	for i := range 1000 {
		node := fmt.Sprintf("10.0.%d.%d", i/250, i%250)
		h.Changed(tidegate.Change{Kind: tidegate.NodeAdded, Cluster: "main", Node: node})
		h.Decided(t.Context(), tidegate.Decision{Cluster: "main", Node: node, Role: tidegate.RoleReplica, Reason: tidegate.ReasonCovered})
		h.Probed(tidegate.Probe{Cluster: "main", Node: node, LagKnown: true, StalenessKnown: true})
		h.Changed(tidegate.Change{Kind: tidegate.NodeRemoved, Cluster: "main", Node: node})
	}
	for _, f := range gather(t, c) {
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if l.GetName() == "node" {
					t.Fatalf("%s has a node %s", f.GetName(), l.GetValue())
				}
			}
		}
	}
}
