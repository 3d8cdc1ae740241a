package route

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

var anyAge = tidegate.Relaxed("any", "test", tidegate.AnyStaleness())

// seen lists what the session has read from and not bounded.
func seen(l *ledger.Ledger) int {
	n := 0
	for _, m := range l.Marks() {
		n += len(m.Seen)
	}
	return n
}

func TestFailedReadGoesElsewhere(t *testing.T) {
	t.Parallel()
	for _, class := range []tidegate.Class{tidegate.Causal, anyAge} {
		for _, sent := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, sent %v", class.Name(), sent), func(t *testing.T) {
				t.Parallel()
				inBubble(t, 3, func(c *cluster) {
					c.proven, c.answering = tidegate.At(100), true
					tk := &Ticket{Class: class, Ledger: session(80)}
					been := map[int]bool{}
					for attempt := range 3 {
						if err := c.router.Begin(c.t.Context(), tk); err != nil {
							t.Fatalf("attempt %d: %v", attempt, err)
						}
						if been[tk.Node] || tk.Retries() != attempt {
							t.Errorf("attempt %d goes to %d again, counted %d", attempt, tk.Node, tk.Retries())
						}
						been[tk.Node] = true
						if attempt == 2 {
							break
						}
						c.made()
						c.router.Failed(tk, tidegate.RetryShutdown, sent)
						if d := c.made(); len(d) != 1 || d[0] != (demand{tk.Node, 0}) {
							t.Errorf("asks for %v, want a look at the node at once", d)
						}
						if sent != (seen(tk.Ledger) > 0) {
							t.Errorf("sent %v: the session has seen %d", sent, seen(tk.Ledger))
						}
						c.tick()
						c.look(0, 1, 2)
						c.made()
					}
					if d := c.router.Decision(tk); d.Role != tidegate.RolePrimary || d.Reason != tidegate.ReasonReplicaFailed || d.Retries != 2 || d.Unproven {
						t.Errorf("%v", d)
					}
					c.router.Failed(tk, tidegate.RetryShutdown, sent)
					if c.router.Begin(c.t.Context(), tk) == nil {
						t.Error("nobody is left, and the read goes somewhere")
					}
					if d := c.router.Decision(tk); d.Node != "" || d.Role != tidegate.RoleUnknown {
						t.Errorf("it went nowhere: %v", d)
					}
					c.idle()
				})
			})
		}
	}
}

func TestRetryMayGoToTheSameNode(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(c *cluster) {
		tk := &Ticket{Ledger: session(80)}
		for range 3 {
			if err := c.router.Begin(c.t.Context(), tk); err != nil || tk.Node != 1 {
				t.Fatalf("%v: %+v", err, tk)
			}
			c.router.Retry(tk, tidegate.RetryConnection, false)
		}
		if tk.Retries() != 3 || len(c.made()) != 3 {
			t.Errorf("%+v", tk)
		}
		c.idle()
	})
}

func TestFailToPrimary(t *testing.T) {
	t.Parallel()
	for _, class := range []tidegate.Class{tidegate.Causal, anyAge} {
		inBubble(t, 3, func(c *cluster) {
			c.proven = tidegate.At(100)
			tk := &Ticket{Class: class, Ledger: session(80)}
			if err := c.router.Begin(c.t.Context(), tk); err != nil || tk.Role != tidegate.RoleReplica {
				t.Fatalf("%v: %+v", err, tk)
			}
			c.router.FailToPrimary(tk, tidegate.RetryNotReplayed)
			c.tick()
			c.look(0, 1, 2)
			c.begin(c.t.Context(), tk, outcome{0, tidegate.ReasonReplicaFailed, false, 0})
			c.router.Done(tk, mono.Now())
			c.idle()
		})
	}
}

