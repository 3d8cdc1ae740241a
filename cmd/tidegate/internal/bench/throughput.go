package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/bench/figure"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/bench/pairs"
)

const readers = 4

// client is one reader of the throughput measurement.
type client struct {
	ctx  context.Context
	pool *pgxpool.Pool
}

// readThroughput compares how many reads per second several readers get done,
// each with a session of its own, in slices of time that take turns. Unlike
// the single reads, slices pay for their own garbage, and for what routing costs
// in the background.
func (b *bench) readThroughput(ctx context.Context) ([]figure.Figure, error) {
	db, err := b.stage.open(ctx, readers, nil)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	routed := func(ctx context.Context) error { return read(ctx, db, tidegate.Causal) }
	var clients []client
	for range readers {
		ctx, err := reader(ctx, db)
		if err != nil {
			return nil, err
		}
		pool, err := poolOf(ctx, routed)
		if err != nil {
			return nil, err
		}
		clients = append(clients, client{ctx, pool})
	}
	slice := normal(&b.cfg, 100*time.Millisecond, 10*time.Millisecond)
	n := normal(&b.cfg, 24, 2)
	var reads int64
	p := pairs.Plan{Pairs: n, Collect: true, Measure: func(arm pairs.Arm) (float64, error) {
		reads = 0
		start := time.Now()
		err := arm()
		return float64(reads) / time.Since(start).Seconds(), err
	}}
	all := func(op func(c client) error) pairs.Arm {
		return func() (err error) {
			reads, err = readAll(clients, slice, op)
			return err
		}
	}
	direct := all(func(c client) error { return readDirect(c.ctx, c.pool) })
	through := all(func(c client) error { return routed(c.ctx) })
	before := db.Stats()
	var runs []pairs.Run
	for i := range b.cfg.runs() {
		b.progress.Show(fmt.Sprintf("%s: run %d of %d", b.now, i+1, b.cfg.runs()))
		for _, arm := range []pairs.Arm{direct, through} { // warm up
			if err := arm(); err != nil {
				return nil, err
			}
		}
		r, err := pairs.Compare(ctx, p, direct, through)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	if err := onReplicas(before, db.Stats()); err != nil {
		return nil, err
	}
	rates := make([]float64, 0, len(runs))
	for _, r := range runs {
		rates = append(rates, r.First)
	}
	return []figure.Figure{figure.Ratio(ReadThroughput, nil, n, runs).Noted(
		"%d readers, slices of %v, %.0f direct reads/s; at least 0.98 is expected", readers, slice, pairs.Median(rates))}, nil
}

// readAll lets all clients read for the time and returns how many reads they
// did.
func readAll(clients []client, d time.Duration, op func(client) error) (int64, error) {
	counts := make([]int64, len(clients))
	errs := make([]error, len(clients))
	end := time.Now().Add(d)
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			n := int64(0)
			for errs[i] == nil && time.Now().Before(end) {
				errs[i] = op(c)
				n++
			}
			counts[i] = n
		})
	}
	wg.Wait()
	var sum int64
	for _, n := range counts {
		sum += n
	}
	return sum, errors.Join(errs...)
}
