package route

import (
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

func TestRelaxedRead(t *testing.T) {
	t.Parallel()
	within := func(d time.Duration) tidegate.Class { return tidegate.Relaxed("within", "test", tidegate.Within(d)) }
	idle := func(d time.Duration) func(*cluster) { return func(*cluster) { time.Sleep(d) } }
	for _, c := range []struct {
		name  string
		class tidegate.Class
		in    func(c *cluster)
		while func(c *cluster)
		want  outcome
		asks  uint64 // the nodes that are asked
	}{
		{"young enough", within(time.Minute), idle(59 * time.Second), nil, outcome{1, tidegate.ReasonWithinBudget, false, 0}, 0},
		{"too old, and nobody knows better", within(time.Minute), idle(time.Minute), nil, outcome{0, tidegate.ReasonBehind, false, 20 * ms}, 0b011},
		{"a look at both sides proves it young", within(time.Minute), func(c *cluster) {
			c.answering = true
			time.Sleep(2 * time.Minute)
		}, nil, outcome{1, tidegate.ReasonWithinBudget, false, 0}, 0b011},
		{"a look proves it old", within(time.Minute), func(c *cluster) {
			c.apply(200, 0)
			c.answering = true
			time.Sleep(2 * time.Minute)
		}, nil, outcome{0, tidegate.ReasonBehind, false, 20 * ms}, 0b011},
		{"it catches up meanwhile", within(time.Minute), func(c *cluster) {
			c.apply(200, 0)
			time.Sleep(2 * time.Minute)
		}, func(c *cluster) {
			time.Sleep(3*ms - 4*time.Microsecond)
			c.look(0)
			c.apply(200, 1)
		}, outcome{1, tidegate.ReasonWithinBudget, false, 3*ms - time.Microsecond}, 0b011},
		{"any age will do", anyAge, func(c *cluster) {
			c.lose(0)
			time.Sleep(50 * time.Minute)
		}, nil, outcome{1, tidegate.ReasonWithinBudget, false, 0}, 0},
		{"whatever the session has seen", anyAge, nil, nil, outcome{1, tidegate.ReasonWithinBudget, false, 0}, 0},
		{"no replica is there", anyAge, func(c *cluster) { c.lose(1) }, nil, outcome{0, tidegate.ReasonNoReplica, false, 0}, 0},
		{"it waits no longer than the class says", tidegate.Relaxed("r", "test", tidegate.Within(time.Nanosecond), tidegate.Wait(2*ms)),
			nil, nil, outcome{0, tidegate.ReasonBehind, false, 2 * ms}, 0b011},
	} {
		for _, l := range []*ledger.Ledger{nil, hasRead(999)} {
			name := c.name
			if l == nil {
				name += ", no session"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				inBubble(t, 2, func(cl *cluster) {
					if c.in != nil {
						c.in(cl)
					}
					if c.while != nil {
						cl.others.Go(func() { c.while(cl) })
					}
					tk := &Ticket{Class: c.class, Ledger: l}
					cl.begin(cl.t.Context(), tk, c.want)
					asks := uint64(0)
					for _, d := range cl.made() {
						asks |= 1 << d.node
					}
					if asks != c.asks {
						t.Errorf("asks %b, want %b", asks, c.asks)
					}
					// What it showed binds the session's later reads.
					if l != nil && (seen(l) == 1) != (c.want.node == 1) {
						t.Errorf("the session remembers %d", seen(l))
					}
					d := cl.router.Decision(tk)
					if budget, any := c.class.Budget(); !any && (!d.StalenessKnown || d.Staleness > budget) {
						t.Errorf("%v", d)
					}
					cl.router.Done(tk, mono.Now())
					cl.idle()
				})
			})
		}
	}
}

// A replica that is cut off keeps its age, and no read within a budget goes
// there.
func TestCutReplicaIsNotWithinABudget(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		c.apply(200, 0, 2)
		time.Sleep(time.Second)
		c.look(0, 1, 2)
		tk := &Ticket{Class: tidegate.Relaxed("within", "test", tidegate.Within(500*ms))}
		for range 20 {
			if err := c.router.Begin(c.t.Context(), tk); err != nil || tk.Node != 2 {
				t.Fatalf("%v: goes to %d", err, tk.Node)
			}
			c.router.Done(tk, mono.Now())
		}
	})
}

func TestDecision(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(c *cluster) {
		c.proven = tidegate.At(100)
		l := session(80)
		tk := &Ticket{Ledger: l}
		if err := c.router.Begin(c.t.Context(), tk); err != nil {
			t.Fatal(err)
		}
		age := time.Duration(mono.Now() - c.Table().Nodes[1].Current)
		time.Sleep(time.Second)
		want := tidegate.Decision{
			Cluster: "main", Node: "n1", Role: tidegate.RoleReplica, Reason: tidegate.ReasonCovered,
			Required: tidegate.At(80), Observed: tidegate.At(100), Staleness: age + time.Second, StalenessKnown: true,
		}
		if got := c.router.Decision(tk); got != want {
			t.Errorf("\n got %+v\nwant %+v", got, want)
		}
		c.router.Done(tk, mono.Now())

		tk = &Ticket{Class: strong, Ledger: l}
		c.look(0, 1)
		if err := c.router.Begin(c.t.Context(), tk); err != nil {
			t.Fatal(err)
		}
		want = tidegate.Decision{
			Cluster: "main", Node: "n0", Role: tidegate.RolePrimary, Class: strong, Reason: tidegate.ReasonStrong,
			Required: tidegate.At(100), Observed: tidegate.At(100), StalenessKnown: true,
		}
		if got := c.router.Decision(tk); got != want {
			t.Errorf("\n got %+v\nwant %+v", got, want)
		}

		// An age that cannot be told is not told.
		tk = &Ticket{Class: anyAge}
		c.lose(0)
		c.say(func(says []freshness.Observation, _ []error) { says[1].Applied = tidegate.At(1) })
		c.look(1)
		if err := c.router.Begin(c.t.Context(), tk); err != nil {
			t.Fatal(err)
		}
		if got := c.router.Decision(tk); got.StalenessKnown || got.Staleness != 0 || got.Node != "n1" {
			t.Errorf("%+v", got)
		}
	})
}
