package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// told collects what a hook is told.
type told struct {
	mu       sync.Mutex
	contexts []context.Context
	reads    []tidegate.Decision
	probes   []tidegate.Probe
	changes  []tidegate.Change
}

func (h *told) hook() tidegate.Hook {
	return tidegate.Hook{
		Decided: func(ctx context.Context, d tidegate.Decision) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.contexts, h.reads = append(h.contexts, ctx), append(h.reads, d)
		},
		Probed: func(p tidegate.Probe) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.probes = append(h.probes, p)
		},
		Changed: func(c tidegate.Change) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.changes = append(h.changes, c)
		},
	}
}

// decisions returns the decisions since the last call.
func (h *told) decisions() []tidegate.Decision {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.reads
	h.reads, h.contexts = nil, nil
	return d
}

// looks returns the probes since the last call.
func (h *told) looks() []tidegate.Probe {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.probes
	h.probes = nil
	return p
}

// news returns the changes since the last call.
func (h *told) news() []tidegate.Change {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.changes
	h.changes = nil
	return c
}

// mine is a key of a context value that the caller's own code put there.
type mine struct{}

func TestHookDecidedOncePerDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h told
		p, r := primaryStub(1, 100), replicaStub(2, 100)
		c := core(t, engine.Config{Hooks: []tidegate.Hook{h.hook()}}, p, r)
		ctx, _ := sessionAt(context.WithValue(t.Context(), mine{}, "yes"))
		for _, class := range []tidegate.Class{tidegate.Causal, relaxed, strong} {
			ctx, seen := tidegate.Observe(ctx)
			rd := begin(ctx, t, c, class)
			if n := len(h.reads); n != 0 {
				t.Errorf("%v: told %d times before the connection was there", class, n)
			}
			if !c.Admit(ctx, rd, []*stub{p, r}[rd.Node()].born()) {
				t.Fatal("refused")
			}
			c.End(rd)
			c.End(rd)
			if len(h.contexts) != 1 || h.contexts[0].Value(mine{}) != "yes" || tidegate.SessionFrom(h.contexts[0]) == nil {
				t.Errorf("%v: told with %v", class, h.contexts)
			}
			got, want := h.decisions(), seen.All()
			for i := range got {
				got[i].Staleness, want[i].Staleness = 0, 0
			}
			if len(got) != 1 || got[0].Class != class || !slices.Equal(got, want) {
				t.Errorf("%v: the hook was told %v, the observer %v", class, got, want)
			}
		}
	})
}

// Each attempt that had a connection has its decision.
func TestHookDecidedForRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h told
		stubs := []*stub{primaryStub(1, 100), replicaStub(2, 100), replicaStub(3, 100)}
		c := core(t, engine.Config{Hooks: []tidegate.Hook{h.hook()}}, stubs...)
		ctx, _ := sessionAt(t.Context())
		rd := &engine.Read{}
		var nodes []string
		for attempt := range 3 {
			if err := c.Begin(ctx, tidegate.Causal, rd); err != nil {
				t.Fatal(err)
			}
			if !c.Admit(ctx, rd, stubs[rd.Node()].born()) {
				t.Fatal("refused")
			}
			d := h.decisions()
			if len(d) != 1 || d[0].Retries != attempt || d[0].RetryCause != []tidegate.RetryCause{0, tidegate.RetryShutdown, tidegate.RetryShutdown}[attempt] || slices.Contains(nodes, d[0].Node) {
				t.Fatalf("attempt %d after %v: told %v", attempt, nodes, d)
			}
			nodes = append(nodes, d[0].Node)
			if attempt < 2 {
				c.Fail(rd, tidegate.RetryShutdown, true)
			} else if d[0].Node != "a" || d[0].Reason != tidegate.ReasonReplicaFailed {
				t.Errorf("told %v, want the primary since the replicas failed", d)
			}
		}
		c.End(rd)
	})
}

