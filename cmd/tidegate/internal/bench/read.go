package bench

import (
	"context"
	"fmt"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/bench/figure"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/bench/pairs"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// warmUp is how often both arms run before anything is measured: by then the
// connection, the prepared statement and the caches are there.
const warmUp = 200

// compare does all runs of a comparison between two arms that share the
// connection of a pool. Both arms have to be given the same context: with a
// session in it, and one that can be cancelled, as that of a request can. pgx
// watches such a context, which costs it something in either arm.
func (b *bench) compare(ctx context.Context, p pairs.Plan, w *witness, direct, routed pairs.Arm) ([]pairs.Run, error) {
	operations := int64(0)
	counted := func(a pairs.Arm) pairs.Arm {
		return func() error { operations++; return a() }
	}
	direct, routed = counted(direct), counted(routed)
	for range warmUp {
		if err := direct(); err != nil {
			return nil, err
		}
		if err := routed(); err != nil {
			return nil, err
		}
	}
	var runs []pairs.Run
	for i := range b.cfg.runs() {
		b.progress.Show(fmt.Sprintf("%s: run %d of %d", b.now, i+1, b.cfg.runs()))
		r, err := pairs.Compare(ctx, p, direct, routed)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, w.check(ctx, operations)
}

// onReplicas fails if reads since the earlier count waited or went elsewhere.
func onReplicas(before, after engine.Stats) error {
	if n := after.Waits - before.Waits; n != 0 {
		return fmt.Errorf("%d reads waited for a replica", n)
	}
	if n := after.Fallbacks - before.Fallbacks + after.Sessionless - before.Sessionless; n != 0 {
		return fmt.Errorf("%d reads went to the primary", n)
	}
	return nil
}

// readOverhead compares a causal read of a session that stays on its replica
// with the same read through the replica's pool.
func (b *bench) readOverhead(ctx context.Context) ([]figure.Figure, error) {
	db, err := b.stage.open(ctx, 1, nil)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if ctx, err = reader(ctx, db); err != nil {
		return nil, err
	}
	routed := func(ctx context.Context) error { return read(ctx, db, tidegate.Causal) }
	pool, err := poolOf(ctx, routed)
	if err != nil {
		return nil, err
	}
	w, err := watchPool(ctx, pool)
	if err != nil {
		return nil, err
	}
	before := db.Stats()
	runs, err := b.compare(ctx, pairs.Plan{Pairs: b.cfg.pairs()}, w,
		func() error { return readDirect(ctx, pool) },
		func() error { return routed(ctx) })
	if err == nil {
		err = onReplicas(before, db.Stats())
	}
	if err != nil {
		return nil, err
	}
	return b.ratio(ReadOverhead, figure.AtMost(1.01), runs), nil
}

// mustBeCurrent is a class whose reads go to the primary.
var mustBeCurrent = tidegate.Strong("bench-strong", "measures a read on the primary")

// primaryReadOverhead compares a strong read of a session, whose position is
// taken with it, with the same read through the same small pool on the primary.
func (b *bench) primaryReadOverhead(ctx context.Context) ([]figure.Figure, error) {
	db, err := b.stage.open(ctx, 1, nil)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	ctx = tidegate.WithSession(ctx, tidegate.NewSession())
	if err := write(ctx, db); err != nil {
		return nil, err
	}
	routed := func(ctx context.Context) error { return read(ctx, db, mustBeCurrent) }
	pool, err := poolOf(ctx, routed)
	if err != nil {
		return nil, err
	}
	w, err := watchPool(ctx, pool)
	if err != nil {
		return nil, err
	}
	runs, err := b.compare(ctx, pairs.Plan{Pairs: b.cfg.pairs()}, w,
		func() error { return readDirect(ctx, pool) },
		func() error { return routed(ctx) })
	if err != nil {
		return nil, err
	}
	return b.ratio(PrimaryReadOverhead, nil, runs), nil
}

// ratio makes the one figure of a comparison of the usual length.
func (b *bench) ratio(name string, target *figure.Target, runs []pairs.Run) []figure.Figure {
	f := figure.Ratio(name, target, b.cfg.pairs(), runs).Lacking(b.cfg.tooFew(b.cfg.pairs()))
	var direct []float64
	for _, r := range runs {
		direct = append(direct, r.First)
	}
	return []figure.Figure{f.Noted("the direct arm takes %.1f us", pairs.Median(direct)/1e3)}
}

// unasked keeps the watcher from probing by the clock: its allocations would
// count as those of the reads.
func unasked(c *pgxgate.Config) { c.ProbeInterval = maxInterval }
