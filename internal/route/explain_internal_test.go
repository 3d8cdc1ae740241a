package route

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	within := tidegate.Relaxed("within", "test", tidegate.Within(time.Minute))
	marked := func(upTo uint64) func() *ledger.Ledger { return func() *ledger.Ledger { return session(upTo) } }
	nobody := func() *ledger.Ledger { return nil }
	unmarked := func() *ledger.Ledger { return ledger.New("main", 7, nil) }
	for _, c := range []struct {
		name     string
		class    tidegate.Class
		l        func() *ledger.Ledger
		in       func(c *cluster)
		node     int
		eligible bool
		why      string
	}{
		{"the primary for a causal read", tidegate.Causal, marked(80), nil, 0, false, "the primary: used for strong reads, and when no replica qualifies in time"},
		{"the primary without a session", tidegate.Causal, nobody, nil, 0, true, "the primary: used for"},
		{"the primary for a strong read", strong, marked(80), nil, 0, true, "the primary: used for"},
		{"the primary for a relaxed read", within, nobody, nil, 0, false, "the primary: used for"},
		{"a replica that covers", tidegate.Causal, marked(100), nil, 1, true, "has everything that is required"},
		{"a replica that is behind", tidegate.Causal, marked(101), nil, 1, false, "has applied 100, less than required"},
		{"a replica without a session", tidegate.Causal, nobody, nil, 1, false, "no session: nothing can be proven for it"},
		{"a replica for a strong read", strong, marked(80), nil, 1, false, "a strong read goes to the primary"},
		{"a young replica", within, nobody, nil, 1, true, "has everything that is required"},
		{"an old replica", within, nobody, func(*cluster) { time.Sleep(2 * time.Minute) }, 1, false, "may be 2m0s old, more than the budget"},
		{"a replica of unknown age", within, nobody, func(c *cluster) { c.apply(1, 1) }, 1, false, "its staleness is not known: no look at the primary that it covers"},
		{"any age", anyAge, nobody, func(c *cluster) { c.apply(1, 1) }, 1, true, "has everything that is required"},
		{"an old replica for somebody new", tidegate.Causal, unmarked, func(*cluster) { time.Sleep(2 * time.Minute) }, 1, false, "may be 2m0s old, more than LongestLag allows"},
		{"one of unknown age for somebody new", tidegate.Causal, unmarked, func(c *cluster) { c.apply(1, 1) }, 1, false, "its staleness is not known"},
		{"an old replica that covers the mark", tidegate.Causal, marked(80), func(*cluster) { time.Sleep(2 * time.Minute) }, 1, true, "has everything that is required"},
		{"it does not answer", tidegate.Causal, marked(80), func(c *cluster) {
			c.lose(1)
			time.Sleep(3 * time.Second)
		}, 1, false, "does not answer probes for 3s: connection refused"},
		{"the primary does not answer", strong, nobody, func(c *cluster) { c.lose(0) }, 0, false, "does not answer probes for"},
		{"two primaries", strong, nobody, func(c *cluster) {
			c.say(func(says []freshness.Observation, _ []error) { says[1].Role = tidegate.RolePrimary })
			c.look(1)
		}, 0, false, "is fenced: more than one node says it is the primary of this timeline"},
		{"another history", tidegate.Causal, marked(80), func(c *cluster) {
			c.say(func(says []freshness.Observation, _ []error) { says[1].Epoch = tidegate.Epoch{System: 2, Line: 1} })
			c.look(1)
		}, 1, false, "is fenced: it belongs to another database system"},
		{"an unknown line", tidegate.Causal, marked(80), func(c *cluster) {
			c.say(func(says []freshness.Observation, _ []error) {
				says[1].Epoch.Line, says[2].Epoch = 0, tidegate.Epoch{System: 2, Line: 1}
			})
			c.look(1, 2)
		}, 1, false, "is fenced: its timeline is not known, and more than one has been in sight"},
		{"the session's history is another one", tidegate.Causal, marked(80), func(c *cluster) { c.promote() }, 2, false, "what the session requires is not a part of this history, as far as is known: unknown"},
		{"it has seen more elsewhere", tidegate.Causal, func() *ledger.Ledger {
			return ledger.New("main", 7, []tidegate.Mark{{Cluster: "main", Epoch: epoch, Seen: []tidegate.Incarnation{91}}})
		}, nil, 1, false, "what the session has seen elsewhere is not bounded yet; a look is needed"},
		{"it stays there", tidegate.Causal, func() *ledger.Ledger {
			return ledger.New("main", 7, []tidegate.Mark{{Cluster: "main", Epoch: epoch, Seen: []tidegate.Incarnation{11}}})
		}, nil, 1, true, "has everything that is required"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 3, func(cl *cluster) {
				l := c.l()
				cl.tick()
				if c.in != nil {
					c.in(cl)
				}
				required, verdicts := cl.router.Explain(l, c.class)
				v, n := verdicts[c.node], &cl.Table().Nodes[c.node]
				if v.Eligible != c.eligible || !strings.HasPrefix(v.Why, c.why) {
					t.Errorf("eligible %v: %q; want %v: %q", v.Eligible, v.Why, c.eligible, c.why)
				}
				if v.Role != n.Obs.Role || v.Applied != n.Applied || v.ProbeAge != time.Duration(mono.Now()-n.Sent) || v.StalenessKnown != (n.Current != 0) {
					t.Errorf("%+v of %+v", v, n)
				}
				if l != nil && c.class == tidegate.Causal && len(l.Marks()) > 0 && len(l.Marks()[0].Seen) == 0 && required != l.Marks()[0].Position {
					t.Errorf("required %v of %+v", required, l.Marks())
				}
				// Nothing was dispatched or asked for.
				cl.idle()
				if made := cl.made(); len(made) != 0 {
					t.Errorf("asks %v", made)
				}
			})
		})
	}
}

