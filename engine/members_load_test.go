package engine_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// Reads and writes go on while nodes come, go and change; none is lost.
func TestSetNodesUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const replicas = 6
		stubs := []*stub{primaryStub(1, 100)}
		bySource := map[engine.Source]*stub{stubs[0]: stubs[0]}
		for i := range 2 * replicas { // two servers for each name
			s := replicaStub(uint64(2+i), 100)
			stubs = append(stubs, s)
			bySource[s] = s
		}
		c := core(t, engine.Config{ProbeInterval: 5 * time.Millisecond}, stubs[:1+replicas]...)
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
		defer stop()
		var wg sync.WaitGroup
		var onReplicas, all, failed atomic.Int64
		for i := range 16 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(1, uint64(i)))
				for ctx.Err() == nil {
					ctx, _ := sessionAt(t.Context(), needs(100))
					for range 5 {
						if r.IntN(5) == 0 {
							w, err := c.BeginWrite(ctx)
							if err != nil || w.Source() != engine.Source(stubs[0]) {
								t.Errorf("a write: %v", err)
								return
							}
							c.Committed(&w, stubs[0].born(), tidegate.At(100), true)
							c.EndWrite(&w)
						}
						class := []tidegate.Class{tidegate.Causal, tidegate.Causal, relaxedAny, strong}[r.IntN(4)]
						var rd engine.Read
						for attempt := 0; ; attempt++ {
							err := c.Begin(ctx, class, &rd)
							if err != nil || attempt > 3 {
								t.Errorf("attempt %d: %v", attempt, err)
								return
							}
							s := bySource[rd.Source()]
							if s == nil || rd.Primary() != (s == stubs[0]) {
								t.Errorf("the primary %v, the source %v", rd.Primary(), rd.Source())
								return
							}
							if c.Admit(ctx, &rd, s.born()) {
								if attempt > 1 || r.IntN(10) > 0 {
									break
								}
								failed.Add(1)
								c.Fail(&rd, tidegate.RetryConnection, true)
								if rd.Primary() {
									rd = engine.Read{}
								}
							}
						}
						time.Sleep(time.Duration(r.Int64N(int64(time.Millisecond))))
						if all.Add(1); !rd.Primary() {
							onReplicas.Add(1)
						}
						c.End(&rd)
					}
				}
			})
		}
		r := rand.New(rand.NewPCG(2, 2))
		changes := 0
		for ; ctx.Err() == nil; changes++ {
			nodes := listed(stubs[:1+replicas]...)
			for i := range nodes {
				nodes[i].Weight = 1 + r.IntN(3)
				if i > 0 && r.IntN(2) == 0 {
					nodes[i].Source = stubs[i+replicas]
				}
			}
			keep := nodes[:1]
			for _, n := range nodes[1:] {
				if r.IntN(3) > 0 {
					keep = append(keep, n)
				}
			}
			r.Shuffle(len(keep), func(i, j int) { keep[i], keep[j] = keep[j], keep[i] })
			if _, err := c.SetNodes(keep); err != nil {
				t.Error(err)
			}
			if s := c.Status(); len(s.Nodes) != len(keep) {
				t.Errorf("%d nodes, want %d", len(s.Nodes), len(keep))
			}
			time.Sleep(time.Duration(r.Int64N(int64(5 * time.Millisecond))))
		}
		wg.Wait()
		t.Logf("%d reads, %d on replicas, %d failed and began again, %d changes", all.Load(), onReplicas.Load(), failed.Load(), changes)
		if all.Load() < 1000 || onReplicas.Load() < all.Load()/4 || changes < 300 {
			t.Error("too little happened to prove anything")
		}
		if _, err := c.SetNodes(listed(stubs[:1+replicas]...)); err != nil {
			t.Fatal(err)
		}
		for _, n := range c.Status().Nodes {
			if n.Flying != 0 {
				t.Errorf("%d reads are in flight on %s", n.Flying, n.Node)
			}
		}
	})
}
