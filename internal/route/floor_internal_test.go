package route

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// asking returns the books of a mark of that history, as a token brings it.
func asking(e tidegate.Epoch, upTo uint64) *ledger.Ledger {
	return ledger.New("main", 0, []tidegate.Mark{{Cluster: "main", Epoch: e, Position: tidegate.At(upTo)}})
}

// raise sets a floor of the cluster's history.
func (c *cluster) raise(upTo uint64) {
	c.t.Helper()
	if n := c.router.RaiseFloor(asking(epoch, upTo)); !n.Raised || n.Mark != tidegate.At(upTo) || n.Epoch != epoch {
		c.t.Errorf("%+v, want the floor %d", n, upTo)
	}
}

// Every way to a replica has to respect the floor. Node 2 has 100; all else has 200, and
// the floor is 150.
func TestFloorBindsEveryRead(t *testing.T) {
	t.Parallel()
	aged := tidegate.Relaxed("aged", "test", tidegate.Within(time.Hour))
	stale := tidegate.Relaxed("stale", "test", tidegate.Within(time.Nanosecond), tidegate.ServeStale(), tidegate.Wait(0))
	for name, x := range map[string]struct {
		class  tidegate.Class
		ledger func() *ledger.Ledger
		reason tidegate.Reason
	}{
		"a new session":                   {tidegate.Causal, func() *ledger.Ledger { return ledger.New("main", 7, nil) }, tidegate.ReasonCovered},
		"a session with an older mark":    {tidegate.Causal, func() *ledger.Ledger { return session(50) }, tidegate.ReasonCovered},
		"any age":                         {anyAge, func() *ledger.Ledger { return session(50) }, tidegate.ReasonWithinBudget},
		"any age, no session":             {anyAge, func() *ledger.Ledger { return nil }, tidegate.ReasonWithinBudget},
		"within a budget":                 {aged, func() *ledger.Ledger { return nil }, tidegate.ReasonWithinBudget},
		"beyond its budget, stale served": {stale, func() *ledger.Ledger { return nil }, tidegate.ReasonStale},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3, func(c *cluster) {
				c.router.cfg.LongestLag = 0
				c.apply(200, 0, 1)
				c.look(0)
				c.look(1)
				// The other one is tempting: nothing is in flight there.
				c.router.slots[1].flying.Store(30)
				read := func() int {
					tk := &Ticket{Class: x.class, Ledger: x.ledger()}
					if err := c.router.Begin(c.t.Context(), tk); err != nil {
						t.Fatal(err)
					}
					if tk.Role != tidegate.RoleReplica || tk.reason != x.reason {
						t.Fatalf("went to %d: %v", tk.Node, tk.reason)
					}
					c.router.Undo(tk)
					return tk.Node
				}
				if got := read(); got != 2 {
					t.Fatalf("without a floor it goes to %d: nothing is tested", got)
				}
				c.raise(150)
				for range 20 {
					if got := read(); got != 1 {
						t.Fatalf("with the floor it goes to %d", got)
					}
				}
			})
		})
	}
}

// A session that stays where it reads leaves it for the floor, crowded or not.
func TestFloorMovesSessionsThatStay(t *testing.T) {
	t.Parallel()
	for _, crowd := range []int64{0, 50} {
		inBubble(t, 3, func(c *cluster) {
			c.answering = true
			tk := &Ticket{Ledger: session(80), exclude: 1 << 1}
			c.begin(c.t.Context(), tk, outcome{2, tidegate.ReasonCovered, false, 0})
			c.router.Done(tk, mono.Now())
			c.apply(200, 0, 1)
			tk = &Ticket{Ledger: tk.Ledger}
			c.begin(c.t.Context(), tk, outcome{2, tidegate.ReasonStayed, false, 0})
			c.router.Done(tk, mono.Now())
			c.tick()
			c.raise(150)
			c.router.slots[1].flying.Store(crowd)
			c.router.slots[2].flying.Store(crowd)
			tk = &Ticket{Ledger: tk.Ledger}
			if err := c.router.Begin(c.t.Context(), tk); err != nil || tk.Node != 1 || tk.reason != tidegate.ReasonCovered {
				t.Errorf("with %d in flight: %v, node %d (%v)", crowd, err, tk.Node, tk.reason)
			}
		})
	}
}