// A read that is refused goes nowhere, and the hook is told so.
func TestHookDecidedForRefusedReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h told
		r := replicaStub(2, 100)
		c := core(t, engine.Config{Hooks: []tidegate.Hook{h.hook()}, Wait: 5 * time.Millisecond, PrimaryWait: -1}, r)
		ctx, _ := sessionAt(t.Context(), needs(200))
		err := c.Begin(ctx, tidegate.Causal, &engine.Read{})
		d := h.decisions()
		if !errors.Is(err, tidegate.ErrNotFresh) || len(d) != 1 {
			t.Fatalf("%v, told %v", err, d)
		}
		if x := d[0]; x.Node != "" || x.Role != tidegate.RoleUnknown || x.Required != tidegate.At(200) || x.Waited != 5*time.Millisecond || x.Cluster != "main" || x.StalenessKnown {
			t.Errorf("told %+v", x)
		}
		// What is refused for other reasons is no decision.
		over, cancel := context.WithCancel(ctx)
		cancel()
		for _, err := range []error{c.Begin(over, tidegate.Causal, &engine.Read{}), c.Begin(ctx, tidegate.Strong("", ""), &engine.Read{})} {
			if d := h.decisions(); err == nil || errors.Is(err, tidegate.ErrNotFresh) || len(d) != 0 {
				t.Errorf("%v, told %v", err, d)
			}
		}
	})
}

func TestHookProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h told
		p, r := primaryStub(1, 100), replicaStub(2, 60)
		p.took, r.took = 2*time.Millisecond, 3*time.Millisecond
		c := core(t, engine.Config{Hooks: []tidegate.Hook{h.hook()}}, p, r)
		at := func(i int, want tidegate.Probe) {
			t.Helper()
			got := h.looks()
			if len(got) != i+1 || got[i] != want {
				t.Errorf("told\n %+v, want as number %d\n %+v", got, i, want)
			}
		}
		look := func(i int) {
			c.Suspect(i)
			time.Sleep(10 * time.Millisecond)
		}
		at(1, tidegate.Probe{Cluster: "main", Node: "b", Took: 3 * time.Millisecond, Role: tidegate.RoleReplica, Usable: true, Applied: tidegate.At(60), Lag: 40, LagKnown: true})
		r.at(100)
		time.Sleep(time.Second)
		look(1)
		// The primary was asked for 100 a second and 5 ms before b's answer arrived.
		at(0, tidegate.Probe{
			Cluster: "main", Node: "b", Took: 3 * time.Millisecond, Role: tidegate.RoleReplica, Usable: true, Applied: tidegate.At(100), LagKnown: true,
			Staleness: time.Second + 6*time.Millisecond, StalenessKnown: true,
		})
		look(0)
		at(0, tidegate.Probe{Cluster: "main", Node: "a", Took: 2 * time.Millisecond, Role: tidegate.RolePrimary, Applied: tidegate.At(100)})
		gone := errors.New("refused")
		r.set(func(r *stub) { r.err = gone })
		look(1)
		at(0, tidegate.Probe{Cluster: "main", Node: "b", Took: 3 * time.Millisecond, Err: gone})
		r.set(func(r *stub) { r.err, r.answer.Epoch = nil, epoch(7) })
		time.Sleep(3 * time.Hour) // it fails: nobody can ask for a look
		got := slices.DeleteFunc(h.looks(), func(x tidegate.Probe) bool { return x.Node != "b" })
		if x := got[len(got)-1]; x.Usable || x.Err != nil || x.Applied != tidegate.At(100) || x.LagKnown || x.StalenessKnown || x.Role != tidegate.RoleReplica {
			t.Errorf("of another history: %+v", x)
		}
	})
}

