package pgxgate

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/pgxgate/internal/wire"
)

// Reader is the handle for reads of one class. It is safe for concurrent use.
// Its connections are read-only and take one statement at a time.
//
// Every read is routed for the session in its context; its
// [tidegate.Decision] goes to [tidegate.Observe]. Besides pgx's own errors it
// fails with ones that wrap [tidegate.ErrNotFresh], [tidegate.ErrReadOnly],
// [tidegate.ErrClass] or [tidegate.ErrClosed].
type Reader struct {
	db    *DB
	class tidegate.Class
}

// Query runs a read. A failure of the node before the first row starts it over
// elsewhere, so the arguments must stay as they are until then.
func (r Reader) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	rows := new(readRows)
	if err := r.query(ctx, rows, sql, args); err != nil {
		return errRows{err}, err
	}
	return rows, nil
}

func (r Reader) query(ctx context.Context, rows *readRows, sql string, args []any) error {
	if err := simpleProtocol(args); err != nil {
		return err
	}
	rows.lease.db, rows.ctx, rows.class, rows.sql, rows.args = r.db, ctx, r.class, sql, args
	return rows.start()
}

// QueryRow runs a read that returns one row.
//
// It is so small that it is inlined: then a row that is scanned at once needs no
// allocation, as pgx's own.
func (r Reader) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return &readRow{r.row(ctx, sql, args)}
}

// row runs a read of one row. An error is kept for its Scan.
func (r Reader) row(ctx context.Context, sql string, args []any) *readRows {
	rows := spare.Get().(*readRows)
	if err := r.query(ctx, rows, sql, args); err != nil {
		rows.failed = err
	}
	return rows
}

// Exec runs a read whose rows are of no interest. A statement that writes fails
// with an error that wraps [tidegate.ErrReadOnly].
func (r Reader) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	rows := new(readRows)
	if err := r.query(ctx, rows, sql, args); err != nil {
		return pgconn.CommandTag{}, err
	}
	for rows.Next() {
	}
	return rows.CommandTag(), rows.Err()
}

// CopyFrom fails with an error that wraps [tidegate.ErrReadOnly]. It is there
// because generated code asks for it.
func (r Reader) CopyFrom(context.Context, pgx.Identifier, []string, pgx.CopyFromSource) (int64, error) {
	return 0, fmt.Errorf("%w: COPY ... FROM writes", tidegate.ErrReadOnly)
}

// SendBatch runs reads in one round trip on one node. It starts over elsewhere
// when the node fails before the batch is sent, not later.
func (r Reader) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	l := &lease{db: r.db}
	if err := l.take(ctx, r.class); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	l.arm(wire.After)
	br := l.conn.Conn().SendBatch(ctx, b)
	if br.Tx() != nil {
		return refuseBatchTx(br, b, func() { l.end() })
	}
	return &batchResults{BatchResults: br, end: func(error) { l.end() }, explain: readError}
}

// Tx runs f in a read-only transaction with one snapshot (REPEATABLE READ) on
// one node. The transaction is over when f returns; a panic in f passes on. It
// starts over elsewhere only before f is called.
func (r Reader) Tx(ctx context.Context, f func(pgx.Tx) error) error {
	l := &lease{db: r.db}
	for {
		if err := l.take(ctx, r.class); err != nil {
			return err
		}
		tx, err := l.conn.Conn().BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
		if err != nil {
			if l.tryElsewhere(ctx, err, true) {
				continue
			}
			return err
		}
		return l.run(ctx, tx, f)
	}
}

// run calls f and ends its transaction. The position is taken behind the end:
// later than the snapshot, so it bounds what was seen.
func (l *lease) run(ctx context.Context, tx pgx.Tx, f func(pgx.Tx) error) error {
	l.shown = true // f can end the transaction itself
	done := false
	defer func() {
		if !done { // f panicked
			l.arm(wire.After)
			rollback(tx)
			l.end()
		}
	}()
	err := f(tx)
	done = true
	l.arm(wire.After)
	if err != nil {
		rollback(tx)
	} else {
		err = tx.Commit(ctx)
	}
	l.end()
	return readError(err)
}

func rollback(tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_ = tx.Rollback(ctx)
}

// Conn is one connection that is proven for a class and a session: see
// [DB.Acquire]. It is not safe for concurrent use.
type Conn struct{ l lease }

// Acquire returns a connection to a node that has what the context's session must
// see at that moment. What the session writes while it is held is not waited for.
// The caller must Release it. Reads on it are not retried.
func (db *DB) Acquire(ctx context.Context, class tidegate.Class) (*Conn, error) {
	c := &Conn{lease{db: db}}
	if err := c.l.take(ctx, class); err != nil {
		return nil, err
	}
	return c, nil
}

// Conn returns the connection. It is read-only.
func (c *Conn) Conn() *pgx.Conn { return c.l.conn.Conn() }

// PoolConn returns the pool's handle of the connection, which must not be
// released or hijacked.
func (c *Conn) PoolConn() *pgxpool.Conn { return c.l.conn }

// Decision says where the connection leads and why.
func (c *Conn) Decision() tidegate.Decision { return c.l.db.core.Decision(&c.l.read) }

// Release gives the connection back. On the primary it first takes the position
// that bounds what was seen, in a round trip of its own. Only the first call
// counts.
func (c *Conn) Release() {
	c.l.shown = true
	c.l.arm(wire.After)
	c.l.end()
}