// A session stays on a crowded replica that has the floor as if the one that has not were
// not there: it asks for nothing, and its token does not change.
func TestFloorLeavesNothingToLeaveFor(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		c.apply(200, 0, 1)
		tk := &Ticket{Ledger: session(80), exclude: 1 << 2}
		c.begin(c.t.Context(), tk, outcome{1, tidegate.ReasonCovered, false, 0})
		c.router.Done(tk, mono.Now())
		c.raise(150)
		c.look(0, 1, 2)
		c.router.slots[1].flying.Store(50)
		tk = &Ticket{Ledger: tk.Ledger}
		c.begin(c.t.Context(), tk, outcome{1, tidegate.ReasonStayed, false, 0})
		if m := tk.Ledger.Marks()[0]; m.Position != tidegate.At(80) {
			t.Errorf("its mark has become %v", m.Position)
		}
	})
}

// A read whose connection has to be looked at again meets the floor that was set meanwhile.
func TestFloorBindsReconsideredReads(t *testing.T) {
	t.Parallel()
	for _, class := range []tidegate.Class{tidegate.Causal, anyAge} {
		inBubble(t, 2, func(c *cluster) {
			tk := &Ticket{Class: class, Ledger: session(80)}
			if err := c.router.Begin(c.t.Context(), tk); err != nil || tk.Node != 1 {
				t.Fatalf("%v: %+v", err, tk)
			}
			c.raise(150)
			if c.router.Reconsider(c.t.Context(), tk, always) {
				t.Errorf("%v: admitted", class)
			}
			c.idle()
		})
	}
}

// While no replica has the floor reads wait for one and go to the primary. One that catches
// up is used at once.
func TestFloorIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, class := range []tidegate.Class{tidegate.Causal, anyAge} {
		inBubble(t, 2, func(c *cluster) {
			c.proven = tidegate.At(200)
			c.apply(200, 0)
			c.raise(150)
			tk := &Ticket{Class: class, Ledger: session(80)}
			c.begin(c.t.Context(), tk, outcome{0, tidegate.ReasonBehind, false, 20 * ms})
			c.router.Done(tk, mono.Now())

			tk = &Ticket{Class: class, Ledger: session(80)}
			done := make(chan error)
			go func() { done <- c.router.Begin(c.t.Context(), tk) }()
			synctest.Wait()
			time.Sleep(5 * ms)
			c.apply(150, 1)
			if err := <-done; err != nil || tk.Node != 1 || tk.waited > int64(6*ms) {
				t.Errorf("%v: %v, node %d after %v", class, err, tk.Node, time.Duration(tk.waited))
			}
		})
	}
}

// A floor that is raised while a read waits for the one before is what the read meets.
func TestFloorRisesUnderAReadThatWaits(t *testing.T) {
	t.Parallel()
	for _, class := range []tidegate.Class{tidegate.Causal, anyAge} {
		inBubble(t, 2, func(c *cluster) {
			c.proven = tidegate.At(300)
			c.apply(300, 0)
			c.raise(150)
			tk := &Ticket{Class: class, Ledger: session(80)}
			done := make(chan error)
			go func() { done <- c.router.Begin(c.t.Context(), tk) }()
			synctest.Wait()
			c.raise(250)
			c.apply(150, 1)
			if err := <-done; err != nil || tk.Node != 0 {
				t.Errorf("%v: %v, node %d", class, err, tk.Node)
			}
		})
	}
}

func TestFloorIsSeenByTheShadow(t *testing.T) {
	t.Parallel()
	for _, class := range []tidegate.Class{tidegate.Causal, anyAge} {
		inBubble(t, 2, func(c *cluster) {
			c.router.SetRollout(tidegate.RolloutShadow)
			c.raise(150)
			tk := &Ticket{Class: class, Ledger: session(80)}
			c.begin(c.t.Context(), tk, outcome{node: 0, reason: tidegate.ReasonShadow})
			if d := c.router.Decision(tk); d.ShadowNode != "" || d.ShadowReason != tidegate.ReasonBehind {
				t.Errorf("%v", d)
			}
		})
	}
}

