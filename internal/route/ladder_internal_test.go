package route

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

const ms = time.Millisecond

func TestSessionStaysWhereItReads(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		l := ledger.New("main", 7, nil)
		tk := &Ticket{Ledger: l}
		if err := c.router.Begin(c.t.Context(), tk); err != nil {
			t.Fatal(err)
		}
		at := tk.Node
		if at == 0 || tk.reason != tidegate.ReasonCovered || tk.Proof != c.Table().Nodes[at].Obs {
			t.Errorf("the first read: %+v", tk)
		}
		for range 10 {
			again := &Ticket{Ledger: l} // also while the first one is in flight
			c.begin(c.t.Context(), again, outcome{at, tidegate.ReasonStayed, false, 0})
			c.router.Done(again, mono.Now())
			c.router.Told(again)
			if m := l.Marks(); len(m) != 1 || m[0].CatchUp || len(m[0].Seen) != 1 {
				t.Errorf("nothing was to be told, and the session goes on with %+v", m)
			}
		}
		c.router.Done(tk, mono.Now())
		c.idle()
		if made := c.made(); len(made) != 0 {
			t.Errorf("asked for %v", made)
		}
	})
}

// A read ends once, however often that is said: others may be in flight.
func TestReadEndsOnce(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(r *Router, tk *Ticket){
		"done": func(r *Router, tk *Ticket) { r.Done(tk, mono.Now()) },
		"undo": func(r *Router, tk *Ticket) { r.Undo(tk) },
	} {
		inBubble(t, 2, func(c *cluster) {
			l := session(80)
			one, other := &Ticket{Ledger: l}, &Ticket{Ledger: l}
			for _, tk := range []*Ticket{one, other} {
				if err := c.router.Begin(c.t.Context(), tk); err != nil {
					t.Fatal(err)
				}
			}
			end(c.router, one)
			end(c.router, one)
			c.tick()
			c.look(0, 1)
			l.Lock()
			if status := l.Settle(c.Table(), &ledger.Asks{}); status != ledger.Settled {
				t.Errorf("%s: status %d", name, status)
			}
			l.Unlock()
			if seen(l) != 1 || c.router.Flying(1) != 1 {
				t.Errorf("%s twice: the other read is forgotten: %+v, %d in flight", name, l.Marks(), c.router.Flying(1))
			}
			c.router.Done(other, mono.Now())
			c.idle()
		})
	}
}

func TestLadderOfACausalRead(t *testing.T) {
	t.Parallel()
	soon := tidegate.NewCausal("soon", "test", tidegate.Wait(5*ms))
	never := tidegate.NewCausal("never", "test", tidegate.Wait(0))
	for _, c := range []struct {
		name  string
		class tidegate.Class
		in    func(c *cluster) // what happens before
		while func(c *cluster) // and during the read
		want  outcome
		asks  []int // the first nodes that are asked
	}{
		{"no replica has it in time", tidegate.Causal, nil, nil, outcome{0, tidegate.ReasonBehind, false, 20 * ms}, []int{1, 2}},
		{"the class waits less", soon, nil, nil, outcome{0, tidegate.ReasonBehind, false, 5 * ms}, []int{1, 2}},
		{"the class does not wait", never, nil, nil, outcome{0, tidegate.ReasonBehind, false, 0}, nil},
		{"a replica has it by now", tidegate.Causal, func(c *cluster) {
			c.say(func(says []freshness.Observation, _ []error) { says[2].Applied = tidegate.At(200) })
			c.answering = true
		}, nil, outcome{2, tidegate.ReasonCovered, false, 0}, []int{1, 2}},
		{"a replica has it soon", tidegate.Causal, nil, func(c *cluster) {
			time.Sleep(3*ms - 2*time.Microsecond)
			c.apply(200, 2)
		}, outcome{2, tidegate.ReasonCovered, false, 3*ms - time.Microsecond}, []int{1, 2}},
		{"no replica is there", tidegate.Causal, func(c *cluster) { c.lose(1, 2, 3) }, nil, outcome{0, tidegate.ReasonNoReplica, false, 0}, nil},
		{"the last replica is lost meanwhile", tidegate.Causal, func(c *cluster) { c.lose(1, 2) }, func(c *cluster) {
			time.Sleep(3*ms - 2*time.Microsecond)
			c.lose(3)
		}, outcome{0, tidegate.ReasonNoReplica, false, 3*ms - time.Microsecond}, []int{3}},
		{"the newest are asked", tidegate.Causal, func(c *cluster) { c.apply(150, 3) }, nil, outcome{0, tidegate.ReasonBehind, false, 20 * ms}, []int{1, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 4, func(cl *cluster) {
				cl.proven = tidegate.At(200)
				tk := &Ticket{Class: c.class, Ledger: session(200)}
				if c.in != nil {
					c.in(cl)
				}
				if c.while != nil {
					cl.others.Go(func() { c.while(cl) })
				}
				cl.begin(cl.t.Context(), tk, c.want)
				var asks []int
				for _, d := range cl.made() {
					if len(asks) < len(c.asks) {
						asks = append(asks, d.node)
					}
				}
				if !slices.Equal(asks, c.asks) {
					t.Errorf("asks %v first, want %v", asks, c.asks)
				}
				s := cl.router.Stats()
				if waits, fell := s.Waits.Load() == 1, s.Fallbacks.Load() == 1; waits != (c.asks != nil) || fell != (tk.Role == tidegate.RolePrimary) || s.Unproven.Load() != 0 {
					t.Errorf("counted %d waits, %d fallbacks, %d unproven", s.Waits.Load(), s.Fallbacks.Load(), s.Unproven.Load())
				}
				cl.router.Done(tk, mono.Now())
				cl.idle()
			})
		})
	}
}

