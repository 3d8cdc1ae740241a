package bench

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/bench/figure"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/bench/pairs"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

type quiet struct{}

func (quiet) Show(string) {}

func quickly(figures ...string) Config {
	return Config{Figures: figures, Pairs: EnoughPairs, Runs: EnoughRuns, Quick: true}
}

// Arms on different connections compare servers, not ways of routing.
func TestComparisonNeedsOnePool(t *testing.T) {
	t.Parallel()
	pgcluster.InstallForTest(t)
	ctx := t.Context()
	s, err := raise(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	db, err := s.open(ctx, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, err = reader(ctx, db)
	if err != nil {
		t.Fatal(err)
	}
	causal := func(ctx context.Context) error { return read(ctx, db, tidegate.Causal) }
	pool, err := poolOf(ctx, causal)
	if err != nil {
		t.Fatal(err)
	}
	// Without the session, which a read on the primary could make leave its replica.
	elsewhere, err := poolOf(t.Context(), func(ctx context.Context) error { return read(ctx, db, mustBeCurrent) })
	if err != nil || elsewhere == pool {
		t.Fatalf("strong reads use the pool of causal ones, %v", err)
	}
	b := &bench{cfg: quickly(), progress: quiet{}}
	for _, c := range []struct {
		what   string
		routed func() error
		want   string
	}{
		{"the same pool", func() error { return causal(ctx) }, ""},
		{"the pool twice", func() error { return errors.Join(causal(ctx), causal(ctx)) }, "tried again"},
		{"another pool", func() error { return read(ctx, db, mustBeCurrent) }, "routed elsewhere"},
	} {
		w, err := watchPool(ctx, pool)
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.compare(ctx, pairs.Plan{Pairs: 2}, w, func() error { return readDirect(ctx, pool) }, c.routed)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	w, err := watchPool(ctx, pool)
	if err != nil {
		t.Fatal(err)
	}
	w.pid++
	if err := w.check(ctx, 0); err == nil || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("another backend: %v", err)
	}
	wide, err := s.open(ctx, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer wide.Close()
	pool, err = poolOf(ctx, func(ctx context.Context) error { return read(ctx, wide, mustBeCurrent) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watchPool(ctx, pool); err == nil {
		t.Error("a pool of two connections passes")
	}
}

func TestOnReplicas(t *testing.T) {
	t.Parallel()
	was := engine.Stats{Waits: 3, Fallbacks: 4, Sessionless: 5}
	if err := onReplicas(was, was); err != nil {
		t.Error(err)
	}
	for _, now := range []engine.Stats{
		{Waits: 4, Fallbacks: 4, Sessionless: 5}, {Waits: 3, Fallbacks: 5, Sessionless: 5}, {Waits: 3, Fallbacks: 4, Sessionless: 6},
	} {
		if onReplicas(was, now) == nil {
			t.Errorf("%+v passes", now)
		}
	}
}

func TestTooFew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cfg    Config
		enough bool
	}{
		{Config{Pairs: EnoughPairs, Runs: EnoughRuns}, true},
		{Config{Pairs: EnoughPairs - 1, Runs: EnoughRuns}, false},
		{Config{Pairs: EnoughPairs, Runs: EnoughRuns - 1}, false},
		{Config{Pairs: EnoughPairs, Runs: EnoughRuns, Quick: true}, false},
	} {
		if why := c.cfg.tooFew(c.cfg.Pairs); why == "" != c.enough {
			t.Errorf("%+v: %q", c.cfg, why)
		}
	}
}

// Without servers, what needs none is measured all the same.
func TestMeasureNeedsServersOnlyWhereItUsesThem(t *testing.T) {
	cfg := quickly(PickTime)
	cfg.PGBin = t.TempDir()
	result, err := Measure(t.Context(), cfg, quiet{})
	if err != nil || len(result.Figures) != 1 || result.Figures[0].Name != PickTime || result.Figures[0].Verdict != figure.Inconclusive {
		t.Errorf("%+v, %v", result, err)
	}
	cfg.Figures = []string{PickTime, ReadAllocs}
	if _, err := Measure(t.Context(), cfg, quiet{}); !errors.Is(err, ErrNoServer) {
		t.Errorf("got %v", err)
	}
}

func TestMeasureEndsWithItsContext(t *testing.T) {
	t.Parallel()
	pgcluster.InstallForTest(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	result, err := Measure(ctx, quickly(ReadOverhead), quiet{})
	if !errors.Is(err, context.Canceled) || result == nil || len(result.Figures) != 0 {
		t.Errorf("%+v, %v", result, err)
	}
}
