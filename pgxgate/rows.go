package pgxgate

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/pgxgate/internal/wire"
)

// readRows are the rows of a routed read. Until the first row they can start
// over on another node.
type readRows struct {
	pgx.Rows
	lease lease
	ctx   context.Context
	class tidegate.Class
	sql   string
	args  []any
	begun bool // a row was delivered, or the end
	err   error
	// failed is why there are no rows at all, of a read of one row.
	failed error
}

// spare are readRows for reads of one row, which end in Scan: nobody can hold on to
// them, so they are used again, and are warm.
var spare = sync.Pool{New: func() any { return new(readRows) }}

// start runs the statement on a proven connection.
func (r *readRows) start() error {
	for {
		if err := r.lease.take(r.ctx, r.class); err != nil {
			return err
		}
		r.lease.arm(wire.After)
		rows, err := r.lease.conn.Conn().Query(r.ctx, r.sql, r.args...)
		if err == nil {
			r.Rows = rows
			return nil
		}
		if !r.lease.tryElsewhere(r.ctx, err, true) {
			return readError(err)
		}
	}
}

// Next implements pgx.Rows. While no row has been delivered, a failure of the
// node starts the read over elsewhere.
func (r *readRows) Next() bool {
	for {
		if r.err != nil {
			return false
		}
		if r.Rows.Next() {
			r.begun = true
			return true
		}
		if !r.begun && !r.restart() {
			return false
		}
		if r.begun {
			r.Close()
			return false
		}
	}
}

// restart reports whether the read is under way again; otherwise it is over.
func (r *readRows) restart() bool {
	err := r.Rows.Err()
	if err == nil || r.lease.conn == nil || !r.lease.tryElsewhere(r.ctx, err, true) {
		r.begun = true
		return true
	}
	if err := r.start(); err != nil {
		r.err = err
		return false
	}
	return true
}

// Close implements pgx.Rows.
func (r *readRows) Close() {
	r.Rows.Close()
	r.begun = true
	r.lease.end()
}

// Err implements pgx.Rows.
func (r *readRows) Err() error {
	if r.err != nil {
		return r.err
	}
	return readError(r.Rows.Err())
}

// Scan implements pgx.Rows. Like pgx's it ends the rows on an error.
func (r *readRows) Scan(dest ...any) error {
	err := r.Rows.Scan(dest...)
	if err != nil {
		r.Close()
	}
	return err
}

// Values implements pgx.Rows.
func (r *readRows) Values() ([]any, error) {
	v, err := r.Rows.Values()
	if err != nil {
		r.Close()
	}
	return v, err
}

// writeRows are the rows of a statement on a Write handle.
type writeRows struct {
	pgx.Rows
	w *writeLease
}

// Next implements pgx.Rows.
func (r *writeRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}

// Close implements pgx.Rows.
func (r *writeRows) Close() {
	r.Rows.Close()
	r.w.end(r.Rows.Err())
}

// Scan implements pgx.Rows.
func (r *writeRows) Scan(dest ...any) error {
	err := r.Rows.Scan(dest...)
	if err != nil {
		r.Close()
	}
	return err
}

// Values implements pgx.Rows.
func (r *writeRows) Values() ([]any, error) {
	v, err := r.Rows.Values()
	if err != nil {
		r.Close()
	}
	return v, err
}

// readRow is a read of one row. It is all that the caller can keep of it.
type readRow struct{ rows *readRows }

// Scan implements pgx.Row. It works once.
func (r *readRow) Scan(dest ...any) error {
	rows := r.rows
	if rows == nil {
		return errScanned
	}
	r.rows = nil
	err := rows.failed
	if err == nil {
		err = scanRow(rows, dest)
	}
	*rows = readRows{}
	spare.Put(rows)
	return err
}

var errScanned = errors.New("pgxgate: the row has been scanned already; QueryRow's result can be scanned once")

// row makes a pgx.Row of rows.
type row struct{ rows pgx.Rows }

// Scan implements pgx.Row.
func (r row) Scan(dest ...any) error { return scanRow(r.rows, dest) }

// scanRow scans the one row, as pgx's own rows do.
func scanRow(rows pgx.Rows, dest []any) error {
	defer rows.Close()
	for _, d := range dest {
		if _, ok := d.(*pgtype.DriverBytes); ok {
			return errors.New("pgxgate: cannot scan into *pgtype.DriverBytes from QueryRow")
		}
	}
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := rows.Scan(dest...); err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}

// errRows is a pgx.Row and pgx.Rows of something that did not begin.
type errRows struct{ err error }

func (errRows) Close()                                       {}
func (e errRows) Err() error                                 { return e.err }
func (errRows) CommandTag() pgconn.CommandTag                { return pgconn.CommandTag{} }
func (errRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
func (errRows) Next() bool                                   { return false }
func (e errRows) Scan(...any) error                          { return e.err }
func (e errRows) Values() ([]any, error)                     { return nil, e.err }
func (errRows) RawValues() [][]byte                          { return nil }
func (errRows) Conn() *pgx.Conn                              { return nil }
func (errRows) TypeMap() *pgtype.Map                         { return pgtype.NewMap() }

// simpleProtocol refuses what would let one string hold several statements.
func simpleProtocol(args []any) error {
	for _, a := range args {
		if m, ok := a.(pgx.QueryExecMode); ok && m == pgx.QueryExecModeSimpleProtocol {
			return fmt.Errorf("%w: Read handles do not take QueryExecModeSimpleProtocol; leave it out", tidegate.ErrConfig)
		}
	}
	return nil
}