// A write that follows a read must not cost the session its affinity: it waits
// for a replica, whichever has it first.
func TestReadThatFollowsAWrite(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		l := session(100)
		tk := &Ticket{Ledger: l}
		if err := c.router.Begin(c.t.Context(), tk); err != nil {
			t.Fatal(err)
		}
		c.router.Done(tk, mono.Now())
		c.tick()
		l.Reached(epoch, tidegate.At(200))
		c.answering = true
		c.say(func(says []freshness.Observation, _ []error) {
			for i := range says {
				says[i].Applied, says[i].Bound = tidegate.At(200), tidegate.At(200)
			}
		})
		again := &Ticket{Ledger: l}
		if err := c.router.Begin(c.t.Context(), again); err != nil || again.Role != tidegate.RoleReplica || again.waited != 0 {
			t.Errorf("%v: %+v", err, again)
		}
	})
}

func TestDeadlineIsShared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		left          time.Duration
		behind, proof time.Duration // the waits for a replica, and then for the proof
	}{
		{"plenty", time.Minute, 20 * ms, time.Second},
		{"less than the proof needs", 100 * ms, 20 * ms, 40 * ms},
		{"hardly any", 10 * ms, 5 * ms, 2500 * time.Microsecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3, func(cl *cluster) {
				ctx, cancel := context.WithTimeout(cl.t.Context(), c.left)
				defer cancel()
				tk := &Ticket{Ledger: session(200)}
				tk.Ledger.Merge([]tidegate.Mark{{Cluster: "main", Epoch: epoch, Shown: tidegate.At(200)}})
				cl.begin(ctx, tk, outcome{0, tidegate.ReasonBehind, true, c.behind + c.proof})
			})
		})
	}
}

func TestCallerGivesUp(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"while waiting for a replica": 3 * ms, "while waiting for the proof": 300 * ms} {
		for kind, class := range map[string]tidegate.Class{"causal": tidegate.Causal, "relaxed": tidegate.Relaxed("r", "test", tidegate.Within(time.Nanosecond))} {
			if kind == "relaxed" && after > 20*ms {
				continue // needs no proof
			}
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				inBubble(t, 3, func(c *cluster) {
					ctx, cancel := context.WithCancel(c.t.Context())
					time.AfterFunc(after, cancel)
					tk := &Ticket{Class: class, Ledger: session(200)}
					tk.Ledger.Merge([]tidegate.Mark{{Cluster: "main", Epoch: epoch, Shown: tidegate.At(200)}})
					start := time.Now()
					if err := c.router.Begin(ctx, tk); !errors.Is(err, context.Canceled) {
						t.Errorf("%v, want the context's error", err)
					}
					if d := time.Since(start); d != after || time.Duration(tk.waited) != after {
						t.Errorf("after %v, counted %v; want %v", d, time.Duration(tk.waited), after)
					}
					c.idle()
				})
			})
		}
	}
}

func TestAsksAreSpaced(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		tk := &Ticket{Ledger: session(200)}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if c.router.Begin(c.t.Context(), tk) != nil {
				t.Error("refused")
			}
		}()
		synctest.Wait()
		for range 15 { // facts keep coming in, none of them suffices
			c.look(1)
		}
		<-done
		var due []time.Duration
		for _, d := range c.made() {
			if d.node == 1 {
				due = append(due, d.in)
			}
		}
		us := func(n int) time.Duration { return time.Duration(n) * time.Microsecond }
		want := []time.Duration{0, 0, 0, 0, us(500), us(1000), us(2000), us(4000), us(5000), us(5000), us(5000)}
		if len(due) < len(want) || !slices.Equal(due[:len(want)], want) {
			t.Errorf("due in %v, want %v", due, want)
		}
		if tk.Role != tidegate.RolePrimary || tk.waited != int64(20*ms) {
			t.Errorf("in spite of the news the wait ends: %+v", tk)
		}
	})
}
