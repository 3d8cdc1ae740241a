package route

import (
	"context"
	"sync"
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// Parallel first requests of one session agree on a replica, here and in another
// process, so that nothing has to be resolved between them.
func TestParallelFirstReadsAgree(t *testing.T) {
	t.Parallel()
	table := healthy(5)
	here, there := router(hold(table), 5), router(hold(table), 5)
	for nonce := range uint64(200) {
		own := ledger.New("main", nonce+1, nil)
		tickets := make([]*Ticket, littleLoaded)
		var all sync.WaitGroup
		for i := range tickets {
			r, l := here, own
			if i%2 == 1 {
				r, l = there, ledger.New("main", nonce+1, nil)
			}
			tk := &Ticket{Ledger: l}
			tickets[i] = tk
			all.Go(func() {
				decide(r, tk, table, 0)
				r.Done(tk, mono.Now())
			})
		}
		all.Wait()
		for _, tk := range tickets {
			if tk.Node != tickets[0].Node {
				t.Fatalf("session %d reads at %d and at %d", nonce, tickets[0].Node, tk.Node)
			}
		}
	}
}

func TestParallelReads(t *testing.T) {
	t.Parallel()
	const nodes = 5
	facts := hold(healthy(nodes))
	r := router(facts, nodes)
	shared := ledger.New("main", 7, nil)
	classes := []tidegate.Class{tidegate.Causal, strong, anyAge}
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			own := ledger.New("main", uint64(g+1), nil)
			for i := range 300 {
				if i%50 == 0 {
					next := healthy(nodes)
					for n := range next.Nodes {
						next.Nodes[n].Obs.Sent = mono.Now()
						next.Nodes[n].Sent = next.Nodes[n].Obs.Sent
					}
					next.Shown = tidegate.At(100)
					facts.table.Store(next)
				}
				l := own
				if i%3 == 0 {
					l = shared
				}
				tk := &Ticket{Class: classes[i%len(classes)], Ledger: l}
				ctx, cancel := context.WithCancel(context.Background())
				cancel() // a read that would have to wait gives up
				if err := r.Begin(ctx, tk); err != nil {
					continue
				}
				switch i % 7 {
				case 0:
					r.Failed(tk, tidegate.RetryConnection, i%2 == 0)
				case 1:
					r.Undo(tk)
				case 2:
					if r.Reconsider(ctx, tk, func(*freshness.Observation) bool { return i%2 == 0 }) {
						r.Done(tk, mono.Now())
					}
				default:
					r.Decision(tk)
					r.Explain(l, tk.Class)
					l.Reached(epoch, tidegate.At(uint64(50+i%50)))
					r.Done(tk, mono.Now())
				}
			}
		})
	}
	all.Wait()
	for i := range nodes {
		if f := r.Flying(i); f != 0 {
			t.Errorf("node %d has %d reads in flight", i, f)
		}
	}
}
