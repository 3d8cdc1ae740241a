package tidegatetest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/tidegatetest"
)

var (
	claim = tidegate.Strong("claim", "two workers must not both win")
	stale = tidegate.Relaxed("stale", "of any age", tidegate.AnyStaleness())
)

// both runs a test in a bubble and outside of one.
func both(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Run("bubble", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, test)
	})
	t.Run("plain", func(t *testing.T) {
		t.Parallel()
		test(t)
	})
}

func session(t *testing.T, tokens ...tidegate.Token) context.Context {
	return tidegate.WithSession(t.Context(), tidegate.NewSession(tokens...))
}

func put(ctx context.Context, t *testing.T, c *tidegatetest.Cluster, key, value string) {
	t.Helper()
	if err := c.Put(ctx, key, value); err != nil {
		t.Errorf("put %s: %v", key, err)
	}
}

// shows checks what a routed read returns and where it came from; "" is nothing,
// and anywhere.
func shows(ctx context.Context, t *testing.T, c *tidegatetest.Cluster, class tidegate.Class, key, want, node string) {
	t.Helper()
	ctx, seen := tidegate.Observe(ctx)
	value, ok, err := c.Get(ctx, class, key)
	d, _ := seen.Last()
	if err != nil || value != want || ok != (want != "") || node != "" && d.Node != node {
		t.Errorf("get %s: %q, %v, %v (%v), want %q from %s", key, value, ok, err, d, want, node)
	}
}

// itself checks what a node shows past all routing.
func itself(t *testing.T, n *tidegatetest.Node, key, want string) {
	t.Helper()
	if value, ok := n.Get(key); value != want || ok != (want != "") {
		t.Errorf("%s shows %q (%v) under %s, want %q", n.Name(), value, ok, key, want)
	}
}

func TestHeldReplica(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T) {
		c := tidegatetest.New(t, tidegatetest.Config{Replicas: 1})
		ctx := session(t)
		put(ctx, t, c, "k", "old")
		put(ctx, t, c, "other", "x")
		itself(t, c.Replica(0), "k", "old")
		c.Replica(0).Hold()
		put(ctx, t, c, "k", "new")
		itself(t, c.Replica(0), "k", "old")
		itself(t, c.Primary(), "k", "new")
		shows(ctx, t, c, tidegate.Causal, "k", "new", "p")
		shows(t.Context(), t, c, claim, "k", "new", "p")
		shows(session(t), t, c, tidegate.Causal, "k", "old", "r1") // another session
		shows(t.Context(), t, c, stale, "k", "old", "r1")
		c.Replica(0).Release()
		c.Probe()
		shows(ctx, t, c, tidegate.Causal, "k", "new", "r1")
		shows(ctx, t, c, tidegate.Causal, "other", "x", "")
		shows(ctx, t, c, tidegate.Causal, "nothing", "", "")
	})
}

func TestTokenCarriesTheSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := tidegatetest.New(t, tidegatetest.Config{Name: "main"})
		c.Replica(0).Hold()
		c.Replica(1).Hold()
		ctx := session(t)
		put(ctx, t, c, "k", "v")
		token := tidegate.SessionFrom(ctx).Token()
		if m := token.Marks(); len(m) != 1 || m[0].Cluster != "main" {
			t.Errorf("marks %v", m)
		}
		shows(session(t, token), t, c, tidegate.Causal, "k", "v", "p")
		shows(session(t), t, c, tidegate.Causal, "k", "", "")
	})
}

func TestLag(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := tidegatetest.New(t, tidegatetest.Config{Replicas: 1, Wait: 50 * time.Millisecond})
		c.Replica(0).Lag(30 * time.Millisecond)
		ctx := session(t)
		put(ctx, t, c, "k", "v")
		itself(t, c.Replica(0), "k", "")
		shows(ctx, t, c, tidegate.NewCausal("patient", "waits for its replica", tidegate.Wait(50*time.Millisecond)), "k", "v", "")
		time.Sleep(30 * time.Millisecond)
		itself(t, c.Replica(0), "k", "v")
	})
}

func TestCrash(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T) {
		c := tidegatetest.New(t, tidegatetest.Config{Replicas: 1})
		ctx := session(t)
		for i := range 3 {
			put(ctx, t, c, "k", fmt.Sprint(i))
		}
		c.Probe()
		shows(ctx, t, c, tidegate.Causal, "k", "2", "r1")
		c.Replica(0).Crash(2)
		itself(t, c.Replica(0), "k", "0")
		shows(ctx, t, c, tidegate.Causal, "k", "2", "p") // and never the 0
		c.Replica(0).Release()
		c.Probe()
		itself(t, c.Replica(0), "k", "2")
		shows(ctx, t, c, tidegate.Causal, "k", "2", "r1")
	})
}

func TestPrimaryGone(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T) {
		c := tidegatetest.New(t, tidegatetest.Config{})
		ctx := session(t)
		put(ctx, t, c, "k", "v")
		c.Probe()
		c.Primary().Stop()
		if err := c.Put(ctx, "k", "w"); !errors.Is(err, tidegatetest.ErrUnavailable) {
			t.Errorf("a put on a stopped primary: %v", err)
		}
		if c.Primary() != nil {
			t.Error("there is a primary")
		}
		shows(session(t), t, c, tidegate.Causal, "k", "v", "") // reads go on
	})
}

