package promgate_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
	"github.com/tidegatedb/tidegate/promgate"
)

// everything makes something of each kind happen.
func everything(t *testing.T, c *promgate.Collector, cluster *fake.Cluster, g *fake.Gate) {
	t.Helper()
	ctx := tidegate.WithSession(t.Context(), tidegate.NewSession())
	read := func(class tidegate.Class) {
		t.Helper()
		if _, err := g.Read(ctx, class, 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.Write(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	read(tidegate.Causal)
	read(claim)
	read(tidegate.Relaxed("report", "a test", tidegate.Within(time.Minute)))
	c.Hook().Suspected(ctx, tidegate.Suspect{Cluster: "main", Write: "a test"})
	for _, n := range cluster.Nodes()[1:] {
		n.Pause()
	}
	if _, err := g.Write(ctx, 1); err != nil {
		t.Fatal(err)
	}
	read(tidegate.Causal)
	g.Core().SetRollout(tidegate.RolloutShadow)
	read(tidegate.Causal)
	if _, err := g.Read(t.Context(), tidegate.Causal, 1); err != nil {
		t.Fatal(err)
	}
	time.Sleep(350 * time.Millisecond) // until all have been looked at
	synctest.Wait()
}

func TestMetricsOfACluster(t *testing.T) {
	t.Parallel()
	inBubble(t, engine.Config{Wait: 5 * time.Millisecond}, func(t *testing.T, c *promgate.Collector, cluster *fake.Cluster, g *fake.Gate) {
		everything(t, c, cluster, g)
		for _, tt := range []struct {
			name, label string
			want        float64
		}{
			{"replica_fallback_total", "reason=behind", 1},
			{"reads_sessionless_total", "", 1},
			{"writes_sessionless_total", "", 1},
			{"read_waits_total", "role=primary", 2}, // the strong read for a proof, the causal one in vain
			{"read_wait_seconds", "role=primary", 2},
			{"node_up", "node=r1", 1},
			{"node_usable", "node=r1", 1},
			{"node_usable", "node=p", 0},
			{"node_reads_in_flight", "node=r1", 0},
			{"primary_known", "", 1},
			{"primaries_conflict", "", 0},
			{"rollout_share_ratio", "", 0},
			{"rollout_shadow", "", 1},
			{"changes_total", "kind=rollout-changed", 1},
			{"changes_total", "kind=node-found", 3},
		} {
			labels := []string{"cluster=main"}
			if tt.label != "" {
				labels = append(labels, tt.label)
			}
			if got := value(t, c, tt.name, labels...); got != tt.want {
				t.Errorf("%s{%s} is %v, want %v", tt.name, tt.label, got, tt.want)
			}
		}
		same(t, c, `
			node_role{cluster="main",node="p",role="primary"} 1
			node_role{cluster="main",node="p",role="replica"} 0
			node_role{cluster="main",node="p",role="unknown"} 0
			node_role{cluster="main",node="r1",role="primary"} 0
			node_role{cluster="main",node="r1",role="replica"} 1
			node_role{cluster="main",node="r1",role="unknown"} 0
			node_role{cluster="main",node="r2",role="primary"} 0
			node_role{cluster="main",node="r2",role="replica"} 1
			node_role{cluster="main",node="r2",role="unknown"} 0
		`, "node_role")
		if h := find(t, c, "replica_lag_bytes", "node=r1").Histogram; h.GetSampleSum() == 0 {
			t.Errorf("no lag of a paused replica: %v", h)
		}
		if age := value(t, c, "node_probe_age_seconds", "node=r1"); age < 0 || age > .111 {
			t.Errorf("probe age %v s", age)
		}
	})
}

func TestNodeThatIsDown(t *testing.T) {
	t.Parallel()
	inBubble(t, engine.Config{}, func(t *testing.T, c *promgate.Collector, cluster *fake.Cluster, _ *fake.Gate) {
		cluster.Nodes()[1].Stop()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if up, usable, age := value(t, c, "node_up", "node=r1"), value(t, c, "node_usable", "node=r1"), value(t, c, "node_probe_age_seconds", "node=r1"); up != 0 || usable != 0 || age < 2.9 {
			t.Errorf("up %v, usable %v, probe age %v s", up, usable, age)
		}
		if got := value(t, c, "changes_total", "kind=node-failing"); got != 1 {
			t.Errorf("%v nodes began to fail", got)
		}
	})
}

// Whoever was never heard of has no age, instead of a wrong one.
func TestNodeThatNeverAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := promgate.New(promgate.Config{})
		cluster := fake.New(fake.Config{Replicas: 1})
		cluster.Nodes()[1].Stop()
		g, err := cluster.Open(t.Context(), fake.Options{Core: engine.Config{Cluster: "main", Hooks: []tidegate.Hook{c.Hook()}}})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		defer c.Watch(g.Core())()
		if find(t, c, "node_probe_age_seconds", "node=r1") != nil || value(t, c, "node_up", "node=r1") != 0 || value(t, c, "node_role", "node=r1", "role=unknown") != 1 {
			t.Error("something is said to be known of it")
		}
	})
}

