package pgxgate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// probeSQL is bornSQL without what cannot change on a connection.
//
// On a standby the received position is sampled after the replayed one: if both
// are equal, nothing more had been received when replay stood there.
const probeSQL = `/* tidegate: probe */ select r,
 case when r then pg_last_wal_replay_lsn() else pg_current_wal_flush_lsn() end,
 case when r then pg_last_wal_receive_lsn() else pg_current_wal_insert_lsn() end,
 case when r then (select received_tli::bigint from pg_stat_wal_receiver)
  else ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint end
 from (select pg_is_in_recovery() as r offset 0) x`

// pendingSQL asks which server processes still run. Another role's start is
// NULL: then the number alone has to do.
const pendingSQL = `/* tidegate: unknown outcomes */ select pid::bigint, (extract(epoch from backend_start) * 1000000)::bigint
 from pg_stat_activity where pid = any($1::int[])`

// asyncSQL looks for anybody's default of synchronous_commit = off: the session's
// own, which includes the server's, and those of all databases and roles.
const asyncSQL = `/* tidegate: asynchronous commits */ select current_setting('synchronous_commit') = 'off'
 or exists (select from pg_db_role_setting s, unnest(s.setconfig) c where lower(c) in ('synchronous_commit=off', 'synchronous_commit=false', 'synchronous_commit=no', 'synchronous_commit=0'))`

// asyncLook is how often the defaults are looked at: they can be changed at any
// time.
const asyncLook = time.Second

const probeName = "tidegate_probe"

// errNoReplay is a standby that has not replayed anything yet, or a server in
// the middle of a change of role.
var errNoReplay = errors.New("pgxgate: the server gives no position yet")

// answer is what a probe said, before it means anything.
type answer struct {
	replica             bool
	first, second       uint64
	hasFirst, hasSecond bool
	line                uint64
}

// fill makes an observation of it. NULL means unknown, never zero.
func (a *answer) fill(o *engine.Observation, y layout) error {
	if !a.hasFirst || !a.replica && !a.hasSecond {
		return errNoReplay
	}
	o.Epoch.Line = a.line
	o.Applied = y.at(a.first)
	if !a.replica {
		o.Role, o.Bound, o.Ceiling = tidegate.RolePrimary, o.Applied, o.Applied
		o.Head = o.Applied.Join(y.at(a.second)) // commits that were not flushed have a position, too
		return nil
	}
	o.Role = tidegate.RoleReplica
	// Replay shows a commit before it moves past it. Unless everything received
	// was replayed, somebody may have seen the next record; after a restart the
	// received position can be missing or far behind and says nothing.
	o.Bound = tidegate.Beyond(y.normal(a.first))
	if a.hasSecond {
		o.Streamed = y.at(a.second)
	}
	switch {
	case !a.hasSecond || y.normal(a.second) < y.normal(a.first):
		o.Loose = true
	case y.normal(a.second) == y.normal(a.first):
		o.Bound = o.Applied
	}
	return nil
}

// watch is the connection that a node is asked on, apart from all pools. Probes
// and proofs take turns on it.
type watch struct {
	db   *DB
	cfg  *pgx.ConnConfig
	turn chan struct{}
	gone chan struct{} // closed when the node has been taken away
	// Guarded by turn.
	conn   *pgx.Conn
	state  *connState
	looked time.Time // for asynchronous commits
	// pedigree and least are what the server at the other end has told of its line.
	pedigree pedigree
	least    struct {
		line  uint64
		asked time.Time
	}
}

func newWatch(db *DB, base *pgxpool.Config) watch {
	c := base.ConnConfig.Copy()
	c.Tracer = nil // the user's tracer is for the user's statements
	// A serializable default is refused on standbys, and a repeatable read one
	// would need no snapshot here either.
	c.RuntimeParams["default_transaction_isolation"] = "read committed"
	return watch{db: db, cfg: c, turn: make(chan struct{}, 1), gone: make(chan struct{})}
}

// on runs f on the connection, making it if need be. An error of the connection
// ends it. One that was made earlier can have been cut since, which says nothing of
// the node: then f runs once more on a new one.
func (w *watch) on(ctx context.Context, f func(c *pgx.Conn, s *connState) error) error {
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-w.gone:
		return errNodeGone
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-w.gone: // both were ready
		return errNodeGone
	default:
	}
	for again := w.conn != nil && !w.conn.IsClosed(); ; again = false {
		if err := w.connect(ctx); err != nil {
			return err
		}
		err := f(w.conn, w.state)
		if err != nil && (sqlState(err) == "" || connectionLost(err)) {
			again = again && (connectionLost(err) || lostNetwork(err)) && ctx.Err() == nil
			_ = w.conn.Close(ctx)
		} else {
			again = false
		}
		if !again {
			return err
		}
	}
}