// A read's wait for replicas is one, however often it is tried.
func TestAttemptsShareTheWait(t *testing.T) {
	t.Parallel()
	budget := tidegate.Relaxed("budget", "test", tidegate.Within(time.Second))
	for _, class := range []tidegate.Class{tidegate.Causal, budget} {
		inBubble(t, 2, func(c *cluster) {
			time.Sleep(2 * time.Second) // what is known is too old for a budget, too
			c.proven = tidegate.At(300)
			tk := &Ticket{Class: class, Ledger: session(200)}
			for range 3 {
				c.begin(c.t.Context(), tk, outcome{0, tidegate.ReasonBehind, false, 20 * ms})
				c.router.Retry(tk, tidegate.RetryConnection, false)
			}
		})
	}
}

// The age of the replica that failed is not that of the primary's answer.
func TestAgeIsNotThatOfAFailedAttempt(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(c *cluster) {
		tk := &Ticket{Ledger: hasRead(90)}
		if err := c.router.Begin(c.t.Context(), tk); err != nil || tk.current == 0 {
			t.Fatalf("%v: %+v", err, tk)
		}
		c.router.FailToPrimary(tk, tidegate.RetryNotReplayed)
		c.begin(c.t.Context(), tk, outcome{0, tidegate.ReasonReplicaFailed, true, time.Second})
		if d := c.router.Decision(tk); d.StalenessKnown {
			t.Errorf("%v", d)
		}
	})
}

// An attempt that was not proven and failed says nothing about the next one.
func TestUnprovenAttemptIsNotReportedLater(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(c *cluster) {
		tk := &Ticket{Ledger: hasRead(110)}
		c.begin(c.t.Context(), tk, outcome{0, tidegate.ReasonBehind, true, 1020 * ms})
		c.router.Failed(tk, tidegate.RetryConnection, false)
		c.apply(110, 1)
		c.begin(c.t.Context(), tk, outcome{1, tidegate.ReasonCovered, false, 1020 * ms})
	})
}

func TestUndo(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		tk := &Ticket{Ledger: session(80)}
		if err := c.router.Begin(c.t.Context(), tk); err != nil {
			t.Fatal(err)
		}
		c.router.Undo(tk)
		c.router.Undo(tk)
		c.router.Done(tk, mono.Now()) // it is over
		c.idle()
		if seen(tk.Ledger) != 0 {
			t.Error("a read that was not sent is remembered")
		}
	})
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		tk := &Ticket{Ledger: session(80)}
		if err := c.router.Begin(c.t.Context(), tk); err != nil {
			t.Fatal(err)
		}
		err := c.router.Refuse(tk)
		var e *tidegate.NotFreshError
		if !errors.As(err, &e) || e.NoPrimary || e.Required != tidegate.At(80) || e.Observed != tidegate.At(100) || e.Waited != 0 {
			t.Errorf("%v", err)
		}
		c.idle()
		if d := c.router.Decision(tk); seen(tk.Ledger) != 0 || d.Node != "" || c.router.Stats().Refused.Load() != 1 {
			t.Errorf("%v, seen %d", d, seen(tk.Ledger))
		}
	})
}

func TestNewest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		applied [4]uint64 // of node 1 on; 0 is one that is not usable
		want    [2]int
	}{
		{[4]uint64{10, 30, 20, 25}, [2]int{2, 4}},
		{[4]uint64{40, 30, 20, 25}, [2]int{1, 2}},
		{[4]uint64{0, 0, 20, 0}, [2]int{3, freshness.NoNode}},
		{[4]uint64{0, 5, 20, 0}, [2]int{3, 2}},
		{[4]uint64{}, [2]int{freshness.NoNode, freshness.NoNode}},
	} {
		table := healthy(5)
		for i, n := range c.applied {
			table.Nodes[i+1].Applied, table.Nodes[i+1].Usable = tidegate.At(n), n != 0
		}
		a, b := newest(table, 0)
		if got := [2]int{a, b}; got != c.want {
			t.Errorf("of %v the newest are %v, want %v", c.applied, got, c.want)
		}
	}
}