// Another replica is an alternative only with the floor.
func TestAlternative(t *testing.T) {
	t.Parallel()
	anybody := func(any, int64) bool { return true }
	for _, class := range []tidegate.Class{tidegate.Causal, anyAge} {
		inBubble(t, 3, func(c *cluster) {
			c.apply(200, 0, 1)
			tk := &Ticket{Class: class, Ledger: session(80), exclude: 1 << 2}
			if c.router.Alternative(tk, anybody) {
				t.Error("before it goes anywhere")
			}
			c.begin(c.t.Context(), tk, outcome{1, tk.reasonOf(), false, 0})
			if c.router.Alternative(tk, anybody) {
				t.Error("one that has failed the read")
			}
			tk.exclude = 0
			if !c.router.Alternative(tk, anybody) || c.router.Alternative(tk, func(any, int64) bool { return false }) {
				t.Error("the other replica, and what the caller says of it")
			}
			c.raise(150)
			if c.router.Alternative(tk, anybody) {
				t.Error("below the floor")
			}
		})
	}
	inBubble(t, 3, func(c *cluster) {
		c.apply(200, 0, 1)
		tk := &Ticket{Ledger: session(150)}
		c.begin(c.t.Context(), tk, outcome{1, tidegate.ReasonCovered, false, 0})
		if c.router.Alternative(tk, anybody) {
			t.Error("below the session's mark")
		}
	})
}

// reasonOf is why a ticket's first read goes to a replica.
func (tk *Ticket) reasonOf() tidegate.Reason {
	if tk.Class.Need() == tidegate.NeedRelaxed {
		return tidegate.ReasonWithinBudget
	}
	return tidegate.ReasonCovered
}

// A floor only rises.
func TestFloorJoins(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(c *cluster) {
		c.raise(150)
		for _, upTo := range []uint64{150, 120} {
			if n := c.router.RaiseFloor(asking(epoch, upTo)); n.Raised || n.Dropped || c.router.Floor() != tidegate.At(150) {
				t.Errorf("%+v, the floor is %v", n, c.router.Floor())
			}
		}
		c.raise(160)
		// Once a look has shown that it can be there, one set of books is enough.
		c.apply(200, 0)
		if n := c.router.JudgeFloor(); n.Raised || n.Dropped || len(c.router.floors.parts) != 1 || c.router.FloorUnsure() {
			t.Errorf("%+v, %d parts", n, len(c.router.floors.parts))
		}
		if c.router.RaiseFloor(asking(epoch, 10)); c.router.Floor() != tidegate.At(160) || len(c.router.floors.parts) != 1 {
			t.Errorf("the floor is %v, of %d parts", c.router.Floor(), len(c.router.floors.parts))
		}
		for range 3 {
			c.router.RaiseFloor(asking(epoch, 170))
		}
		if c.router.Floor() != tidegate.At(170) || len(c.router.floors.parts) != 2 {
			t.Errorf("the floor is %v, of %d parts", c.router.Floor(), len(c.router.floors.parts))
		}
	})
}

// A floor of another history holds reads off replicas until a look at the primary can tell,
// and then it is gone. What was asked for in this history stays.
func TestFloorOfAnotherHistoryIsDropped(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]uint64{"alone": 0, "beside another": 90} {
		inBubble(t, 2, func(c *cluster) {
			if kept > 0 {
				c.raise(kept)
				c.look(0)
				c.router.JudgeFloor()
			}
			c.made()
			if n := c.router.RaiseFloor(asking(later, 10)); n.Raised || n.Dropped {
				t.Errorf("%s: %+v", name, n)
			}
			if d := c.made(); len(d) != 1 || d[0].node != 0 {
				t.Errorf("%s: asks %v, want a look at the primary", name, d)
			}
			tk := &Ticket{Class: anyAge}
			c.begin(c.t.Context(), tk, outcome{0, tidegate.ReasonBehind, false, 20 * ms})
			c.router.Done(tk, mono.Now())
			_, verdicts := c.router.Explain(nil, anyAge)
			if v := verdicts[1]; v.Eligible || !strings.HasPrefix(v.Why, "the floor of this process is not known yet") {
				t.Errorf("%s: %+v", name, v)
			}
			c.look(0)
			if n := c.router.JudgeFloor(); !n.Dropped || n.Raised || n.Mark != tidegate.At(kept) {
				t.Errorf("%s: %+v", name, n)
			}
			if got := c.router.Floor(); got != tidegate.At(kept) || c.router.FloorUnsure() {
				t.Errorf("%s: the floor is %v", name, got)
			}
			tk = &Ticket{Class: anyAge}
			c.begin(c.t.Context(), tk, outcome{1, tidegate.ReasonWithinBudget, false, 0})
		})
	}
}