// Every kind of change is told, with what belongs to it, in order.
func TestHookChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h told
		p, r := primaryStub(1, 100), replicaStub(2, 100)
		r.err = errors.New("starting")
		c := core(t, engine.Config{ProbeInterval: 10 * time.Millisecond, Hooks: []tidegate.Hook{h.hook()}}, p, r)
		expect := func(what string, want ...tidegate.Change) {
			t.Helper()
			time.Sleep(2 * time.Second)
			got := h.news()
			if what == "start" {
				slices.SortFunc(got, func(a, b tidegate.Change) int { return int(a.Kind) - int(b.Kind) })
			}
			for i := range want {
				want[i].Cluster = "main"
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: told\n %+v, want\n %+v", what, got, want)
			}
		}
		const primary, replica = tidegate.RolePrimary, tidegate.RoleReplica
		expect("start", tidegate.Change{Kind: tidegate.NodeFound, Node: "a", Role: primary}, tidegate.Change{Kind: tidegate.NodeFailing, Node: "b", Err: r.err})
		r.set(func(s *stub) { s.err = nil })
		expect("first answer", tidegate.Change{Kind: tidegate.NodeFound, Node: "b", Role: replica})
		p.at(200)
		expect("positions")
		refused := errors.New("refused")
		r.set(func(s *stub) { s.err = refused })
		expect("failure", tidegate.Change{Kind: tidegate.NodeFailing, Node: "b", Role: replica, Before: replica, Err: refused},
			tidegate.Change{Kind: tidegate.NodeEjected, Node: "b", Role: replica, Ejection: tidegate.EjectionFailing})
		r.set(func(s *stub) { s.err = errors.New("still refused") })
		expect("another failure")
		r.set(func(s *stub) { s.err = nil })
		expect("return", tidegate.Change{Kind: tidegate.NodeAnswering, Node: "b", Role: replica, Before: replica},
			tidegate.Change{Kind: tidegate.NodeReturned, Node: "b", Role: replica})
		r.set(func(s *stub) { s.answer.Incarnation++ })
		expect("new life", tidegate.Change{Kind: tidegate.NodeRestarted, Node: "b", Role: replica, Before: replica})
		r.set(func(s *stub) { s.answer.Role, s.answer.Epoch, s.answer.Ceiling = primary, epoch(2), tidegate.At(200) })
		expect("promotion", tidegate.Change{Kind: tidegate.RoleChanged, Node: "b", Role: primary, Before: replica},
			tidegate.Change{Kind: tidegate.NodeFenced, Node: "a", Role: primary, Before: primary, Fence: tidegate.FenceDeposed},
			tidegate.Change{Kind: tidegate.HistoryChanged, Epoch: epoch(2), EpochBefore: epoch(1)})
		p.set(func(s *stub) { s.answer.Epoch = epoch(2) })
		expect("two primaries", tidegate.Change{Kind: tidegate.NodeFenced, Node: "a", Role: primary, Before: primary, Fence: tidegate.FenceConflict},
			tidegate.Change{Kind: tidegate.NodeFenced, Node: "b", Role: primary, Before: primary, Fence: tidegate.FenceConflict},
			tidegate.Change{Kind: tidegate.PrimariesConflict, Epoch: epoch(2)})
		p.set(func(s *stub) {
			s.answer.Role, s.answer.Ceiling, s.answer.Incarnation = replica, tidegate.Position{}, 150
			s.answer.Applied, s.answer.Bound = tidegate.At(100), tidegate.At(100)
		})
		expect("one demoted, after a restart", tidegate.Change{Kind: tidegate.RoleChanged, Node: "a", Role: replica, Before: primary},
			tidegate.Change{Kind: tidegate.NodeRestarted, Node: "a", Role: replica, Before: primary},
			tidegate.Change{Kind: tidegate.NodeUnfenced, Node: "a", Role: replica, Before: primary},
			tidegate.Change{Kind: tidegate.NodeUnfenced, Node: "b", Role: primary, Before: primary}, tidegate.Change{Kind: tidegate.ConflictOver, Epoch: epoch(2)})
		c.SetRollout(tidegate.RolloutOff)
		expect("rollout", tidegate.Change{Kind: tidegate.RolloutChanged, Rollout: tidegate.RolloutOff})
		third := replicaStub(3, 100)
		third.answer.Epoch = epoch(2)
		if _, err := c.SetNodes([]engine.Node{{Name: "b", Source: r}, {Name: "c", Source: third}}); err != nil {
			t.Fatal(err)
		}
		expect("nodes", tidegate.Change{Kind: tidegate.NodeRemoved, Node: "a", Role: replica}, tidegate.Change{Kind: tidegate.NodeAdded, Node: "c"},
			tidegate.Change{Kind: tidegate.NodeFound, Node: "c", Role: replica})
	})
}