// Explain names tags, dedicated nodes and those that are kept in use, and agrees with
// what happens.
func TestExplainTags(t *testing.T) {
	t.Parallel()
	both := tidegate.NewCausal("both", "test", tidegate.Require("reporting", "big"))
	inBubble(t, 4, func(c *cluster) {
		c.router.cfg.MostLag = 50
		c.proven = tidegate.At(1000)
		c.tagged(2, true, "reporting")
		c.tagged(3, false, "batch")
		c.apply(200, 0, 1, 2)
		c.router.Judge(c.Table(), mono.Now())
		const has = "has everything that is required"
		late := "is left out for 0s: it was further behind"
		kept := "; it is out for its lag, and kept in use for this class (MinServing)"
		for class, want := range map[tidegate.Class][3]string{
			tidegate.Causal:                       {has, `is dedicated to classes that require or prefer one of its tags, ["reporting"]`, late},
			report:                                {`lacks the tag "reporting", which the class requires`, has, `lacks the tag "reporting", which`},
			both:                                  {`lacks the tag "reporting", which`, `lacks the tag "big", which`, `lacks the tag "reporting", which`},
			rather:                                {has + `; lacks the tag "reporting", which the class prefers`, has, late},
			serving(1):                            {has, "is dedicated to", late},
			serving(2):                            {has, "is dedicated to", has + kept},
			serving(1, tidegate.Require("batch")): {`lacks the tag "batch"`, `lacks the tag "batch"`, has + kept},
		} {
			l := session(50)
			_, verdicts := c.router.Explain(l, class)
			for i, v := range verdicts[1:] {
				if !strings.HasPrefix(v.Why, want[i]) || v.Eligible != strings.HasPrefix(want[i], has) || strings.HasPrefix(want[i], has) && v.Why != want[i] {
					t.Errorf("%v, n%d: eligible %v, %q; want %q", class, i+1, v.Eligible, v.Why, want[i])
				}
			}
			for range 10 {
				tk := &Ticket{Class: class, Ledger: l}
				if err := c.router.Begin(c.t.Context(), tk); err != nil {
					t.Fatal(err)
				}
				if tk.Role == tidegate.RoleReplica && !verdicts[tk.Node].Eligible {
					t.Errorf("%v goes to %d: %q", class, tk.Node, verdicts[tk.Node].Why)
				}
				c.router.Undo(tk)
			}
		}
		// A session that reads where the class must not, has to leave.
		l := ledger.New("main", 7, []tidegate.Mark{{Cluster: "main", Epoch: epoch, Seen: []tidegate.Incarnation{11}, Position: tidegate.At(50)}})
		if _, v := c.router.Explain(l, report); v[2].Eligible || v[2].Why != "what the session has seen elsewhere is not bounded yet; a look is needed" {
			t.Errorf("%+v", v[2])
		}
	})
}

func TestExplainBeforeTheFirstLook(t *testing.T) {
	t.Parallel()
	table := &freshness.Table{Primary: freshness.NoNode, Nodes: make([]freshness.Node, 2)}
	table.Nodes[1].Err = errDown
	r := router(hold(table), 2)
	r.slots[1].flying.Store(3)
	_, verdicts := r.Explain(nil, tidegate.Causal)
	for i, want := range []string{"has not been probed yet", "never answered a probe: connection refused"} {
		if v := verdicts[i]; v.Why != want || v.Eligible || v.ProbeAge >= 0 || v.Role != tidegate.RoleUnknown {
			t.Errorf("%+v, want %q", v, want)
		}
	}
	if verdicts[1].Flying != 3 {
		t.Errorf("%d in flight", verdicts[1].Flying)
	}
}

// What is explained is what happens.
func TestExplainAgreesWithTheDecision(t *testing.T) {
	t.Parallel()
	for _, class := range []tidegate.Class{tidegate.Causal, anyAge, strong} {
		for upTo := range uint64(4) {
			inBubble(t, 4, func(c *cluster) {
				c.proven = tidegate.At(200)
				c.router.cfg.LongestLag = 0 // no look proves an age here
				for i := 1; i < 4; i++ {
					c.apply(uint64(i), i)
				}
				l := session(upTo)
				_, verdicts := c.router.Explain(l, class)
				for range 10 {
					tk := &Ticket{Class: class, Ledger: l}
					if err := c.router.Begin(c.t.Context(), tk); err != nil {
						t.Fatal(err)
					}
					if !verdicts[tk.Node].Eligible {
						t.Errorf("%v up to %d goes to %d: %q", class, upTo, tk.Node, verdicts[tk.Node].Why)
					}
					c.router.Undo(tk)
				}
			})
		}
	}
}

// Asking why changes nothing.
func TestExplainLeavesTheSession(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		l := session(50)
		for _, exclude := range []uint64{1 << 1, 1 << 2} { // it has read on both replicas
			tk := &Ticket{Ledger: l, exclude: exclude, Class: anyAge}
			if err := c.router.Begin(t.Context(), tk); err != nil {
				t.Fatal(err)
			}
			c.router.Done(tk, mono.Now())
		}
		c.look(0, 1, 2)
		before := l.Marks()
		if required, _ := c.router.Explain(l, tidegate.Causal); required == tidegate.At(50) {
			t.Errorf("required %v, want what it has seen too", required)
		}
		if after := l.Marks(); !reflect.DeepEqual(before, after) {
			t.Errorf("%+v became %+v", before, after)
		}
	})
}
