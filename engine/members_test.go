package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// listed returns nodes over the stubs, named a, b and so on.
func listed(stubs ...*stub) (all []engine.Node) {
	for i, s := range stubs {
		all = append(all, engine.Node{Name: string(rune('a' + i)), Source: s})
	}
	return all
}

// setNodes sets nodes and checks which sources are left over.
func setNodes(t *testing.T, c *engine.Core, nodes []engine.Node, left ...*stub) {
	t.Helper()
	got, err := c.SetNodes(nodes)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]engine.Source, len(left))
	for i, s := range left {
		want[i] = s
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d sources are left, want %d: %v", len(got), len(want), got)
	}
	time.Sleep(time.Millisecond) // for the first look
}

// names returns the nodes of the status, which are those of an explanation too.
func names(t *testing.T, c *engine.Core) (all []string) {
	t.Helper()
	for _, n := range c.Status().Nodes {
		all = append(all, n.Node)
	}
	var explained []string
	for _, v := range c.Explain(t.Context(), tidegate.Causal).Nodes {
		explained = append(explained, v.Node)
	}
	if !slices.Equal(all, explained) {
		t.Errorf("the status has %v, the explanation %v", all, explained)
	}
	return all
}

func TestSetNodesAddsAndRemoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r, other := primaryStub(1, 100), replicaStub(2, 100), replicaStub(3, 100)
		c := core(t, engine.Config{}, p)
		ctx, _ := sessionAt(t.Context(), needs(50))
		went(t, c, begin(ctx, t, c, tidegate.Causal), "a", tidegate.ReasonNoReplica, false)
		setNodes(t, c, listed(p, r))
		ctx, _ = sessionAt(t.Context(), needs(50))
		went(t, c, begin(ctx, t, c, tidegate.Causal), "b", tidegate.ReasonCovered, false)
		setNodes(t, c, []engine.Node{{Name: "a", Source: p}, {Name: "c", Source: other}}, r)
		if got := names(t, c); !slices.Equal(got, []string{"a", "c"}) {
			t.Errorf("the nodes are %v", got)
		}
		ctx, _ = sessionAt(t.Context(), needs(50))
		rd := begin(ctx, t, c, tidegate.Causal)
		if went(t, c, rd, "c", tidegate.ReasonCovered, false); rd.Source() != engine.Source(other) || rd.Node() != 1 {
			t.Errorf("the index %d is not reused, or leads to %v", rd.Node(), rd.Source())
		}
		asked := func(s *stub) (n int) {
			s.set(func(s *stub) { n = s.asked })
			return n
		}
		before := asked(r)
		time.Sleep(3 * time.Hour)
		if n := asked(r); n != before {
			t.Errorf("a node that was taken away was probed %d times", n-before)
		}
	})
}

// What the core knows of a node stays while its name and source do.
func TestSetNodesKeepsWhatIsTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r, other := primaryStub(1, 100), replicaStub(2, 100), replicaStub(3, 100)
		c := core(t, engine.Config{Zone: "here"}, p, r, other)
		before := c.Status()
		setNodes(t, c, []engine.Node{{Name: "c", Source: other, Weight: 3}, {Name: "b", Source: r, Zone: "here"}, {Name: "a", Source: p}})
		after := c.Status()
		for i := range after.Nodes {
			b, a := before.Nodes[i], after.Nodes[i]
			if a.Node != b.Node || a.Probes != 1 || a.Incarnation != b.Incarnation || !a.Usable && i > 0 {
				t.Errorf("before %+v, after %+v", b, a)
			}
		}
		if after.Nodes[1].Zone != "here" || after.Primary != "a" {
			t.Errorf("%+v", after)
		}
		for range 20 { // the zone counts from now on
			ctx, _ := sessionAt(t.Context(), needs(50))
			rd := begin(ctx, t, c, tidegate.Causal)
			went(t, c, rd, "b", tidegate.ReasonCovered, false)
			c.Cancel(rd)
		}
		setNodes(t, c, []engine.Node{{Name: "a", Source: p}, {Name: "b", Source: r, Zone: "here"}, {Name: "c", Source: other, Zone: "here", Weight: 9}})
		counts := map[string]int{}
		for range 1000 {
			ctx, _ := sessionAt(t.Context())
			rd := begin(ctx, t, c, relaxedAny)
			counts[c.Decision(rd).Node]++
			c.Cancel(rd)
		}
		if n := counts["c"]; n < 850 || n > 950 {
			t.Errorf("reads went to %v, want nine of ten to c", counts)
		}
	})
}

