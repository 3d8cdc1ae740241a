package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// Two hundred reads that wait for one replica at any time, with new ones coming
// in that are in a hurry, cost it no more than its budget of probes, one at a
// time.
func TestDemandProbesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const reads, rate, burst = 1000, 250, 8
		p, r := primaryStub(1, 100), replicaStub(2, 10)
		r.took = 300 * time.Microsecond
		c := core(t, engine.Config{Wait: 400 * time.Millisecond, DemandRate: rate, DemandBurst: burst}, p, r)
		done := make(chan *engine.Read, reads)
		for range reads {
			ctx, _ := sessionAt(t.Context(), needs(50))
			go func() { done <- begin(ctx, t, c, tidegate.Causal) }()
			time.Sleep(time.Millisecond)
		}
		r.set(func(r *stub) {
			if r.most != 1 {
				t.Errorf("%d probes of one node at once, want 1", r.most)
			}
			if r.asked > rate+burst+1 || r.asked < rate*9/10 {
				t.Errorf("%d probes in a second of demand, want about %d", r.asked, rate)
			}
		})
		for range reads {
			went(t, c, <-done, "a", tidegate.ReasonBehind, false)
		}
		if st := c.Stats(); st.Waits != reads || st.Fallbacks != reads {
			t.Errorf("%d waits and %d fallbacks were counted, want %d", st.Waits, st.Fallbacks, reads)
		}
	})
}

// All who wait are woken by the look that helps them.
func TestOneLookServesAllWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiters = 200
		p, r := primaryStub(1, 100), replicaStub(2, 10)
		c := core(t, engine.Config{Wait: time.Second}, p, r)
		done := make(chan *engine.Read, waiters)
		for range waiters {
			ctx, _ := sessionAt(t.Context(), needs(50))
			go func() { done <- begin(ctx, t, c, tidegate.Causal) }()
		}
		time.Sleep(200 * time.Millisecond)
		r.at(50)
		began := time.Now()
		for range waiters {
			went(t, c, <-done, "b", tidegate.ReasonCovered, false)
		}
		if took := time.Since(began); took > 40*time.Millisecond {
			t.Errorf("the last waiter was served after %v", took)
		}
	})
}

// Two hundred reads that wait cost their replica one probe at a time, also if it does
// not answer, and each ends the moment that it is cancelled in.
func TestCancelledWaitersReturnAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		behave func(r *stub)
		most   int // probes in a second, with the one at the start
	}{
		"behind": {func(r *stub) { r.took = 300 * time.Microsecond }, 60}, // each look puts the next one off
		"hung":   {func(r *stub) { r.hung = true }, 1 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const waiters = 200
				p, r := primaryStub(1, 100), replicaStub(2, 10)
				core := core(t, engine.Config{Wait: time.Hour, ProbeTimeout: time.Hour}, p, r)
				r.set(c.behave)
				done := make(chan time.Time, waiters)
				ctx, cancel := context.WithCancel(t.Context())
				for range waiters {
					ctx, _ := sessionAt(ctx, needs(50))
					go func() {
						if err := core.Begin(ctx, tidegate.Causal, &engine.Read{}); !errors.Is(err, context.Canceled) {
							t.Errorf("%v, want context.Canceled", err)
						}
						done <- time.Now()
					}()
				}
				time.Sleep(time.Second)
				r.set(func(r *stub) {
					if r.most != 1 || r.asked > c.most {
						t.Errorf("%d probes in a second, %d at once; want at most %d, one at a time", r.asked, r.most, c.most)
					}
				})
				cancelled := time.Now()
				cancel()
				for range waiters {
					if took := (<-done).Sub(cancelled); took > 0 {
						t.Fatalf("a read ended %v after it was cancelled", took)
					}
				}
				var asked int
				r.set(func(r *stub) { asked = r.asked })
				time.Sleep(time.Second)
				r.set(func(r *stub) {
					if r.asked > asked+2 {
						t.Errorf("%d probes for reads that are gone", r.asked-asked)
					}
				})
				for _, n := range core.Status().Nodes {
					if n.Flying != 0 {
						t.Errorf("%d reads are in flight on %s", n.Flying, n.Node)
					}
				}
			})
		})
	}
}

// A captured write asks for one look at the replicas a moment later, so that the
// read that follows finds it done.
func TestWriteAsksForALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r := primaryStub(1, 100), replicaStub(2, 100)
		c := core(t, engine.Config{}, p, r)
		ctx, _ := sessionAt(t.Context())
		time.Sleep(time.Second)
		for range 10 { // close together: they share the look
			w, err := c.BeginWrite(ctx)
			if err != nil {
				t.Fatal(err)
			}
			p.at(110)
			r.at(110)
			c.Committed(&w, p.born(), tidegate.At(110), true)
			c.EndWrite(&w)
			time.Sleep(10 * time.Microsecond)
		}
		wrote := time.Now()
		time.Sleep(100 * time.Millisecond)
		r.set(func(r *stub) {
			if r.asked != 2 {
				t.Fatalf("the replica was probed %d times, want at the start and after the writes", r.asked)
			}
			if after := r.sent[1].Sub(wrote); after < 0 || after > 2*time.Millisecond {
				t.Errorf("the look was sent %v after the write, want about a millisecond", after)
			}
		})
		rd := begin(ctx, t, c, tidegate.Causal)
		if d := went(t, c, rd, "b", tidegate.ReasonCovered, false); d.Waited != 0 {
			t.Errorf("the read waited: %v", d)
		}
	})
}
