package pgxgate

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/pgxgate/internal/wire"
)

// closeTime bounds the farewell to a connection that must not be used again.
const closeTime = time.Second

func closeNow(c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_ = c.Close(ctx)
}

// inserted returns the position behind all that was inserted, and whether that was flushed.
func (s *connState) inserted(a *wire.Answer) (pos tidegate.Position, durable bool) {
	pos, flushed := s.layout.at(max(a.Flush, a.Insert)), s.layout.at(a.Flush)
	return pos, flushed.Covers(pos)
}

// readPosition bounds what a read on the primary can have shown: all that was
// flushed, and with asynchronous commits, which are visible before they are
// flushed, all that was inserted.
func (db *DB) readPosition(s *connState, a *wire.Answer) (pos tidegate.Position, durable bool) {
	if db.async.possible() {
		return s.inserted(a)
	}
	return s.layout.at(a.Flush), true
}

// writePosition returns a position that the commit of a write is not beyond.
//
// Behind a synchronous commit that is the flushed position. Behind an
// asynchronous one only the inserted one is safe, and also where nobody saw the
// setting in force: CALL and DO can commit inside with another one. durable tells that all
// of it was flushed.
func (db *DB) writePosition(s *connState, a *wire.Answer, around bool) (pos tidegate.Position, durable bool) {
	off := a.AsyncCommit
	if around {
		// The setting can be local to the transaction: what counts is the one
		// before COMMIT.
		off = off || !a.Before.OK || a.Before.AsyncCommit
	}
	if off && (!around || a.Before.OK) {
		db.async.saw("a captured commit")
	}
	if off || a.Called || db.async.possible() {
		return s.inserted(a)
	}
	return s.layout.at(a.Flush), true
}

// positionNow asks for the position in a round trip of its own: what ended on the
// connection was not seen by a handle. The answer is not OK when the connection
// cannot be asked any more.
func positionNow(c *pgxpool.Conn, s *connState) wire.Answer {
	pc := c.Conn().PgConn()
	if c.Conn().IsClosed() || pc.IsBusy() || pc.TxStatus() != 'I' {
		return wire.Answer{Sent: true}
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	s.wire.Arm(wire.After)
	_, _ = pc.Exec(ctx, "select").ReadAll() // its error is the answer's
	a := s.wire.Take()
	a.Sent = true
	return a
}

// forgotten prepares the position statements again after DEALLOCATE ALL or
// DISCARD ALL, or else gives the connection up: without them nothing could be
// captured on it.
func (db *DB) forgotten(c *pgxpool.Conn, s *connState, a *wire.Answer) {
	if c == nil || !errors.Is(a.Err, wire.ErrNotPrepared) {
		return
	}
	pc := c.Conn().PgConn()
	if c.Conn().IsClosed() || pc.IsBusy() || pc.TxStatus() != 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_, err := pc.Prepare(ctx, wire.AfterName, s.afterSQL, nil)
	if err == nil {
		_, err = pc.Prepare(ctx, wire.BeforeName, wire.BeforeSQL, nil)
	}
	if err != nil {
		closeNow(c.Conn())
		return
	}
	s.wire.MarkPrepared()
}
