package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/bench/figure"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/bench/pairs"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// The looks at the replicas that a captured write asks for come a millisecond
// later, and so they slow down both arms alike. They are bounded by
// Config.DemandRate; probe_cpu_share and demand_probe_rate are about their cost.

// writeOverhead compares a single-statement write whose position is captured
// with the bare one.
func (b *bench) writeOverhead(ctx context.Context) ([]figure.Figure, error) {
	runs, n, err := b.compareWrites(ctx, pgxgate.AsyncAuto, b.cfg.pairs(), write, writeDirect)
	if err != nil {
		return nil, err
	}
	return b.written(WriteOverhead, figure.AtMost(1.25), n, runs), nil
}

// fsyncTime bounds the runs of the comparison with fsync on together, because
// disks differ by a hundred times.
const fsyncTime = 4 * time.Minute

// writeOverheadFsync is writeOverhead with fsync on, on all servers.
func (b *bench) writeOverheadFsync(ctx context.Context) (figures []figure.Figure, err error) {
	if err := b.fsync(ctx, "on"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.fsync(context.WithoutCancel(ctx), "off")) }()
	runs, n, err := b.compareWrites(ctx, pgxgate.AsyncAuto, b.cfg.pairs(), write, writeDirect)
	if err != nil {
		return nil, err
	}
	return b.written(WriteOverheadFsync, figure.AtMost(1.05), n, runs), nil
}

// fsync switches flushing on or off and returns when the servers have taken
// note.
func (b *bench) fsync(ctx context.Context, to string) error {
	for _, s := range b.stage.Servers() {
		if err := s.Set(map[string]string{"fsync": to}); err != nil {
			return err
		}
		if err := s.Reload(); err != nil {
			return err
		}
		limit := time.Now().Add(settleTime)
		for {
			got, err := s.SQL(ctx, "", "show fsync")
			if err != nil {
				return err
			}
			if got == to {
				break
			}
			if time.Now().After(limit) {
				return fmt.Errorf("%s still has fsync %s", s.Name, got)
			}
		}
	}
	return nil
}

// txOverhead compares a transaction of one insert whose commit is captured with
// the bare one: with asynchronous commits declared absent, and with the server
// asked at each commit.
func (b *bench) txOverhead(ctx context.Context) ([]figure.Figure, error) {
	var figures []figure.Figure
	for _, x := range []struct {
		name   string
		async  pgxgate.AsyncCommits
		target *figure.Target
	}{{TxWriteOverhead, pgxgate.AsyncAbsent, figure.AtMost(1.04)}, {TxWriteOverheadAuto, pgxgate.AsyncAuto, nil}} {
		if !b.wants(x.name) {
			continue
		}
		b.now = x.name
		runs, n, err := b.compareWrites(ctx, x.async, b.cfg.pairs(), tx, txDirect)
		if err != nil {
			return figures, err
		}
		figures = append(figures, b.written(x.name, x.target, n, runs)...)
	}
	return figures, nil
}

func tx(ctx context.Context, db *pgxgate.DB) error {
	return db.Write().Tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, writeSQL, key, key)
		return err
	})
}

func txDirect(ctx context.Context, pool *pgxpool.Pool) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, writeSQL, key, key)
		return err
	})
}

// compareWrites compares a routed write with a direct one through the primary's
// write pool. It returns how many pairs the runs had.
func (b *bench) compareWrites(ctx context.Context, async pgxgate.AsyncCommits, n int,
	routed func(context.Context, *pgxgate.DB) error, direct func(context.Context, *pgxpool.Pool) error,
) ([]pairs.Run, int, error) {
	if err := b.stage.truncate(ctx); err != nil {
		return nil, 0, err
	}
	db, err := b.stage.open(ctx, 1, func(c *pgxgate.Config) { c.AsyncCommits = async })
	if err != nil {
		return nil, 0, err
	}
	defer db.Close()
	ctx = tidegate.WithSession(ctx, tidegate.NewSession())
	pool, err := poolOf(ctx, func(ctx context.Context) error { return routed(ctx, db) })
	if err != nil {
		return nil, 0, err
	}
	n, err = b.affordable(n, func() error { return direct(ctx, pool) })
	if err != nil {
		return nil, 0, err
	}
	w, err := watchPool(ctx, pool)
	if err != nil {
		return nil, 0, err
	}
	runs, err := b.compare(ctx, pairs.Plan{Pairs: n}, w,
		func() error { return direct(ctx, pool) },
		func() error { return routed(ctx, db) })
	return runs, n, err
}

// affordable returns how many pairs there is time for, at most n: with a disk
// that flushes slowly, fewer.
func (b *bench) affordable(n int, op pairs.Arm) (int, error) {
	const tries = 50
	start := time.Now()
	for range tries {
		if err := op(); err != nil {
			return 0, err
		}
	}
	each := time.Since(start) / tries
	perPair := 4 * each * time.Duration(b.cfg.runs())
	return max(2, min(n, int(fsyncTime/max(perPair, 1)))), nil
}

// written is ratio for writes, of which there may have been fewer.
func (b *bench) written(name string, target *figure.Target, n int, runs []pairs.Run) []figure.Figure {
	figures := b.ratio(name, target, runs)
	figures[0].Pairs = n
	if n < b.cfg.pairs() {
		figures[0] = figures[0].Noted("writes are slow here: there was time for %d pairs in each run instead of %d", n, b.cfg.pairs())
	}
	return figures
}