// connect makes the connection unless there is one. It is the caller's turn.
func (w *watch) connect(ctx context.Context) error {
	if w.conn != nil && !w.conn.IsClosed() {
		return nil
	}
	c, err := pgx.ConnectConfig(ctx, w.cfg)
	if err != nil {
		return err
	}
	s, err := bear(ctx, c.PgConn(), nil, AsyncAuto)
	if err == nil {
		_, err = c.PgConn().Prepare(ctx, probeName, probeSQL, nil)
	}
	if err != nil {
		_ = c.Close(ctx)
		return err
	}
	w.conn, w.state, w.looked, w.pedigree = c, s, time.Time{}, pedigree{refused: w.pedigree.refused}
	w.least.line, w.least.asked = 0, time.Time{}
	return nil
}

func (w *watch) close(ctx context.Context) {
	w.turn <- struct{}{}
	if w.conn != nil {
		_ = w.conn.Close(ctx)
	}
	<-w.turn
}

var binaryFormat = []int16{1}

// Probe implements engine.Source.
func (w *watch) Probe(ctx context.Context, pending []uint64) (engine.Observation, error) {
	var o engine.Observation
	err := w.on(ctx, func(c *pgx.Conn, s *connState) error {
		o = engine.Observation{Server: s.born.Server, Incarnation: s.born.Incarnation, Started: s.born.Started, Epoch: s.born.Epoch}
		if len(pending) > 0 {
			// Before the position: a process that is gone now has committed below it.
			running, err := stillRunning(ctx, c, pending)
			if err != nil {
				return err
			}
			o.Asked, o.Running = pending, running
		}
		r := c.PgConn().ExecPrepared(ctx, probeName, nil, nil, binaryFormat).Read()
		if r.Err != nil {
			return capability(r.Err)
		}
		if len(r.Rows) != 1 || len(r.Rows[0]) != 4 {
			return fmt.Errorf("pgxgate: a probe was answered with %d rows", len(r.Rows))
		}
		v := r.Rows[0]
		a := answer{replica: len(v[0]) == 1 && v[0][0] == 1}
		a.first, a.hasFirst = uint64Of(v[1])
		a.second, a.hasSecond = uint64Of(v[2])
		a.line, _ = uint64Of(v[3])
		if err := a.fill(&o, s.layout); err != nil {
			return err
		}
		w.place(ctx, c, s, &o)
		if now := time.Now(); o.Role == tidegate.RolePrimary && now.Sub(w.looked) > asyncLook {
			if err := w.db.async.look(ctx, c); err != nil {
				return err
			}
			w.looked = now
		}
		if o.Role == tidegate.RolePrimary && w.db.async.possible() {
			o.Ceiling = o.Applied.Join(s.layout.at(a.second))
		}
		return nil
	})
	return o, err
}

// place adds what is known of the server's line.
func (w *watch) place(ctx context.Context, c *pgx.Conn, s *connState, o *engine.Observation) {
	l := w.lineage(ctx, s, o.Epoch.Line)
	switch {
	case o.Role == tidegate.RolePrimary:
		o.Lineage, o.Replayed = l, w.replayed(ctx, c, s, o.Epoch.Line)
	case o.Epoch.Line == 0:
		o.LeastLine = w.leastLine(ctx, c)
	case l != nil && len(l.Branches) > 0:
		o.Epoch.Fork = l.Branches[len(l.Branches)-1].End.Number()
	}
}

// uint64Of reads the binary form of pg_lsn and bigint.
func uint64Of(b []byte) (uint64, bool) {
	if len(b) != 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(b), true
}

func stillRunning(ctx context.Context, c *pgx.Conn, pending []uint64) ([]uint64, error) {
	pids := make([]int32, len(pending))
	for i, p := range pending {
		pids[i] = int32(p >> 32)
	}
	rows, err := c.Query(ctx, pendingSQL, pids)
	if err != nil {
		return nil, err
	}
	var running []uint64
	var pid int64
	var start *int64
	_, err = pgx.ForEachRow(rows, []any{&pid, &start}, func() error {
		for _, p := range pending {
			if int64(p>>32) != pid {
				continue
			}
			// A start that we may not see, then or now, proves nothing else.
			if start == nil || uint32(p) == 0 || processID(pid, *start) == p {
				running = append(running, p)
			}
		}
		return nil
	})
	return running, err
}