// One that the primary does not have is of another history, too: its cluster went back, or
// it was made up. Nobody would ever have it.
func TestFloorBeyondThePrimaryIsDropped(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(c *cluster) {
		c.say(func(says []freshness.Observation, _ []error) { says[0].Head = tidegate.At(100) })
		c.look(0)
		c.made()
		c.raise(1 << 40)
		if d := c.made(); len(d) != 1 || d[0].node != 0 || !c.router.FloorUnsure() {
			t.Errorf("it is believed, or nobody asks: %v", d)
		}
		c.look(0)
		if n := c.router.JudgeFloor(); !n.Dropped || !n.Mark.IsZero() || c.router.floor.Load() != nil {
			t.Errorf("%+v", n)
		}
	})
}

// After a failover the floor is one of the history before.
func TestFloorIsDroppedByAFailover(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		c.raise(100)
		c.look(0)
		c.router.JudgeFloor()
		c.promote()
		// A read that comes before the judgement uses no replica.
		if got := c.router.floor.Load().in(c.Table()); got != beyondAll {
			t.Errorf("the floor in the new history is %v", got)
		}
		if n := c.router.JudgeFloor(); !n.Dropped || n.Epoch != later || c.router.floor.Load() != nil {
			t.Errorf("%+v", n)
		}
		tk := &Ticket{Class: anyAge}
		c.begin(c.t.Context(), tk, outcome{2, tidegate.ReasonWithinBudget, false, 0})
	})
}

// A token that says to catch up asks for all that is committed by now.
func TestFloorCatchesUp(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(c *cluster) {
		if n := c.router.RaiseFloor(ledger.New("main", 0, []tidegate.Mark{{Cluster: "main", CatchUp: true}})); n.Raised || n.Dropped {
			t.Errorf("%+v", n)
		}
		c.begin(c.t.Context(), &Ticket{Class: anyAge}, outcome{0, tidegate.ReasonBehind, false, 20 * ms})
		c.apply(300, 0)
		if n := c.router.JudgeFloor(); !n.Raised || n.Mark != tidegate.At(300) {
			t.Errorf("%+v", n)
		}
		c.begin(c.t.Context(), &Ticket{Class: anyAge}, outcome{0, tidegate.ReasonBehind, false, 20 * ms})
		c.apply(300, 1)
		c.begin(c.t.Context(), &Ticket{Class: anyAge}, outcome{1, tidegate.ReasonWithinBudget, false, 0})
	})
}

func TestExplainTheFloor(t *testing.T) {
	t.Parallel()
	for _, class := range []tidegate.Class{tidegate.Causal, anyAge} {
		inBubble(t, 3, func(c *cluster) {
			c.apply(200, 0, 1)
			c.raise(150)
			required, verdicts := c.router.Explain(session(80), class)
			if want := tidegate.At(80); required != want {
				t.Errorf("%v: required %v, want %v: the floor is no requirement of the session", class, required, want)
			}
			if v := verdicts[1]; !v.Eligible {
				t.Errorf("%v: %q", class, v.Why)
			}
			if v := verdicts[2]; v.Eligible || v.Why != "has applied 100, less than the floor of this process, 150" {
				t.Errorf("%v: %v, %q", class, v.Eligible, v.Why)
			}
		})
	}
}

// A session that has to leave for the floor needs the bound of what it saw there.
func TestExplainTheFloorToASessionThatStays(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		tk := &Ticket{Ledger: session(80), exclude: 1 << 1}
		c.begin(c.t.Context(), tk, outcome{2, tidegate.ReasonCovered, false, 0})
		c.apply(200, 0, 1)
		c.tick()
		c.router.Done(tk, mono.Now())
		if _, verdicts := c.router.Explain(tk.Ledger, tidegate.Causal); !verdicts[1].Eligible || !verdicts[2].Eligible {
			t.Errorf("%+v", verdicts)
		}
		c.raise(150)
		_, verdicts := c.router.Explain(tk.Ledger, tidegate.Causal)
		if v := verdicts[1]; v.Eligible || !strings.HasPrefix(v.Why, "what the session has seen elsewhere is not bounded yet") {
			t.Errorf("%v, %q", v.Eligible, v.Why)
		}
	})
}