// A name that leads elsewhere is another node; a source under another name is the
// same one: it is asked by one goroutine at a time, also then.
func TestSetNodesReplaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r, other := primaryStub(1, 100), replicaStub(2, 100), replicaStub(3, 70)
		c := core(t, engine.Config{}, p, r)
		setNodes(t, c, listed(p, other), r)
		if n := c.Status().Nodes[1]; n.Node != "b" || n.Applied != tidegate.At(70) || n.Probes != 1 {
			t.Errorf("%+v", n)
		}
		asked := c.Status().Nodes[1].Probes
		setNodes(t, c, []engine.Node{{Name: "a", Source: p}, {Name: "renamed", Source: other}})
		if got := names(t, c); !slices.Equal(got, []string{"a", "renamed"}) {
			t.Errorf("the nodes are %v", got)
		}
		if n := c.Status().Nodes[1]; n.Probes != asked || !n.Usable || n.Applied != tidegate.At(70) {
			t.Errorf("it was taken for a new one: %+v", n)
		}
		setNodes(t, c, []engine.Node{{Name: "renamed", Source: p}, {Name: "a", Source: other}}) // swapped
		if s := c.Status(); s.Primary != "renamed" || s.Nodes[1].Node != "a" || s.Nodes[1].Probes != asked {
			t.Errorf("after swapping names: %+v", s)
		}
	})
}

// With errors nothing changes.
func TestSetNodesRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r := primaryStub(1, 100), replicaStub(2, 100)
		c := core(t, engine.Config{}, p, r)
		for name, nodes := range map[string][]engine.Node{
			"Nodes ":                                 nil,
			"Nodes has 65":                           make([]engine.Node, engine.MaxNodes+1),
			"Nodes[1].Name":                          {{Name: "a", Source: p}, {Name: "a", Source: r}},
			"Nodes[0].Name":                          {{Source: p}},
			"Nodes[1].Source":                        {{Name: "c", Source: p}, {Name: "d"}},
			"Nodes[1].Source is that of another":     {{Name: "x", Source: r}, {Name: "y", Source: r}},
			"Nodes[0].Name is \"a\\xff\"":            {{Name: "a\xff", Source: p}},
			"Nodes[0].Source is a engine_test.boxed": {{Name: "a", Source: boxed{[]int{1}}}},
			"Nodes[0].Weight":                        {{Name: "c", Source: p, Weight: -1}},
		} {
			left, err := c.SetNodes(nodes)
			if !errors.Is(err, tidegate.ErrConfig) || len(left) != 0 || !strings.Contains(err.Error(), "Config."+name) {
				t.Errorf("%s: %v, left %v", name, err, left)
			}
			if got := names(t, c); !slices.Equal(got, []string{"a", "b"}) || !c.Status().Nodes[1].Usable {
				t.Errorf("%s: the nodes are %v", name, got)
			}
		}
		given := listed(p, r)
		setNodes(t, c, given)
		if given[0].Weight != 0 {
			t.Error("SetNodes changed the caller's nodes")
		}
		c.Close()
		if left, err := c.SetNodes(listed(p)); !errors.Is(err, tidegate.ErrClosed) || left != nil {
			t.Errorf("after Close: %v, %v", left, err)
		}
		if got := names(t, c); len(got) != 2 {
			t.Errorf("after Close the nodes are %v", got)
		}
	})
}

// A session leaves a replica that is no more: what it saw there is bounded by the
// primary.
func TestSetNodesRemovesASessionsReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r, other := primaryStub(1, 100), replicaStub(2, 100), replicaStub(3, 80)
		c := core(t, engine.Config{Wait: time.Second}, p, r, other)
		ctx, s := sessionAt(t.Context(), needs(90))
		if d := through(ctx, t, c, tidegate.Causal); d.Node != "b" {
			t.Fatal(d)
		}
		p.at(120) // its look says what b can have shown at most
		setNodes(t, c, []engine.Node{{Name: "a", Source: p}, {Name: "c", Source: other}}, r)
		time.AfterFunc(10*time.Millisecond, func() { other.at(110) })
		time.AfterFunc(20*time.Millisecond, func() { other.at(120) })
		d := through(ctx, t, c, tidegate.Causal)
		if d.Node != "c" || d.Unproven || d.Required != tidegate.At(120) || d.Waited < 19*time.Millisecond {
			t.Errorf("%v, want c when it has all that b can have shown", d)
		}
		if seen := s.Token().Marks()[0].Seen; !slices.Equal(seen, []tidegate.Incarnation{300}) {
			t.Errorf("seen is %v", seen)
		}
	})
}

