package route

import (
	"context"
	"fmt"
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// marked returns a router over a healthy cluster of one primary and n-1
// replicas, and a ticket of a session that has written.
func marked(n int) (*Router, *Ticket) {
	return router(hold(healthy(n)), n), markedTicket()
}

func markedTicket() *Ticket {
	l := ledger.New("main", 7, nil)
	l.Reached(epoch, tidegate.At(100))
	return &Ticket{Class: tidegate.Causal, Ledger: l}
}

// decide is what Begin does when a node is eligible. Nodes in exclude are not
// used; a session that stays on one of them has to leave.
func decide(r *Router, tk *Ticket, t *freshness.Table, exclude uint64) {
	var asks ledger.Asks
	n := need{exclude: exclude}
	l := tk.Ledger
	l.Lock()
	node, reason, _ := r.pickCausal(l, t, &n, &asks)
	r.take(tk, t, node, reason)
	l.Unlock()
}

// stayOnce decides and ends the read. The read "ended" before the table's looks
// were sent, so that leaving finds it bounded.
func stayOnce(r *Router, tk *Ticket, t *freshness.Table) {
	decide(r, tk, t, 0)
	r.Done(tk, 1)
}

// leaveOnce makes the session leave where it is: what it saw there is resolved,
// and the least loaded of the other eligible nodes picked.
func leaveOnce(r *Router, tk *Ticket, t *freshness.Table) {
	decide(r, tk, t, 1<<uint(tk.Node))
	r.Done(tk, 1)
}

// BenchmarkPick measures the router for sessions with a mark.
//
//   - stay: the whole decision for a session that stays where it reads: its lock,
//     the choice, the notes in the ledger and in the node's load; and the end of the
//     read, without which the next one would find it in flight.
//   - choose: the choice alone, under the lock, for a session that does not stay
//     and has nothing left to resolve.
//   - leave: the whole decision for one that leaves, with what it saw there to be
//     resolved, and the end of the read, without which there would be nothing to
//     leave.
//   - read: all that the router costs a read that stays, from Begin to Done with
//     its look at the clock.
func BenchmarkPick(b *testing.B) {
	for _, nodes := range []int{2, 5, 20} {
		benchmark(b, "stay", nodes, func(r *Router, tk *Ticket, t *freshness.Table) {
			r.stay(tk, t)
			r.Done(tk, 1)
		})
		if nodes > 2 { // else there is no other replica
			benchmark(b, "choose", nodes, func(r *Router, tk *Ticket, t *freshness.Table) {
				var asks ledger.Asks
				n := need{exclude: 1 << uint(tk.Node)}
				tk.Ledger.Lock()
				r.pickCausal(tk.Ledger, t, &n, &asks)
				tk.Ledger.Unlock()
			})
			benchmark(b, "leave", nodes, leaveOnce)
		}
		ctx := context.Background()
		benchmark(b, "read", nodes, func(r *Router, tk *Ticket, _ *freshness.Table) {
			if err := r.Begin(ctx, tk); err != nil {
				b.Error(err)
			}
			r.Done(tk, mono.Now())
		})
	}
}

// benchmark runs once for one session, then for one session in each goroutine.
func benchmark(b *testing.B, name string, nodes int, once func(*Router, *Ticket, *freshness.Table)) {
	b.Run(fmt.Sprintf("%s/nodes=%d", name, nodes), func(b *testing.B) {
		r, tk := marked(nodes)
		t := r.facts.Table()
		stayOnce(r, tk, t)
		b.ReportAllocs()
		for b.Loop() {
			once(r, tk, t)
		}
	})
	b.Run(fmt.Sprintf("%s-parallel/nodes=%d", name, nodes), func(b *testing.B) {
		r, _ := marked(nodes)
		t := r.facts.Table()
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			tk := markedTicket()
			stayOnce(r, tk, t)
			for pb.Next() {
				once(r, tk, t)
			}
		})
	})
}

func TestPickDoesNotAllocate(t *testing.T) {
	r, tk := marked(5)
	table := r.facts.Table()
	decide(r, tk, table, 0)
	r.Done(tk, 1)
	ctx := context.Background()
	for _, c := range []struct {
		name string
		do   func()
	}{
		{"staying", func() { stayOnce(r, tk, table) }},
		{"leaving", func() { leaveOnce(r, tk, table) }},
		{"a whole read", func() {
			if r.Begin(ctx, tk) != nil {
				t.Error("refused")
			}
			r.Done(tk, mono.Now())
		}},
	} {
		if n := testing.AllocsPerRun(1000, c.do); n != 0 {
			t.Errorf("%s allocates %v times", c.name, n)
		}
	}
	// A session's first read.
	fresh := func() { decide(r, &Ticket{Ledger: ledger.New("main", 7, nil)}, table, 0) }
	empty := func() { ledger.New("main", 7, nil) }
	if got, want := testing.AllocsPerRun(1000, fresh), testing.AllocsPerRun(1000, empty); got > want+1 {
		t.Errorf("a session's first read allocates %v times, its ledger and ticket %v", got, want+1)
	}
}
