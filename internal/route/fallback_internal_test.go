package route

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

const queueing = 50 * time.Millisecond

// bounded gives the cluster's router always so many slots for reads that fall back.
func bounded(c *cluster, slots int) {
	cfg := c.router.cfg
	cfg.Fallbacks, cfg.FixedFallbacks, cfg.FallbackWait, cfg.Wait = slots, true, queueing, -1
	c.router = New(cfg, c)
}

// free fails the test unless all slots are free and nobody queues.
func (c *cluster) free(slots int) {
	c.t.Helper()
	l := c.router.fallbacks
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.used != 0 || l.limit != float64(slots) || l.queue.Len() != 0 {
		c.t.Errorf("%d of %v slots are used, and there were %d; %d reads queue", l.used, l.limit, slots, l.queue.Len())
	}
}

func TestFallbackLimit(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		bounded(c, 2)
		behind := outcome{0, tidegate.ReasonBehind, false, 0}
		first, second := &Ticket{Ledger: session(200)}, &Ticket{Ledger: session(200)}
		c.begin(c.t.Context(), first, behind)
		c.begin(c.t.Context(), second, behind)

		// Reads that are on the primary for another reason neither need a slot nor
		// take one.
		for _, tk := range []*Ticket{{Class: strong, Ledger: session(200)}, {}} {
			if err := c.router.Begin(c.t.Context(), tk); err != nil || tk.queued != 0 || tk.slot {
				t.Errorf("a read that does not fall back: %v, queued %v", err, time.Duration(tk.queued))
			}
			c.router.Done(tk, mono.Now())
		}

		third := &Ticket{Class: tidegate.NewCausal("third", "test"), Ledger: session(200)}
		start := time.Now()
		err := c.router.Begin(c.t.Context(), third)
		var over *tidegate.OverloadedError
		if !errors.As(err, &over) || !errors.Is(err, tidegate.ErrOverloaded) || time.Since(start) != queueing || over.Queued != queueing ||
			over.RetryAfter < queueing || over.Cluster != "main" || over.Class.Name() != "third" {
			t.Errorf("%v after %v: %+v", err, time.Since(start), over)
		}
		if d := c.router.Decision(third); d.Node != "" || d.Queued != queueing || d.Reason != tidegate.ReasonShed {
			t.Errorf("the decision of a read that was sent away: %v", d)
		}

		c.others.Go(func() {
			time.Sleep(3 * ms)
			c.router.Done(first, mono.Now())
		})
		start = time.Now()
		if err := c.router.Begin(c.t.Context(), third); err != nil || third.Role != tidegate.RolePrimary || time.Since(start) != 3*ms {
			t.Errorf("when one ends: %v after %v", err, time.Since(start))
		}
		c.router.Done(third, mono.Now())
		c.router.Undo(second)
		c.free(2)
		if s := c.router.Stats(); s.Queued.Load() != 2 || s.Shed.Load() != 1 || s.Fallbacks.Load() != 3 {
			t.Errorf("queued %d, shed %d, fell back %d", s.Queued.Load(), s.Shed.Load(), s.Fallbacks.Load())
		}
	})
}

// Whoever came first is served first.
func TestFallbackQueueIsFair(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(c *cluster) {
		bounded(c, 1)
		holder := &Ticket{Ledger: session(200)}
		c.begin(c.t.Context(), holder, outcome{0, tidegate.ReasonBehind, false, 0})
		var mu sync.Mutex
		var order []int
		for i := range 5 {
			time.Sleep(ms)
			c.others.Go(func() {
				tk := &Ticket{Ledger: session(200)}
				if err := c.router.Begin(c.t.Context(), tk); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				time.Sleep(ms)
				c.router.Done(tk, mono.Now())
			})
		}
		time.Sleep(ms)
		c.look(0) // a new table does not send anybody to the end of the queue
		c.router.Done(holder, mono.Now())
		c.others.Wait()
		for i, n := range order {
			if n != i {
				t.Fatalf("they were served in the order %v", order)
			}
		}
		c.free(1)
	})
}

func TestReplicaQualifiesWhileQueueing(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(c *cluster) {
		bounded(c, 1)
		holder, tk := &Ticket{Ledger: session(200)}, &Ticket{Ledger: session(200)}
		c.begin(c.t.Context(), holder, outcome{0, tidegate.ReasonBehind, false, 0})
		c.others.Go(func() {
			time.Sleep(4*ms - 2*time.Microsecond)
			c.apply(200, 1)
		})
		if err := c.router.Begin(c.t.Context(), tk); err != nil || tk.Node != 1 || tk.slot || tk.queued == 0 {
			t.Errorf("%v, node %d, slot %v, queued %v", err, tk.Node, tk.slot, time.Duration(tk.queued))
		}
		c.router.Done(tk, mono.Now())
		c.router.Done(holder, mono.Now())
		c.free(1)
	})
}

func TestQueueingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(c *cluster) {
		bounded(c, 1)
		holder := &Ticket{Ledger: session(200)}
		c.begin(c.t.Context(), holder, outcome{0, tidegate.ReasonBehind, false, 0})
		ctx, cancel := context.WithCancel(c.t.Context())
		time.AfterFunc(7*ms, cancel)
		start := time.Now()
		if err := c.router.Begin(ctx, &Ticket{Ledger: session(200)}); !errors.Is(err, context.Canceled) || time.Since(start) != 7*ms {
			t.Errorf("cancelled: %v after %v", err, time.Since(start))
		}
		// Half of the caller's time is for the read itself.
		ctx, cancel = context.WithTimeout(c.t.Context(), 20*ms)
		defer cancel()
		start = time.Now()
		if err := c.router.Begin(ctx, &Ticket{Ledger: session(200)}); !errors.Is(err, tidegate.ErrOverloaded) || time.Since(start) != 10*ms {
			t.Errorf("with a deadline: %v after %v", err, time.Since(start))
		}
		c.router.Done(holder, mono.Now())
		c.free(1)
	})
}

// A connection that needs a look of its own does not queue a second time.
func TestReconsideredFallbackKeepsItsSlot(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(c *cluster) {
		bounded(c, 1)
		c.answering = true
		for _, holds := range []bool{true, false} {
			tk := &Ticket{Ledger: session(200)}
			c.begin(c.t.Context(), tk, outcome{0, tidegate.ReasonBehind, false, 0})
			if ok := c.router.Reconsider(c.t.Context(), tk, func(*freshness.Observation) bool { return holds }); ok != holds || tk.slot != holds {
				t.Errorf("%v: slot %v", ok, tk.slot)
			}
			if tk.belongs != 0 || holds && tk.slotAt == 0 {
				t.Errorf("%v: it counts as work that belongs on the primary since %d, and as one that does not since %d", holds, tk.belongs, tk.slotAt)
			}
			c.router.Done(tk, mono.Now())
			c.free(1)
		}
	})
}

// A slot that comes in the very moment in which a read gives up is not lost.
func TestSlotAtTheLastMoment(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(c *cluster) {
		bounded(c, 1)
		got := 0
		for range 100 {
			holder, tk := &Ticket{Ledger: session(200)}, &Ticket{Ledger: session(200)}
			c.begin(c.t.Context(), holder, outcome{0, tidegate.ReasonBehind, false, 0})
			time.AfterFunc(queueing, func() { c.router.Done(holder, mono.Now()) })
			if c.router.Begin(c.t.Context(), tk) == nil {
				got++
			}
			synctest.Wait()
			c.router.Done(tk, mono.Now())
			c.free(1)
		}
		if got == 0 || got == 100 {
			t.Errorf("%d of 100 got the slot: the moment was missed", got)
		}
	})
}

// A stale answer is taken on a connection that needs a look of its own, too.
func TestReconsideredStaleRead(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(c *cluster) {
		c.answering = true
		c.apply(200, 0) // so that no look proves the replica current
		time.Sleep(time.Minute)
		tk := &Ticket{Class: tidegate.Relaxed("r", "test", tidegate.Within(time.Second), tidegate.ServeStale(), tidegate.Wait(2*ms))}
		c.begin(c.t.Context(), tk, outcome{1, tidegate.ReasonStale, false, 2 * ms})
		if !c.router.Reconsider(c.t.Context(), tk, func(*freshness.Observation) bool { return true }) || !c.router.Decision(tk).Stale {
			t.Errorf("%v", c.router.Decision(tk))
		}
		c.router.Done(tk, mono.Now())
	})
}