// A read in flight on a node that goes ends as it would have, and counts for as
// long as it runs.
func TestSetNodesUnderAReadInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r, other := primaryStub(1, 100), replicaStub(2, 100), replicaStub(3, 100)
		c := core(t, engine.Config{}, p, r)
		ctx, _ := sessionAt(t.Context(), needs(50))
		rd, failing := begin(ctx, t, c, tidegate.Causal), begin(ctx, t, c, tidegate.Causal)
		setNodes(t, c, listed(p), r)
		setNodes(t, c, listed(p, other))
		if !c.Admit(ctx, rd, r.born()) || rd.Source() != engine.Source(r) {
			t.Error("the read's connection is refused, or belongs to another source now")
		}
		if d := c.Decision(rd); d.Node != "b" || d.Observed != tidegate.At(100) {
			t.Error(d)
		}
		if n := c.Status().Nodes[1].Flying; n != 2 {
			t.Errorf("%d reads in flight", n)
		}
		c.End(rd)
		// The other one's connection is gone: it goes on, and only its own node is
		// left out.
		c.Fail(failing, tidegate.RetryConnection, false)
		if err := c.Begin(ctx, tidegate.Causal, failing); err != nil {
			t.Fatal(err)
		}
		c.End(failing)
		if n := c.Status().Nodes[0].Flying + c.Status().Nodes[1].Flying; n != 0 {
			t.Errorf("%d reads in flight", n)
		}
	})
}

// Without the primary writes are refused, and reads that a replica covers go on.
func TestSetNodesRemovesThePrimary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r := primaryStub(1, 100), replicaStub(2, 100)
		c := core(t, engine.Config{}, p, r)
		setNodes(t, c, []engine.Node{{Name: "b", Source: r}}, p)
		ctx, _ := sessionAt(t.Context(), needs(90))
		if _, err := c.BeginWrite(ctx); !errors.Is(err, tidegate.ErrNoPrimary) {
			t.Errorf("a write: %v", err)
		}
		if _, ok := c.Primary(); ok || c.Status().Primary != "" {
			t.Error("there is a primary")
		}
		if err := c.Begin(ctx, strong, &engine.Read{}); !errors.Is(err, tidegate.ErrNoPrimary) {
			t.Errorf("a strong read: %v", err)
		}
		for range 3 {
			if d := through(ctx, t, c, tidegate.Causal); d.Node != "b" || d.Unproven {
				t.Errorf("a causal read: %v", d)
			}
		}
		setNodes(t, c, listed(p, r))
		if w, err := c.BeginWrite(ctx); err != nil || w.Source() != engine.Source(p) {
			t.Errorf("a write when it is back: %v", err)
		}
	})
}

func TestSetNodesUpToTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := func(first int) (all []engine.Node) {
			for i := range engine.MaxNodes {
				s := replicaStub(uint64(first+i), 100)
				if i == engine.MaxNodes-1 {
					s = primaryStub(uint64(first+i), 100)
				}
				all = append(all, engine.Node{Name: fmt.Sprintf("n%d", first+i), Source: s})
			}
			return all
		}
		c := core(t, engine.Config{}, primaryStub(1, 100))
		nodes := full(1000)
		left, err := c.SetNodes(nodes)
		if err != nil || len(left) != 1 {
			t.Fatal(left, err)
		}
		again := full(2000) // all at once
		if left, err = c.SetNodes(again); err != nil || len(left) != engine.MaxNodes || left[63] != nodes[63].Source {
			t.Fatal(len(left), err)
		}
		time.Sleep(time.Millisecond)
		if s := c.Status(); len(s.Nodes) != engine.MaxNodes || s.Primary != "n2063" {
			t.Errorf("%d nodes, the primary is %q", len(s.Nodes), s.Primary)
		}
		ctx, _ := sessionAt(t.Context(), needs(50))
		if d := c.Decision(begin(ctx, t, c, tidegate.Causal)); d.Role != tidegate.RoleReplica {
			t.Error(d)
		}
		if w, err := c.BeginWrite(ctx); err != nil || w.Node != 63 {
			t.Errorf("a write: node %d, %v", w.Node, err)
		}
	})
}

// Counters never go down when a node leaves.
func TestSetNodesKeepsCounting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r, other := primaryStub(1, 100), replicaStub(2, 100), replicaStub(3, 100)
		c := core(t, engine.Config{ProbeInterval: 10 * time.Millisecond}, p, r)
		var before engine.Stats
		for i := range 20 {
			if _, err := c.SetNodes(listed(p, []*stub{r, other}[i%2])); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
			c.Suspect(1)
			time.Sleep(30 * time.Millisecond)
			now := c.Stats()
			if now.Probes < before.Probes+4 || now.DemandProbes <= before.DemandProbes {
				t.Fatalf("counted %+v, then %+v", before, now)
			}
			before = now
		}
		c.Close()
		before = c.Stats()
		asked := uint64(p.asked + r.asked + other.asked)
		if n := before.Probes + before.DemandProbes; n != asked {
			t.Errorf("%d probes were counted, %d were sent", n, asked)
		}
	})
}

// boxed can be compared by its type, not by its value.
type boxed struct{ v any }

func (boxed) Probe(context.Context, []uint64) (engine.Observation, error) {
	return engine.Observation{}, errors.New("never asked")
}
