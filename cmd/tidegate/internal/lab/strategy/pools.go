package strategy

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// Why a strategy other than tidegate read from the primary.
const (
	reasonAlways    = "always"     // it reads nowhere else
	reasonStrong    = "strong"     // the read asked for it
	reasonPinned    = "pinned"     // the session wrote a moment ago
	reasonBehind    = "behind"     // the replica that was asked lacks the session's write
	reasonNoReplica = "no-replica" // no replica answered
)

// pools are what a careful application has that knows its primary and its
// replicas: a pool for each node, and what it does when a node fails. A node
// that refuses connections is skipped, a read that fails is tried once more on
// the next node, and the primary answers when no replica can.
type pools struct {
	primary  *pgxpool.Pool
	replicas []*pgxpool.Pool
	turn     atomic.Uint64
}

// openPools opens the pools of one instance and waits until each answers.
func openPools(ctx context.Context, instance int, nodes Nodes, cfg Config) (*pools, error) {
	p := &pools{}
	p.turn.Store(uint64(instance)) // instances need not march in step
	for i, dsn := range append([]string{nodes.Primary}, nodes.Replicas...) {
		pool, err := openPool(ctx, dsn, cfg)
		if err != nil {
			p.Close()
			return nil, err
		}
		if i == 0 {
			p.primary = pool
		} else {
			p.replicas = append(p.replicas, pool)
		}
	}
	return p, nil
}

// coverage reports whether the server behind a connection has what a read needs.
type coverage func(ctx context.Context, conn *pgxpool.Conn) (bool, error)

// onReplica reads from the replica whose turn it is. With a coverage, that one
// replica is asked first, and the primary answers when it lacks something.
func (p *pools) onReplica(ctx context.Context, keys []int64, covers coverage) (record.Answer, error) {
	first, failed := p.turn.Add(1), 0
	for i := range p.replicas {
		n := int((first + uint64(i)) % uint64(len(p.replicas)))
		conn, err := p.replicas[n].Acquire(ctx)
		if err != nil {
			continue
		}
		rows, covered, err := readCovered(ctx, conn, keys, covers)
		conn.Release()
		switch {
		case err == nil && !covered:
			return p.onPrimary(ctx, keys, reasonBehind)
		case err == nil:
			return record.Answer{Rows: rows, Node: ReplicaName(n), Replica: true, Retries: failed}, nil
		}
		if failed++; failed == 2 {
			return record.Answer{Begun: len(rows) > 0}, err
		}
	}
	return p.onPrimary(ctx, keys, reasonNoReplica)
}

func readCovered(ctx context.Context, conn *pgxpool.Conn, keys []int64, covers coverage) (rows []record.Row, covered bool, err error) {
	if covers != nil {
		if covered, err := covers(ctx, conn); err != nil || !covered {
			return nil, false, err
		}
	}
	rows, err = readRows(ctx, conn, keys)
	return rows, true, err
}

// onPrimary reads from the primary. It is a fallback if a replica was wanted.
func (p *pools) onPrimary(ctx context.Context, keys []int64, reason string) (record.Answer, error) {
	rows, err := readRows(ctx, p.primary, keys)
	return record.Answer{
		Rows: rows, Node: "primary", Reason: reason, Begun: err != nil && len(rows) > 0,
		Fallback: reason == reasonBehind || reason == reasonNoReplica,
	}, err
}

// ReadStrong implements Instance.
func (p *pools) ReadStrong(ctx context.Context, _ *Session, keys []int64) (record.Answer, error) {
	return p.onPrimary(ctx, keys, reasonStrong)
}

// Write implements Instance.
func (p *pools) Write(ctx context.Context, _ *Session, key, version int64) error {
	return write(ctx, p.primary, key, version)
}

// Close implements Instance.
func (p *pools) Close() {
	for _, pool := range append(p.replicas, p.primary) {
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

// Statements are run by a pool, a connection and a routed handle alike.
type (
	querier interface {
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	}
	execer interface {
		Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	}
)

// readRows runs ReadSQL. Beside an error it returns the rows that came before.
func readRows(ctx context.Context, q querier, keys []int64) (list []record.Row, err error) {
	rows, err := q.Query(ctx, ReadSQL, keys)
	if err != nil {
		return nil, err
	}
	var r record.Row
	_, err = pgx.ForEachRow(rows, []any{&r.Key, &r.Version}, func() error {
		list = append(list, r)
		return nil
	})
	return list, err
}

// write runs WriteSQL. A write that touched no row is an error.
func write(ctx context.Context, e execer, key, version int64) error {
	tag, err := e.Exec(ctx, WriteSQL, key, version)
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("the write of version %d to row %d touched %d rows instead of one", version, key, tag.RowsAffected())
	}
	return err
}