// frozen is a source that says what it is told to.
type frozen engine.Status

func (f frozen) Status() engine.Status { return engine.Status(f) }

func TestGaugesAreInBaseUnits(t *testing.T) {
	t.Parallel()
	c := promgate.New(promgate.Config{})
	defer c.Watch(frozen{Cluster: "main", Conflict: true, Rollout: tidegate.RolloutShare(.25),
		FallbackLimit: .5, FallbacksNow: 1, FallbacksQueued: 7, FallbackShare: .75, Nodes: []engine.NodeStatus{{
			Node: "r1", Role: tidegate.RoleReplica, ProbeAge: 250 * time.Millisecond, Delay: 12 * time.Millisecond, Flying: 3, DemandProbes: 5, Slow: true,
		}}})()
	for name, want := range map[string]float64{
		"node_probe_age_seconds": .25, "node_apply_delay_seconds": .012, "node_reads_in_flight": 3, "node_demand_probes_total": 5,
		"primary_known": 0, "primaries_conflict": 1, "rollout_share_ratio": .25, "rollout_shadow": 0,
		"fallback_limit": .5, "fallbacks_in_flight": 1, "fallbacks_queued": 7, "fallback_share_ratio": .75, "node_slow": 1,
	} {
		if got := value(t, c, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// An ejection has its reason, and nobody's limit is no limit of zero.
func TestEjectedNode(t *testing.T) {
	t.Parallel()
	c := promgate.New(promgate.Config{})
	defer c.Watch(frozen{Cluster: "main", Nodes: []engine.NodeStatus{{Node: "r1", Ejection: tidegate.EjectionFailing}, {Node: "r2"}}})()
	same(t, c, `
		node_ejected{cluster="main",node="r1",reason="failing"} 1
		node_ejected{cluster="main",node="r1",reason="lag"} 0
		node_ejected{cluster="main",node="r2",reason="failing"} 0
		node_ejected{cluster="main",node="r2",reason="lag"} 0
	`, "node_ejected")
	if find(t, c, "fallback_limit") != nil {
		t.Error("there is a limit where there is none")
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	inBubble(t, engine.Config{}, func(t *testing.T, c *promgate.Collector, _ *fake.Cluster, g *fake.Gate) {
		// A pedantic registry refuses the same series twice.
		again := c.Watch(g.Core())
		if got := value(t, c, "primary_known"); got != 1 {
			t.Errorf("primary known: %v", got)
		}
		again()
		again()
		if find(t, c, "primary_known") != nil {
			t.Error("it is watched although that was stopped")
		}
	})
}

func TestLint(t *testing.T) {
	t.Parallel()
	inBubble(t, engine.Config{Wait: 5 * time.Millisecond}, func(t *testing.T, c *promgate.Collector, cluster *fake.Cluster, g *fake.Gate) {
		everything(t, c, cluster, g)
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(c)
		problems, err := testutil.GatherAndLint(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	})
}

// The documentation names all metrics, and no others.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, name := range regexp.MustCompile(`tidegate_[a-z_]+`).FindAllString(string(doc), -1) {
		named[strings.TrimSuffix(name, "_bucket")] = true
	}
	descs := make(chan *prometheus.Desc)
	go func() {
		promgate.New(promgate.Config{}).Describe(descs)
		close(descs)
	}()
	exported := 0
	for d := range descs {
		exported++
		name := regexp.MustCompile(`fqName: "([a-z_]+)"`).FindStringSubmatch(d.String())[1]
		if !named[name] {
			t.Errorf("%s is not documented", name)
		}
		delete(named, name)
	}
	for name := range named {
		t.Errorf("%s is documented and not exported", name)
	}
	if exported < 20 {
		t.Errorf("%d metrics", exported)
	}
}

// A node that is taken out of the cluster's list takes its series along.
func TestNodeTakenAway(t *testing.T) {
	t.Parallel()
	inBubble(t, engine.Config{}, func(t *testing.T, c *promgate.Collector, _ *fake.Cluster, g *fake.Gate) {
		if value(t, c, "probes_total", "node=r1") == 0 || value(t, c, "node_up", "node=r1") != 1 {
			t.Error("it was never there")
		}
		primary, _ := g.Core().Primary()
		if _, err := g.Core().SetNodes([]engine.Node{{Name: "p", Source: primary}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for _, f := range gather(t, c) {
			for _, m := range f.Metric {
				if has(m, "node", "r1") || has(m, "node", "r2") {
					t.Errorf("%s: %v", f.GetName(), m.Label)
				}
			}
		}
		if got := value(t, c, "changes_total", "kind=node-removed"); got != 2 {
			t.Errorf("%v nodes removed", got)
		}
	})
}
