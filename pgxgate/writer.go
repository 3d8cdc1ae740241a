package pgxgate

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/pgxgate/internal/wire"
)

// Writer is the handle for writes, and for reads that belong to one: everything
// goes to the primary, on the user's own connection settings. It is safe for
// concurrent use.
//
// After each statement the session in the context knows the position that its
// next causal reads must have. Besides pgx's own errors a write fails with ones
// that wrap [tidegate.ErrNoPrimary] or [tidegate.ErrClosed]. It is never
// replayed: an error of the connection leaves its outcome unknown, and the
// session's next causal read sees whatever it was.
type Writer struct{ db *DB }

// writeLease is a write's hold on a connection to the primary.
type writeLease struct {
	db    *DB
	write engine.Write
	conn  *pgxpool.Conn
	state *connState
	ask   wire.Ask
}

// beginWrite takes a connection to the primary. One that takes none may be over: while
// nothing was sent the write can begin again on another one.
func (db *DB) beginWrite(ctx context.Context) (*writeLease, error) {
	began := engine.Now()
	for {
		w, err := db.core.BeginWrite(ctx)
		if err != nil {
			return nil, err
		}
		n := nodeOf(w.Source())
		c, err := n.acquireWriter(ctx, w.Doubtful())
		if err == nil {
			return &writeLease{db: db, write: w, conn: c, state: stateOf(c.Conn())}, nil
		}
		db.core.EndWrite(&w)
		if ctx.Err() != nil {
			return nil, err
		}
		db.core.Suspect(w.Node)
		if !(lostNetwork(err) || connectionLost(err) || errors.Is(err, errDemoted)) || !db.core.AwaitPrimary(ctx, began, engine.Now()) {
			return nil, db.explain(err, tidegate.ErrNoPrimary)
		}
	}
}

// arm asks for the position behind the next command. Without a session nobody
// would know it.
func (w *writeLease) arm(a wire.Ask) {
	if w.write.Captures() && w.state.wire != nil {
		w.ask = a
		w.state.wire.Arm(a)
	}
}

// capture takes the position; err is the command's.
func (w *writeLease) capture(err error) {
	if w.ask == 0 {
		return
	}
	around := w.ask == wire.AroundCommit
	w.ask = 0
	a := w.state.wire.Take()
	switch {
	case !a.Sent:
		// The server never heard of it.
	case a.OK && around && a.Before.OK && !a.Before.Wrote:
		pos, durable := w.db.readPosition(w.state, &a)
		w.db.core.Committed(&w.write, &w.state.born, pos, durable)
	case a.OK:
		a.Called = a.Called || a.Failed
		pos, durable := w.db.writePosition(w.state, &a, around)
		w.db.core.Committed(&w.write, &w.state.born, pos, durable)
	case err == nil || sqlState(err) != "" && !connectionLost(err):
		// What happened is known, where it stands is not.
		w.db.core.Unknown(&w.write, &w.state.born, 0)
		w.db.forgotten(w.conn, w.state, &a)
	default:
		w.db.core.Unknown(&w.write, &w.state.born, w.state.process)
	}
}

// end ends the write; err is the command's.
func (w *writeLease) end(err error) {
	if w.conn == nil {
		return
	}
	w.capture(err)
	if err != nil {
		w.suspect(err)
	}
	w.db.core.EndWrite(&w.write)
	w.conn.Release()
	w.conn = nil
}

// suspect looks at the node when the error says that it may not be the primary
// any more. A read-only error alone does not: it can be a setting of the user's.
func (w *writeLease) suspect(err error) {
	c := w.conn.Conn()
	demoted := sqlState(err) == "25006" && c.PgConn().ParameterStatus("in_hot_standby") == "on"
	if demoted {
		if !c.IsClosed() {
			closeNow(c)
		}
		nodeOf(w.write.Source()).demoted()
	}
	if demoted || c.IsClosed() || connectionLost(err) || sqlState(err) == "25006" {
		w.db.core.Suspect(w.write.Node)
	}
}

// Exec runs a statement on the primary.
func (w Writer) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	l, err := w.db.beginWrite(ctx)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	l.arm(wire.After)
	w.db.core.Sent(&l.write)
	tag, err := l.conn.Conn().Exec(ctx, sql, args...)
	l.end(err)
	return tag, err
}