func TestBudgetBreach(t *testing.T) {
	t.Parallel()
	class := func(o ...tidegate.RelaxedOption) tidegate.Class {
		return tidegate.Relaxed("r", "test", tidegate.Within(time.Second), append(o, tidegate.Wait(2*ms))...)
	}
	for name, c := range map[string]struct {
		class tidegate.Class
		full  bool // no slot is free
		lost  bool // no replica either
		want  outcome
		stale bool
		err   error
	}{
		"primary":                        {class(), false, false, outcome{0, tidegate.ReasonBehind, false, 2 * ms}, false, nil},
		"primary, full":                  {class(), true, false, outcome{}, false, tidegate.ErrOverloaded},
		"stale when shed":                {class(tidegate.StaleWhenShed()), false, false, outcome{0, tidegate.ReasonBehind, false, 2 * ms}, false, nil},
		"stale when shed, full":          {class(tidegate.StaleWhenShed()), true, false, outcome{1, tidegate.ReasonStale, false, 2 * ms}, true, nil},
		"stale when shed, full and lost": {class(tidegate.StaleWhenShed()), true, true, outcome{}, false, tidegate.ErrOverloaded},
		"stale":                          {class(tidegate.ServeStale()), false, false, outcome{1, tidegate.ReasonStale, false, 2 * ms}, true, nil},
		"stale, lost":                    {class(tidegate.ServeStale()), false, true, outcome{0, tidegate.ReasonNoReplica, false, 0}, false, nil},
		"fail":                           {class(tidegate.FailWhenStale()), false, false, outcome{}, false, tidegate.ErrNotFresh},
	} {
		inBubble(t, 2, func(cl *cluster) {
			bounded(cl, 1)
			time.Sleep(time.Minute)
			if c.lost {
				cl.lose(1)
			}
			holder := &Ticket{Ledger: session(200)}
			if c.full {
				if err := cl.router.Begin(cl.t.Context(), holder); err != nil {
					t.Fatal(err)
				}
			}
			l := session(50)
			tk := &Ticket{Class: c.class, Ledger: l}
			if c.err != nil {
				if err := cl.router.Begin(cl.t.Context(), tk); !errors.Is(err, c.err) {
					t.Errorf("%s: %v", name, err)
				}
			} else {
				if err := cl.router.Begin(cl.t.Context(), tk); err != nil || tk.Node != c.want.node || tk.reason != c.want.reason {
					t.Errorf("%s: %v, node %d, %v", name, err, tk.Node, tk.reason)
				}
				d := cl.router.Decision(tk)
				if d.Stale != c.stale || (cl.router.Stats().Stale.Load() == 1) != c.stale {
					t.Errorf("%s: %v", name, d)
				}
				if c.stale && seen(l) != 1 {
					t.Errorf("%s: what it showed is not remembered", name)
				}
				cl.router.Done(tk, mono.Now())
			}
			cl.router.Done(holder, mono.Now())
			cl.free(1)
		})
	}
}

// Reads that end in all ways, and at the same time, leave no slot behind.
func TestSlotsAreNeverLost(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		bounded(c, 3)
		r := rand.New(rand.NewPCG(1, 2))
		upTo := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }
		for range 1000 {
			at, long, limit := upTo(500*ms), upTo(20*ms), upTo(30*ms)
			end, classes := r.IntN(4), []tidegate.Class{tidegate.Causal, tidegate.Relaxed("r", "test", tidegate.Within(1), tidegate.StaleWhenShed())}
			tk := &Ticket{Class: classes[r.IntN(2)], Ledger: ledger.New("main", 1, []tidegate.Mark{{Cluster: "main", Epoch: epoch, Position: tidegate.At(200)}})}
			c.others.Go(func() {
				time.Sleep(at)
				ctx, cancel := context.WithTimeout(c.t.Context(), limit)
				defer cancel()
				if c.router.Begin(ctx, tk) != nil {
					return
				}
				time.Sleep(long)
				switch end {
				case 0:
					c.router.Undo(tk)
				case 1:
					c.router.Failed(tk, tidegate.RetryConnection, true)
					if c.router.Begin(ctx, tk) == nil {
						c.router.Done(tk, mono.Now())
					}
				default:
					c.router.Done(tk, mono.Now())
					c.router.Done(tk, mono.Now())
				}
			})
		}
		c.others.Wait()
		c.free(3)
		if s := c.router.Stats(); s.Queued.Load() == 0 || s.Shed.Load() == 0 || s.Stale.Load() == 0 {
			t.Errorf("too little happened: queued %d, shed %d, stale %d", s.Queued.Load(), s.Shed.Load(), s.Stale.Load())
		}
	})
}

// Reads that belong on the primary are work of this process, too: the limit follows how
// long they take.
func TestLimitFollowsReadsThatBelong(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(c *cluster) {
		bounded(c, 8)
		cfg := c.router.cfg
		cfg.FixedFallbacks = false
		c.router = New(cfg, c)
		reads := func(n int, took time.Duration) float64 {
			for range n {
				tk := &Ticket{Class: strong, Ledger: session(100)}
				if err := c.router.Begin(c.t.Context(), tk); err != nil {
					t.Fatal(err)
				}
				time.Sleep(took)
				c.router.Done(tk, mono.Now())
				c.router.Done(tk, mono.Now())
				time.Sleep(20 * ms)
			}
			limit, _, _ := c.router.FallbackLimit()
			return limit
		}
		if l := reads(50, 2*ms); l != 1 {
			t.Errorf("the limit is %v at first", l)
		}
		falls := &Ticket{Ledger: session(200)}
		c.begin(c.t.Context(), falls, outcome{0, tidegate.ReasonBehind, false, 0})
		if l := reads(100, 10*ms); l >= 1 {
			t.Errorf("the limit is %v while they are slow", l)
		}
		c.router.Done(falls, mono.Now())
	})
}

