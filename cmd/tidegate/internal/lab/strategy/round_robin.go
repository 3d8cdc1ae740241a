package strategy

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// RoundRobin sends writes to the primary and reads to each replica in turn, as
// most applications with replicas do. It is written with care: a pool for each
// node, a node that refuses connections is skipped, a read that fails is tried
// once more on the next node, and the primary answers when no replica can. It
// knows nothing of what a session has seen, and its token is empty.
type RoundRobin struct{}

// Name implements Strategy.
func (RoundRobin) Name() string { return "round-robin" }

// About implements Strategy.
func (RoundRobin) About() string {
	return "writes to the primary, reads to each replica in turn"
}

// Open implements Strategy.
func (RoundRobin) Open(ctx context.Context, instance int, nodes Nodes, cfg Config) (Instance, error) {
	r := &roundRobin{}
	r.turn.Store(uint64(instance)) // instances need not march in step
	for i, dsn := range append([]string{nodes.Primary}, nodes.Replicas...) {
		pool, err := openPool(ctx, dsn, cfg)
		if err != nil {
			r.Close()
			return nil, err
		}
		if i == 0 {
			r.primary = pool
		} else {
			r.replicas = append(r.replicas, pool)
		}
	}
	return r, nil
}

type roundRobin struct {
	primary  *pgxpool.Pool
	replicas []*pgxpool.Pool
	turn     atomic.Uint64
}

// Read implements Instance.
func (r *roundRobin) Read(ctx context.Context, _ *Session, keys []int64) (record.Answer, error) {
	first, failed := r.turn.Add(1), 0
	for i := range r.replicas {
		n := int((first + uint64(i)) % uint64(len(r.replicas)))
		conn, err := r.replicas[n].Acquire(ctx)
		if err != nil {
			continue
		}
		rows, err := readRows(ctx, conn, keys)
		conn.Release()
		if err == nil {
			return record.Answer{Rows: rows, Node: fmt.Sprintf("replica-%d", n+1), Replica: true}, nil
		}
		if failed++; failed == 2 {
			return record.Answer{}, err
		}
	}
	rows, err := readRows(ctx, r.primary, keys)
	return record.Answer{Rows: rows, Node: "primary", Fallback: true}, err
}

// Write implements Instance.
func (r *roundRobin) Write(ctx context.Context, _ *Session, key, version int64) error {
	tag, err := r.primary.Exec(ctx, WriteSQL, key, version)
	if err != nil {
		return err
	}
	return wroteOne(tag.RowsAffected(), key, version)
}

// Close implements Instance.
func (r *roundRobin) Close() {
	for _, pool := range append(r.replicas, r.primary) {
		if pool != nil {
			pool.Close()
		}
	}
}

// openPool opens a pool as the configuration says and waits until it answers.
func openPool(ctx context.Context, dsn string, cfg Config) (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.tune(c)
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// querier is what a pool, a connection and a routed handle have in common.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// readRows runs ReadSQL.
func readRows(ctx context.Context, q querier, keys []int64) ([]record.Row, error) {
	rows, err := q.Query(ctx, ReadSQL, keys)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[record.Row])
}

// wroteOne turns a write that touched no row into an error.
func wroteOne(affected, key, version int64) error {
	if affected != 1 {
		return fmt.Errorf("the write of version %d to row %d touched %d rows instead of one", version, key, affected)
	}
	return nil
}