func TestPromotion(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T) {
		c := tidegatetest.New(t, tidegatetest.Config{Replicas: 3})
		old := c.Primary()
		ctx := session(t)
		put(ctx, t, c, "k", "v")
		c.Replica(2).Stop()
		c.Replica(0).Hold()
		put(ctx, t, c, "k", "w")
		c.Replica(0).Promote() // applies first what it has received
		c.Probe()
		if p := c.Primary(); p != c.Replica(0) || p.Role() != tidegate.RolePrimary {
			t.Errorf("the primary is %v", p)
		}
		itself(t, c.Replica(0), "k", "w")
		after := session(t)
		put(after, t, c, "k", "x")
		itself(t, c.Replica(1), "k", "x")
		shows(after, t, c, tidegate.Causal, "k", "x", "")

		// What the old session must see has survived: it is not told of anything.
		observed, seen := tidegate.Observe(ctx)
		if v, _, err := c.Get(observed, tidegate.Causal, "k"); err != nil || v != "x" {
			t.Error(v, err)
		}
		if d, _ := seen.Last(); d.Reason == tidegate.ReasonHistoryChanged {
			t.Errorf("%v", d)
		}

		for _, n := range []*tidegatetest.Node{old, c.Replica(2)} {
			n.Start()
			if n.Role() != tidegate.RoleReplica {
				t.Errorf("%s came back as a %v", n.Name(), n.Role())
			}
		}
		put(after, t, c, "k", "y")
		itself(t, old, "k", "y")
		itself(t, c.Replica(2), "k", "y")
		c.Probe()
		for _, n := range c.Core().Status().Nodes {
			if n.Err != nil || n.Usable == (n.Role == tidegate.RolePrimary) {
				t.Errorf("%+v", n)
			}
		}
	})
}

// What a replica has not received is lost with its promotion, and who must see it is told.
func TestLossyPromotion(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T) {
		c := tidegatetest.New(t, tidegatetest.Config{})
		early, late := session(t), session(t)
		put(early, t, c, "k", "v")
		c.Replica(0).Cut()
		put(late, t, c, "k", "w")
		c.Replica(0).Promote()
		c.Replica(0).Mend()
		c.Probe()
		for _, x := range []struct {
			ctx context.Context
			why tidegate.Verdict
		}{{early, tidegate.VerdictNone}, {late, tidegate.VerdictLost}, {late, tidegate.VerdictNone}} {
			observed, seen := tidegate.Observe(x.ctx)
			v, _, err := c.Get(observed, tidegate.Causal, "k")
			if d, _ := seen.Last(); err != nil || v != "v" || d.Verdict != x.why || d.Unproven != (x.why == tidegate.VerdictLost) {
				t.Errorf("%q, %v: %v; want the verdict %v", v, err, d, x.why)
			}
		}
	})
}

func TestRestart(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T) {
		c := tidegatetest.New(t, tidegatetest.Config{Replicas: 1})
		ctx := session(t)
		put(ctx, t, c, "k", "v")
		p := c.Primary()
		p.Stop()
		c.Replica(0).Stop()
		c.Probe()
		if err := c.Put(ctx, "k", "w"); err == nil {
			t.Error("a put without a server")
		}
		c.Replica(0).Start()
		p.Start()
		p.Start() // it runs
		c.Probe()
		put(session(t), t, c, "k", "x")
		itself(t, c.Replica(0), "k", "x")
	})
}

func TestHooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		decided := 0
		c := tidegatetest.New(t, tidegatetest.Config{Hooks: []tidegate.Hook{{Decided: func(context.Context, tidegate.Decision) { decided++ }}}})
		shows(session(t), t, c, tidegate.Causal, "k", "", "")
		if decided != 1 {
			t.Errorf("%d decisions", decided)
		}
	})
}

// No session reads less than it wrote or saw, on keys that all write, while
// replicas are held and released.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T) {
		c := tidegatetest.New(t, tidegatetest.Config{})
		var wg sync.WaitGroup
		for u := range 4 {
			wg.Go(func() {
				ctx, key, last := session(t), fmt.Sprint("k", u%2), ""
				for i := range 50 {
					if value, _, err := c.Get(ctx, tidegate.Causal, key); err != nil || value < last {
						t.Errorf("%q after %q, %v", value, last, err)
					} else {
						last = value
					}
					if u < 2 { // one writes each key
						last = fmt.Sprintf("%03d", i)
						put(ctx, t, c, key, last)
					}
				}
			})
		}
		for i := range 20 {
			c.Replica(i % 2).Hold()
			c.Probe()
			c.Replica(i % 2).Release()
		}
		wg.Wait()
	})
}

// Whom the router knows to be down it looks at seldom: Probe does not wait for that.
func TestProbeDoesNotWaitForTheDead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := tidegatetest.New(t, tidegatetest.Config{})
		c.Replica(0).Stop()
		time.Sleep(10 * time.Second)
		begun := time.Now()
		c.Probe()
		if took := time.Since(begun); took > 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		c.Replica(0).Start()
		c.Probe()
		for _, n := range c.Core().Status().Nodes {
			if n.Err != nil {
				t.Errorf("the router has not noticed that %s is back: %v", n.Node, n.Err)
			}
		}
	})
}

// A write after a read from a replica is a place to look at.
func TestSuspects(t *testing.T) {
	t.Parallel()
	c := tidegatetest.New(t, tidegatetest.Config{})
	ctx := tidegate.WithSession(t.Context(), tidegate.NewSession())
	for i, want := range []int{0, 1} {
		if err := c.Put(ctx, "stock", "5"); err != nil {
			t.Fatal(err)
		}
		if got := c.Suspects(); len(got) != want {
			t.Errorf("write %d: %+v", i, got)
		}
		if _, _, err := c.Get(ctx, tidegate.Causal, "stock"); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.Suspects()[0]; !strings.Contains(got.Read, "TestSuspects (cluster_test.go:") || !strings.Contains(got.Write, "TestSuspects (cluster_test.go:") {
		t.Errorf("%+v", got)
	}
}