// Probed and Changed come one at a time; what hooks keep needs no lock of theirs.
func TestHooksAreCalledOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inside, probes, changes atomic.Int32
		last := map[string]tidegate.Change{} // the race detector looks at it
		alone := func(count *atomic.Int32) func() {
			if inside.Add(1) != 1 {
				t.Error("two calls at a time")
			}
			count.Add(1)
			return func() { inside.Add(-1) }
		}
		hook := tidegate.Hook{
			Probed: func(p tidegate.Probe) {
				defer alone(&probes)()
				if was := last[p.Node].Kind; was == tidegate.NodeRemoved || was == tidegate.NodeFailing != (p.Err != nil) {
					t.Errorf("%s: the probe %v came before the change that it makes, or after %v", p.Node, p.Err, was)
				}
			},
			Changed: func(ch tidegate.Change) {
				defer alone(&changes)()
				if ch.Kind != tidegate.RolloutChanged {
					last[ch.Node] = ch
				}
			},
		}
		var stubs []*stub
		for i := range 20 {
			s := replicaStub(uint64(2+i), 100)
			if i == 0 {
				s = primaryStub(1, 100)
			}
			stubs = append(stubs, s)
		}
		c := core(t, engine.Config{ProbeInterval: time.Millisecond, Hooks: []tidegate.Hook{hook}}, stubs...)
		nodes := func(n int) (all []engine.Node) {
			for i, s := range stubs[:n] {
				all = append(all, engine.Node{Name: string(rune('a' + i)), Source: s})
			}
			return all
		}
		for i := range 100 {
			stubs[1+i%10].set(func(s *stub) {
				if s.err = nil; i%2 == 0 {
					s.err = errors.New("refused")
				}
			})
			if _, err := c.SetNodes(nodes(15 + i%6)); err != nil {
				t.Fatal(err)
			}
			c.SetRollout([]tidegate.Rollout{tidegate.RolloutOff, tidegate.RolloutOn}[i%2])
			time.Sleep(3 * time.Millisecond)
		}
		c.Close()
		if probes.Load() < 1000 || changes.Load() < 300 {
			t.Errorf("%d probes and %d changes were told: too few to prove anything", probes.Load(), changes.Load())
		}
	})
}

// All hooks are called, in order; what they leave out is left out.
func TestHooksAreCalledInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var calls []string
		call := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, fmt.Sprintf(format, args...))
		}
		hook := func(name string) tidegate.Hook {
			return tidegate.Hook{
				Decided: func(context.Context, tidegate.Decision) { call("%s decided", name) },
				Probed:  func(tidegate.Probe) { call("%s probed", name) },
				Changed: func(ch tidegate.Change) { call("%s %v", name, ch.Kind) },
			}
		}
		half := hook("second")
		half.Probed = nil
		c := core(t, engine.Config{Hooks: []tidegate.Hook{hook("first"), {}, half, hook("third")}}, primaryStub(1, 100))
		rd := begin(t.Context(), t, c, tidegate.Causal)
		if !c.Admit(t.Context(), rd, primaryStub(1, 100).born()) {
			t.Fatal("refused")
		}
		c.End(rd)
		want := []string{
			"first node-found", "second node-found", "third node-found", "first probed", "third probed", "first decided", "second decided", "third decided",
		}
		if !slices.Equal(calls, want) {
			t.Errorf("called %q, want %q", calls, want)
		}
	})
}

// Without a hook and an observer a read on a replica costs no allocation.
func TestDecidedCostsNothingWhenNobodyListens(t *testing.T) {
	p, r := primaryStub(1, 100), replicaStub(2, 100)
	idle := tidegate.Hook{Probed: func(tidegate.Probe) {}, Changed: func(tidegate.Change) {}}
	c := core(t, engine.Config{Hooks: []tidegate.Hook{idle}}, p, r)
	ctx, _ := sessionAt(t.Context(), needs(50))
	born := [...]*engine.Observation{p.born(), r.born()}
	var rd engine.Read
	read := func() {
		rd = engine.Read{}
		if err := c.Begin(ctx, tidegate.Causal, &rd); err != nil || !c.Admit(ctx, &rd, born[rd.Node()]) {
			t.Fatal("refused", err)
		}
		c.End(&rd)
	}
	read()
	if rd.Primary() {
		t.Fatal("the read went to the primary")
	}
	if n := testing.AllocsPerRun(1000, read); n != 0 {
		t.Errorf("%v allocations for each read", n)
	}
	observed, seen := tidegate.Observe(ctx)
	ctx = observed
	if testing.AllocsPerRun(100, read); len(seen.All()) == 0 {
		t.Error("an observer was not told")
	}
}