// Query runs a statement with rows on the primary: INSERT ... RETURNING, or a
// read whose answer a write will be based on.
func (w Writer) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	l, err := w.db.beginWrite(ctx)
	if err != nil {
		return errRows{err}, err
	}
	l.arm(wire.After)
	w.db.core.Sent(&l.write)
	rows, err := l.conn.Conn().Query(ctx, sql, args...)
	if err != nil {
		l.end(err)
		return rows, err
	}
	return &writeRows{Rows: rows, w: l}, nil
}

// QueryRow runs a statement with one row on the primary.
func (w Writer) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := w.Query(ctx, sql, args...)
	if err != nil {
		return errRows{err}
	}
	return row{rows}
}

// CopyFrom runs COPY ... FROM STDIN on the primary.
func (w Writer) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, src pgx.CopyFromSource) (int64, error) {
	l, err := w.db.beginWrite(ctx)
	if err != nil {
		return 0, err
	}
	l.arm(wire.AfterCopy)
	n, err := l.conn.Conn().CopyFrom(ctx, table, columns, src)
	l.end(err)
	return n, err
}

// SendBatch sends statements in one round trip to the primary.
func (w Writer) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	l, err := w.db.beginWrite(ctx)
	if err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	l.arm(wire.After)
	br := l.conn.Conn().SendBatch(ctx, b)
	if br.Tx() != nil {
		return refuseBatchTx(br, b, func() { l.end(errBatchTx) })
	}
	return &batchResults{BatchResults: br, end: l.end, explain: func(err error) error { return err }}
}

// Tx runs f in a transaction on the primary and commits it, or rolls it back
// when f fails or panics. Every read in it is on the primary.
func (w Writer) Tx(ctx context.Context, f func(pgx.Tx) error) error {
	return w.TxWith(ctx, pgx.TxOptions{}, f)
}

// TxWith is Tx with options. An error of the connection during COMMIT leaves the
// outcome unknown.
func (w Writer) TxWith(ctx context.Context, opts pgx.TxOptions, f func(pgx.Tx) error) error {
	l, err := w.db.beginWrite(ctx)
	if err != nil {
		return err
	}
	tx, err := l.conn.Conn().BeginTx(ctx, opts)
	if err != nil {
		l.end(err)
		return err
	}
	returned := false
	defer func() {
		if !returned { // f panicked
			l.rollback(tx)
		}
	}()
	err = f(tx)
	returned = true
	if err != nil {
		l.rollback(tx)
		return err
	}
	return l.commit(ctx, tx)
}

func (w *writeLease) commit(ctx context.Context, tx pgx.Tx) error {
	ask := wire.AroundCommit
	if w.db.async.declared == AsyncAbsent {
		ask = wire.After
	}
	w.arm(ask)
	w.db.core.Sent(&w.write)
	err := tx.Commit(ctx)
	if errors.Is(err, pgx.ErrTxClosed) {
		w.unseen()
	}
	w.end(err)
	return err
}

// rollback ends a transaction that failed. What f read in it, it has seen, so
// the position behind it joins the mark.
func (w *writeLease) rollback(tx pgx.Tx) {
	w.arm(wire.After)
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	err := tx.Rollback(ctx)
	cancel()
	if err != nil {
		w.unseen()
	}
	w.end(err)
}

// unseen is for a transaction that ended without the handle: f ended it, or its
// end failed. The session may have done or seen anything on the primary.
func (w *writeLease) unseen() {
	if w.ask == 0 {
		return
	}
	w.ask = 0
	_ = w.state.wire.Take()
	a := positionNow(w.conn, w.state)
	switch {
	case a.OK:
		a.Called = true // with whatever setting
		pos, durable := w.db.writePosition(w.state, &a, false)
		w.db.core.Committed(&w.write, &w.state.born, pos, durable)
	case w.conn.Conn().IsClosed():
		w.db.core.Unknown(&w.write, &w.state.born, w.state.process)
	default:
		w.db.core.Unknown(&w.write, &w.state.born, 0)
		w.db.forgotten(w.conn, w.state, &a)
	}
}
