package route

import (
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// always and never are answers to whether an observation holds for a connection.
func always(*freshness.Observation) bool { return true }
func never(*freshness.Observation) bool  { return false }

func TestReconsider(t *testing.T) {
	t.Parallel()
	budget := tidegate.Relaxed("budget", "test", tidegate.Within(time.Second))
	// later is for a connection that was made just now.
	later := func() func(*freshness.Observation) bool {
		now := mono.Now()
		return func(o *freshness.Observation) bool { return o.Sent > now }
	}
	for _, c := range []struct {
		name   string
		class  tidegate.Class
		in     func(c *cluster, tk *Ticket)
		holds  func(*freshness.Observation) bool // nil: for looks sent from now on
		want   bool
		exlude bool
		waited time.Duration
	}{
		{"it holds by now", tidegate.Causal, nil, always, true, false, 0},
		{"a look is needed", tidegate.Causal, func(c *cluster, _ *Ticket) { c.answering = true }, nil, true, false, 0},
		{"a look is needed, any age will do", anyAge, func(c *cluster, _ *Ticket) { c.answering = true }, nil, true, false, 0},
		{"nobody answers", tidegate.Causal, nil, nil, false, true, 10 * ms},
		{"it never holds", tidegate.Causal, func(c *cluster, _ *Ticket) { c.answering = true }, never, false, true, 10 * ms},
		{"the node fails", tidegate.Causal, func(c *cluster, _ *Ticket) {
			c.answering = true
			c.say(func(_ []freshness.Observation, fails []error) { fails[1] = errDown })
		}, nil, false, true, 0},
		{"the session needs more by now", tidegate.Causal, func(_ *cluster, tk *Ticket) { tk.Ledger.Reached(epoch, tidegate.At(101)) }, always, false, false, 0},
		{"it is a primary by now", tidegate.Causal, func(c *cluster, _ *Ticket) { c.promote() }, always, false, false, 0},
		{"and any age would do", anyAge, func(c *cluster, _ *Ticket) { c.promote() }, always, false, false, 0},
		{"too old by now", budget, func(*cluster, *Ticket) { time.Sleep(2 * time.Second) }, always, false, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3, func(cl *cluster) {
				tk := &Ticket{Class: c.class, Ledger: session(80), exclude: 1 << 2}
				cl.look(0, 1)
				if err := cl.router.Begin(cl.t.Context(), tk); err != nil || tk.Node != 1 {
					t.Fatalf("%v: %+v", err, tk)
				}
				reason := tk.reason
				cl.tick()
				if c.in != nil {
					c.in(cl, tk)
				}
				holds := c.holds
				if holds == nil {
					cl.tick()
					holds = later()
					cl.tick()
				}
				got := cl.router.Reconsider(cl.t.Context(), tk, holds)
				if got != c.want || tk.exclude&(1<<1) != 0 != c.exlude || time.Duration(tk.waited) != c.waited {
					t.Errorf("admitted %v, left out %v after %v; want %v, %v, %v", got, tk.exclude&(1<<1) != 0, time.Duration(tk.waited), c.want, c.exlude, c.waited)
				}
				if !got {
					cl.idle()
					if seen(tk.Ledger) != 0 {
						t.Error("a read that was not sent is remembered")
					}
					return
				}
				if tk.Node != 1 || tk.reason != reason || !holds(tk.Proof) || cl.router.Flying(1) != 1 || seen(tk.Ledger) != 1 {
					t.Errorf("admitted: %+v", tk)
				}
				cl.router.Done(tk, mono.Now())
				cl.idle()
			})
		})
	}
}

func TestReconsiderThePrimary(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   func(c *cluster)
		want bool
	}{
		"it still is": {func(*cluster) {}, true},
		"in a new life": {func(c *cluster) {
			c.say(func(s []freshness.Observation, _ []error) { s[0].Incarnation = 99 })
			c.look(0)
		}, true},
		"another one is": {func(c *cluster) {
			c.promote()
			c.say(func(_ []freshness.Observation, f []error) { f[0] = nil })
			c.look(0)
		}, false},
		"it is, of a later line": {func(c *cluster) { c.say(func(s []freshness.Observation, _ []error) { s[0].Epoch = later }); c.look(0) }, false},
		"another one is as well": {func(c *cluster) {
			c.say(func(s []freshness.Observation, _ []error) { s[1].Role = tidegate.RolePrimary })
			c.look(1)
		}, false},
		"it does not answer now": {func(c *cluster) { c.lose(0) }, false},
		"it has become a replica": {func(c *cluster) {
			c.say(func(s []freshness.Observation, _ []error) { s[0].Role = tidegate.RoleReplica })
			c.look(0)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3, func(cl *cluster) {
				tk := &Ticket{Class: strong, Ledger: session(80)}
				cl.begin(cl.t.Context(), tk, outcome{0, tidegate.ReasonStrong, false, 0})
				c.in(cl)
				if got := cl.router.Reconsider(cl.t.Context(), tk, always); got != c.want {
					t.Errorf("admitted %v", got)
				}
				if c.want && tk.Proof != cl.Table().Nodes[0].Obs {
					t.Error("rests on an older look")
				}
				cl.router.Done(tk, mono.Now())
				cl.idle()
			})
		})
	}
}

// The connection at hand is of that node, however much another one has to offer.
func TestReconsiderKeepsTheNode(t *testing.T) {
	t.Parallel()
	inBubble(t, 4, func(c *cluster) {
		tk := &Ticket{Ledger: session(80)}
		if err := c.router.Begin(c.t.Context(), tk); err != nil {
			t.Fatal(err)
		}
		at := tk.Node
		c.router.slots[at].flying.Store(50)
		if !c.router.Reconsider(c.t.Context(), tk, always) || tk.Node != at {
			t.Errorf("goes from %d to %d", at, tk.Node)
		}
	})
}