// A read that queues takes a replica that has come to keep its budget.
func TestReplicaKeepsTheBudgetWhileQueueing(t *testing.T) {
	t.Parallel()
	for _, o := range [][]tidegate.RelaxedOption{nil, {tidegate.StaleWhenShed()}} {
		inBubble(t, 2, func(c *cluster) {
			bounded(c, 1)
			holder := &Ticket{Ledger: session(200)}
			c.begin(c.t.Context(), holder, outcome{0, tidegate.ReasonBehind, false, 0})
			time.Sleep(time.Minute)
			c.others.Go(func() {
				time.Sleep(5*ms - 4*time.Microsecond)
				c.look(0)
				c.look(1)
			})
			tk := &Ticket{Class: tidegate.Relaxed("r", "test", tidegate.Within(time.Second), o...)}
			if err := c.router.Begin(c.t.Context(), tk); err != nil || tk.Node != 1 || tk.stale || tk.slot || tk.queued == 0 {
				t.Errorf("%v, node %d, stale %v, slot %v, queued %v", err, tk.Node, tk.stale, tk.slot, time.Duration(tk.queued))
			}
			c.router.Done(tk, mono.Now())
			c.router.Done(holder, mono.Now())
			c.free(1)
		})
	}
}

// The slot of a low limit rests for the time that a read was on the primary, not for the
// time that it waited for a proof before, and not when the read went elsewhere.
func TestSlotRestsForItsUse(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(c *cluster) {
		bounded(c, 1)
		l := c.router.fallbacks
		l.limit = .1
		ledger := session(200)
		ledger.Owe(10, nil) // a look at the primary is missing
		c.others.Go(func() {
			time.Sleep(300 * ms)
			c.apply(200, 0, 1)
		})
		tk := &Ticket{Ledger: ledger}
		if err := c.router.Begin(c.t.Context(), tk); err != nil || tk.Node != 1 {
			t.Fatalf("%v, node %d", err, tk.Node)
		}
		c.router.Done(tk, mono.Now())
		if l.rested() > mono.Now() {
			t.Errorf("it rests for %v although it was not used", time.Duration(l.rested()-mono.Now()))
		}
		tk = &Ticket{Ledger: session(300)}
		c.begin(c.t.Context(), tk, outcome{0, tidegate.ReasonBehind, false, 0})
		time.Sleep(20 * ms)
		c.router.Done(tk, mono.Now())
		if rest := time.Duration(l.rested() - mono.Now()); rest < 179*ms || rest > 181*ms {
			t.Errorf("after 20 ms at a tenth it rests for %v", rest)
		}
		l.limit = .5
		if rest := time.Duration(l.rested() - mono.Now()); rest < 19*ms || rest > 21*ms {
			t.Errorf("at a half it rests for %v", rest)
		}
	})
}

// Where the primary is all that there is, nothing falls back.
func TestNobodyFallsBackAlone(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(c *cluster) {
		bounded(c, 1)
		for range 3 {
			tk := &Ticket{Ledger: session(100)}
			if err := c.router.Begin(c.t.Context(), tk); err != nil || tk.slot || tk.queued > 0 {
				t.Errorf("%v, slot %v, queued %v", err, tk.slot, time.Duration(tk.queued))
			}
			defer c.router.Done(tk, mono.Now())
		}
	})
}

// A read that a replica cannot serve is not served by it when it is shed.
func TestPinnedIsNotServedStale(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(c *cluster) {
		bounded(c, 1)
		holder := &Ticket{Ledger: session(200)}
		c.begin(c.t.Context(), holder, outcome{0, tidegate.ReasonBehind, false, 0})
		tk := &Ticket{Class: tidegate.Relaxed("r", "test", tidegate.Within(time.Hour), tidegate.StaleWhenShed())}
		if err := c.router.Begin(c.t.Context(), tk); err != nil || tk.Node != 1 {
			t.Fatal(err, tk.Node)
		}
		c.router.FailToPrimary(tk, tidegate.RetryNotReplayed)
		if err := c.router.Begin(c.t.Context(), tk); err == nil && tk.Node == 1 {
			t.Errorf("it goes back to node %d, stale %v", tk.Node, tk.stale)
		}
		c.router.Done(tk, mono.Now())
		c.router.Done(holder, mono.Now())
	})
}
