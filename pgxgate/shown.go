package pgxgate

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// A primary flushes and streams a commit before it makes it visible, so a
// replica can be ahead of what the primary shows. The statements below prove
// what it shows; a standby's own snapshot is never asked whether it shows a
// transaction, because its list of those in progress is empty.

const snapshotSQL = `/* tidegate: shown */ select pg_snapshot_xmax(s)::text::bigint, array(select x::text::bigint from pg_snapshot_xip(s) x)
 from pg_current_snapshot() s`

// replaySQL stands alone: the position is sampled before the list's snapshot.
const replaySQL = `/* tidegate: shown */ select pg_last_wal_replay_lsn()::text`

// committedSQL lists what is committed here and not shown by the primary's
// snapshot ($1 in progress there, $2 its xmax). CASE keeps the planner from
// asking for the status of a transaction that this standby has not heard of.
const committedSQL = `/* tidegate: shown */ with a as materialized (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint m)
 select coalesce(array_agg(x) filter (where case when x < m then pg_xact_status(x::text::xid8) = 'committed' else false end), '{}')
 from (select x, m from unnest($1::bigint[]) x, a union all select x, m from a, generate_series($2::bigint, a.m - 1) x) q`

const showsSQL = `/* tidegate: shown */ select coalesce(bool_and(pg_visible_in_snapshot(x::text::xid8, s)), true)
 from (select pg_current_snapshot() s) s, unnest($1::bigint[]) x`

// openSQL: the flushed position first, then who is open. Whoever flushed a
// commit before and has not made it visible still holds its lock.
const openPosSQL = `/* tidegate: shown */ select pg_current_wal_flush_lsn()::text`

const openSQL = `/* tidegate: shown */ select coalesce(array_agg(transactionid::text), '{}') from pg_locks
 where locktype = 'transactionid' and mode = 'ExclusiveLock' and granted`

const endedSQL = `/* tidegate: shown */ select not exists (select from pg_locks
 where locktype = 'transactionid' and mode = 'ExclusiveLock' and granted and transactionid::text = any($1::text[]))`

// snapshot is what the primary showed.
type snapshot struct {
	xmax int64
	xip  []int64
}

// Snapshot implements engine.Prover.
func (w *watch) Snapshot(ctx context.Context) (engine.Snapshot, error) {
	var s snapshot
	err := w.on(ctx, func(c *pgx.Conn, _ *connState) error {
		return c.QueryRow(ctx, snapshotSQL).Scan(&s.xmax, &s.xip)
	})
	return s, err
}

// Committed implements engine.Prover.
func (w *watch) Committed(ctx context.Context, snap engine.Snapshot) (tidegate.Position, engine.Transactions, error) {
	s := snap.(snapshot)
	var pos tidegate.Position
	var missing []int64
	err := w.on(ctx, func(c *pgx.Conn, st *connState) error {
		var text *string
		if err := c.QueryRow(ctx, replaySQL).Scan(&text); err != nil {
			return err
		}
		if text == nil {
			return errNoReplay
		}
		lsn, err := parseLSN(*text)
		if err != nil {
			return err
		}
		pos = st.layout.at(lsn)
		return c.QueryRow(ctx, committedSQL, s.xip, s.xmax).Scan(&missing)
	})
	if err != nil || len(missing) == 0 {
		return pos, nil, err
	}
	return pos, missing, nil
}

// Shows implements engine.Prover.
func (w *watch) Shows(ctx context.Context, t engine.Transactions) (bool, error) {
	var ok bool
	err := w.on(ctx, func(c *pgx.Conn, _ *connState) error {
		return c.QueryRow(ctx, showsSQL, t.([]int64)).Scan(&ok)
	})
	return ok, err
}

// Open implements engine.Prover.
func (w *watch) Open(ctx context.Context) (tidegate.Position, engine.Transactions, error) {
	var pos tidegate.Position
	var open []string
	err := w.on(ctx, func(c *pgx.Conn, st *connState) error {
		var text string
		if err := c.QueryRow(ctx, openPosSQL).Scan(&text); err != nil {
			return err
		}
		lsn, err := parseLSN(text)
		if err != nil {
			return err
		}
		pos = st.layout.at(lsn)
		return c.QueryRow(ctx, openSQL).Scan(&open)
	})
	if err != nil || len(open) == 0 {
		return pos, nil, err
	}
	return pos, open, nil
}

// Ended implements engine.Prover.
func (w *watch) Ended(ctx context.Context, t engine.Transactions) (bool, error) {
	var ok bool
	err := w.on(ctx, func(c *pgx.Conn, _ *connState) error {
		return c.QueryRow(ctx, endedSQL, t.([]string)).Scan(&ok)
	})
	return ok, err
}

var _ engine.Prover = (*watch)(nil)
