package engine_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// A replica that hangs is gone around long before a look at it times out, as long as reads
// have somewhere else to go, and without an ejection if it answers in the end.
func TestReplicaThatHangs(t *testing.T) {
	for name, x := range map[string]struct {
		replicas int
		want     map[int]bool // where reads may go meanwhile
	}{
		"another replica": {2, map[int]bool{2: true}},
		"the primary":     {1, map[int]bool{0: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var h told
				stubs := []*stub{primaryStub(1, 100), replicaStub(2, 100), replicaStub(3, 100)}[:x.replicas+1]
				c := core(t, engine.Config{ProbeInterval: 100 * time.Millisecond, ProbeTimeout: 2 * time.Second, Hooks: []tidegate.Hook{h.hook()}}, stubs...)
				ctx, _ := sessionAt(t.Context(), needs(50))
				read := func() int {
					rd := begin(ctx, t, c, tidegate.Causal)
					c.End(rd)
					return rd.Node()
				}
				time.Sleep(time.Second)
				for read() != 1 { // a session that is at home there
					ctx, _ = sessionAt(t.Context(), needs(50))
				}
				h.news()
				stubs[1].set(func(s *stub) { s.took = 900 * time.Millisecond })
				time.Sleep(350 * time.Millisecond) // until the next look, and what makes it silent
				for range 50 {
					if n := read(); !x.want[n] {
						t.Fatalf("a read went to node %d", n)
					}
				}
				if v := c.Explain(ctx, tidegate.Causal).Nodes[1]; v.Eligible || v.Why != "has been asked and does not answer: reads go around it until it does" {
					t.Errorf("explained: %v %s", v.Eligible, v.Why)
				}
				stubs[1].set(func(s *stub) { s.took = time.Millisecond })
				time.Sleep(2 * time.Second)
				back := false
				for range 100 {
					ctx, _ = sessionAt(t.Context(), needs(50))
					back = back || read() == 1
				}
				if !back {
					t.Error("it gets no reads although it answers again")
				}
				got := slices.DeleteFunc(h.news(), func(c tidegate.Change) bool { return c.Kind == tidegate.FallbacksHigh })
				if len(got) > 0 {
					t.Errorf("told %+v", got)
				}
			})
		})
	}
}

// Where nobody else answers either, it is as good as any.
func TestAllThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stubs := []*stub{primaryStub(1, 100), replicaStub(2, 100)}
		c := core(t, engine.Config{ProbeInterval: 100 * time.Millisecond, ProbeTimeout: 10 * time.Second}, stubs...)
		time.Sleep(time.Second)
		for _, s := range stubs {
			s.set(func(s *stub) { s.took = 5 * time.Second })
		}
		time.Sleep(time.Second)
		ctx, _ := sessionAt(t.Context(), needs(50))
		if rd := begin(ctx, t, c, tidegate.Causal); rd.Node() != 1 {
			t.Errorf("the read went to node %d", rd.Node())
		}
	})
}
