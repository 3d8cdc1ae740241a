package fake_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

var strong = tidegate.Strong("strong", "a test reads on the primary")

// inSession runs f with a gate to a cluster of one replica that applies nothing
// and a session of its own.
func inSession(t *testing.T, opts fake.Options, f func(ctx context.Context, t *testing.T, g *fake.Gate, c *fake.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := fake.New(fake.Config{Replicas: 1, Manual: true})
		g, err := c.Open(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		f(tidegate.WithSession(t.Context(), tidegate.NewSession()), t, g, c)
	})
}

// afterwards returns the decision of a causal read, which must show the commit.
func afterwards(ctx context.Context, t *testing.T, g *fake.Gate, serial int) tidegate.Decision {
	t.Helper()
	res, err := g.Look(ctx, tidegate.Causal)
	if err != nil || !res.View.Has(serial) {
		t.Fatalf("shows %b without commit %d: %v, error %v", res.View, serial, res.Decision, err)
	}
	return res.Decision
}

func TestHeldConnectionShowsTheNewest(t *testing.T) {
	inSession(t, fake.Options{}, func(ctx context.Context, t *testing.T, g *fake.Gate, c *fake.Cluster) {
		h, err := g.Acquire(ctx, strong)
		if err != nil {
			t.Fatal(err)
		}
		n, id := h.Node()
		if n != c.Primary() || id != n.Incarnation() || h.Decision().Node != "p" {
			t.Errorf("leads to %s: %v", n.Name(), h.Decision())
		}
		for range 2 {
			serial := c.Commit(1)
			v, err := h.Look(ctx)
			if err != nil || !v.Has(serial) {
				t.Errorf("shows %b without commit %d, error %v", v, serial, err)
			}
			if !c.Lacking(v) {
				t.Error("the replica has nothing, and it does not lack anything")
			}
		}
		h.Release(ctx)
		if d := afterwards(ctx, t, g, 2); d.Unproven {
			t.Errorf("%v", d)
		}
	})
}

func TestBrokenConnectionHasShownWhatItHasShown(t *testing.T) {
	inSession(t, fake.Options{}, func(ctx context.Context, t *testing.T, g *fake.Gate, c *fake.Cluster) {
		serial := c.Commit(1)
		h, err := g.Acquire(ctx, strong)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := h.Look(ctx); err != nil || !v.Has(serial) {
			t.Fatalf("shows %b, error %v", v, err)
		}
		h.Break()
		if v, err := h.Look(ctx); !errors.Is(err, fake.ErrDead) || v != nil {
			t.Errorf("a broken connection shows %b, error %v", v, err)
		}
		h.Release(ctx)
		afterwards(ctx, t, g, serial)
	})
}

func TestConnectionBreaksBeforeTheAnswer(t *testing.T) {
	breaks := 1
	opts := fake.Options{Breaks: func(_ *fake.Node, op fake.Op) bool {
		if op == fake.OpRead {
			breaks--
		}
		return op == fake.OpRead && breaks == 0
	}}
	inSession(t, opts, func(ctx context.Context, t *testing.T, g *fake.Gate, c *fake.Cluster) {
		res, err := g.Look(ctx, strong)
		if err != nil || res.Decision.Retries != 1 {
			t.Errorf("%v, error %v, want the read to begin again", res.Decision, err)
		}
		breaks = 1
		h, err := g.Acquire(ctx, strong)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Release(ctx)
		if _, err := h.Look(ctx); !errors.Is(err, fake.ErrBroken) {
			t.Errorf("error %v", err)
		}
	})
}

func TestTransactionEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(ctx context.Context, t *testing.T, tx *fake.Tx)
		lands bool
	}{
		"commit": {func(ctx context.Context, t *testing.T, tx *fake.Tx) {
			if serial, err := tx.Commit(ctx); err != nil || serial != 2 {
				t.Errorf("commit %d, error %v", serial, err)
			}
		}, true},
		"rollback": {func(ctx context.Context, _ *testing.T, tx *fake.Tx) { tx.Rollback(ctx) }, false},
		"by itself": {func(ctx context.Context, t *testing.T, tx *fake.Tx) {
			if serial, err := tx.CommitItself(ctx); err != nil || serial != 2 {
				t.Errorf("commit %d, error %v", serial, err)
			}
			tx.End(ctx)
		}, true},
		"lost": {func(_ context.Context, _ *testing.T, tx *fake.Tx) {
			tx.Lose()
			time.AfterFunc(time.Second/2, func() {
				tx.Process().Flush()
				tx.Process().End()
			})
		}, true},
		"cancelled": {func(ctx context.Context, t *testing.T, tx *fake.Tx) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			if _, err := tx.Commit(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			tx.Process().End()
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			inSession(t, fake.Options{Delay: func(*fake.Node, fake.Op) time.Duration { return time.Millisecond }}, func(ctx context.Context, t *testing.T, g *fake.Gate, cl *fake.Cluster) {
				other := cl.Commit(1)
				tx, err := g.Begin(ctx, 7)
				if err != nil {
					t.Fatal(err)
				}
				if v, err := tx.Look(ctx); err != nil || !v.Has(other) || v.Count() != 1 {
					t.Errorf("shows %b, error %v", v, err)
				}
				c.end(ctx, t, tx)
				afterwards(ctx, t, g, other)
				if got := cl.Primary().Version(7) == 2; got != c.lands {
					t.Errorf("committed: %v, want %v", got, c.lands)
				}
			})
		})
	}
}