// TestSoon: after a write its session's own replica is looked at, if it can be
// used; else the two that are newest.
func TestSoon(t *testing.T) {
	t.Parallel()
	table := healthy(4)
	table.Nodes[3].Applied = tidegate.At(1)
	r, tk := router(hold(table), 4), markedTicket()
	if got := r.Soon(tk.Ledger); got != 0b0110 {
		t.Errorf("without a home: %b", got)
	}
	tk.Ledger.Lock()
	tk.Ledger.Dispatch(table, 3, table.Nodes[3].Incarnation)
	tk.Ledger.Unlock()
	if got := r.Soon(tk.Ledger); got != 0b1000 {
		t.Errorf("at home on node 3: %b", got)
	}
	table.Nodes[3].Usable = false
	if got := r.Soon(tk.Ledger); got != 0b0110 {
		t.Errorf("its home cannot be used: %b", got)
	}
}

// What two replicas could not do is the primary's; only without one in sight the others
// are tried too.
func TestTwoReplicasFailThenThePrimary(t *testing.T) {
	t.Parallel()
	for _, class := range []tidegate.Class{tidegate.Causal, anyAge} {
		for name, primary := range map[string]bool{"a primary": true, "no primary": false} {
			t.Run(class.Name()+", "+name, func(t *testing.T) {
				t.Parallel()
				inBubble(t, 4, func(c *cluster) {
					c.proven = tidegate.At(100)
					if !primary {
						c.lose(0)
					}
					tk := &Ticket{Class: class, Ledger: session(80)}
					var roles []tidegate.Role
					for range 3 {
						if err := c.router.Begin(c.t.Context(), tk); err != nil {
							t.Fatal(err)
						}
						roles = append(roles, tk.Role)
						c.router.Failed(tk, tidegate.RetryShutdown, false)
					}
					last := tidegate.RoleReplica
					if primary {
						last = tidegate.RolePrimary
					}
					if want := []tidegate.Role{tidegate.RoleReplica, tidegate.RoleReplica, last}; !slices.Equal(roles, want) {
						t.Errorf("went to %v, want %v", roles, want)
					}
					c.idle()
				})
			})
		}
	}
}

// Each retry is counted by its cause, and the decision that follows names it.
func TestRetriesAreCountedByCause(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		c.proven = tidegate.At(100)
		tk := &Ticket{Ledger: session(80)}
		begin := func(want tidegate.RetryCause) {
			t.Helper()
			if err := c.router.Begin(c.t.Context(), tk); err != nil {
				t.Fatal(err)
			}
			if d := c.router.Decision(tk); d.RetryCause != want {
				t.Errorf("%v, want the cause %v", d, want)
			}
		}
		begin(tidegate.RetryNone)
		c.router.Retry(tk, tidegate.RetryRecoveryConflict, false)
		begin(tidegate.RetryRecoveryConflict)
		c.router.Failed(tk, tidegate.RetryNone, false) // an adapter that knows no better
		begin(tidegate.RetryConnection)
		if c.router.Reconsider(c.t.Context(), tk, never) {
			t.Fatal("admitted")
		}
		begin(tidegate.RetryUnproven)
		c.router.Retry(tk, 250, false)
		begin(tidegate.RetryConnection)
		c.router.FailToPrimary(tk, tidegate.RetryNotReplayed)
		begin(tidegate.RetryNotReplayed)
		c.router.Done(tk, mono.Now())
		c.idle()
		want := map[tidegate.RetryCause]uint64{tidegate.RetryConnection: 2, tidegate.RetryRecoveryConflict: 1, tidegate.RetryUnproven: 1, tidegate.RetryNotReplayed: 1}
		for i := range tidegate.RetryCauses {
			if got := c.router.Stats().Retries[i].Load(); got != want[tidegate.RetryCause(i)] {
				t.Errorf("%v was counted %d times, want %d", tidegate.RetryCause(i), got, want[tidegate.RetryCause(i)])
			}
		}
		if tk.Retries() != 5 {
			t.Errorf("%d retries", tk.Retries())
		}
	})
}
