package pgxgate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/pgxgate/internal/wire"
)

// maxAttempts bounds how often one read is tried.
const maxAttempts = 4

// lease is a read's hold on a proven connection.
type lease struct {
	db       *DB
	read     engine.Read
	conn     *pgxpool.Conn
	state    *connState
	armed    bool
	shown    bool // something may have been read whose end the handle does not send
	attempts int
	began    int64 // when the first attempt did, zero before
}

// take finds a node, and a connection to it that the proof holds for.
func (l *lease) take(ctx context.Context, class tidegate.Class) error {
	for {
		if err := l.db.core.Begin(ctx, class, &l.read); err != nil {
			return err
		}
		if l.read.Primary() && l.began == 0 {
			l.began = engine.Now()
		}
		err := l.acquire(ctx)
		if err != nil && l.awaitsPrimary(ctx, err) {
			continue
		}
		if err != nil {
			if !l.tryElsewhere(ctx, err, false) {
				if over := ctx.Err(); over != nil { // which says nothing of freshness
					if !errors.Is(err, over) { // it came to its end just now
						err = fmt.Errorf("%w (%s)", over, err.Error()) // not wrapped: it may be the end of another time
					}
					return err
				}
				return l.db.explain(err, tidegate.ErrNotFresh)
			}
			continue
		}
		if l.db.core.Admit(ctx, &l.read, &l.state.born) && l.roleHolds() {
			return nil
		}
		l.giveBack()
		if err := ctx.Err(); err != nil {
			return err
		}
		if l.attempts++; l.attempts >= maxAttempts {
			return l.db.core.Refuse(&l.read)
		}
	}
}

// awaitsPrimary ends an attempt on a primary that takes no connections, and reports whether
// there is one that may: the next attempt goes there.
func (l *lease) awaitsPrimary(ctx context.Context, err error) bool {
	if !l.read.Primary() || ctx.Err() != nil || !lostNetwork(err) && !connectionLost(err) {
		return false
	}
	l.db.core.Suspect(l.read.Node())
	if !l.db.core.AwaitPrimary(ctx, l.began, engine.Now()) {
		return false
	}
	l.db.core.Retry(&l.read, tidegate.RetryConnection, false)
	return true
}

func (l *lease) acquire(ctx context.Context) error {
	n := nodeOf(l.read.Source())
	var err error
	switch {
	case l.read.Primary():
		// It has no elsewhere.
		l.conn, err = n.acquire(ctx, primaryReads)
	case n.idle(l.db.core.Flying(&l.read) - 1):
		l.conn, err = n.acquire(ctx, replicaReads)
	default:
		l.conn, err = l.acquireInTime(ctx, n)
	}
	if err != nil {
		return err
	}
	l.state = stateOf(l.conn.Conn())
	return nil
}

// roleHolds reports whether the connection has said since then that its server is
// no longer what it was when it was made: a server is promoted, and its connections
// live on. Servers before 14 do not tell.
func (l *lease) roleHolds() bool {
	if !l.state.otherRole {
		return true
	}
	l.db.core.Suspect(l.read.Node())
	// It would go on saying so until somebody used it.
	closeNow(l.conn.Conn())
	if l.read.Primary() {
		nodeOf(l.read.Source()).demoted()
		l.db.core.Retry(&l.read, tidegate.RetryRole, false)
	} else {
		l.db.core.Fail(&l.read, tidegate.RetryRole, false)
	}
	return false
}

// arm asks for the position behind the next command, where the session needs it.
func (l *lease) arm(a wire.Ask) {
	if l.conn != nil && l.read.Captures() && l.state.wire != nil {
		l.state.wire.Arm(a)
		l.armed = true
	}
}

// capture takes the position of a read on the primary.
func (l *lease) capture() {
	if !l.armed {
		return
	}
	l.armed = false
	a := l.state.wire.Take()
	if !a.Sent && l.shown {
		a = positionNow(l.conn, l.state)
	}
	switch {
	case !a.Sent:
		// The server never heard of it.
	case a.OK:
		pos, durable := l.db.readPosition(l.state, &a)
		l.db.core.At(&l.read, &l.state.born, pos, durable)
	default:
		l.db.core.Lost(&l.read)
		l.db.forgotten(l.conn, l.state, &a)
	}
}

// end ends a read whose statement was sent.
func (l *lease) end() {
	if l.conn == nil {
		return
	}
	l.capture()
	l.db.core.End(&l.read)
	l.release()
}

// release gives the connection back, or closes one that a statement has made
// able to write.
func (l *lease) release() {
	if c := l.conn.Conn(); !l.sound(c.PgConn()) && !c.IsClosed() {
		closeNow(c)
	}
	l.conn.Release()
	l.conn, l.state = nil, nil
}

// sound reports whether the connection may be used again for reads of its kind.
// Parameters change only with the answers to statements, so it is enough to look
// at them when one has been answered.
func (l *lease) sound(c *pgconn.PgConn) bool {
	if v := c.ParameterStatus(readOnlySetting); v != "" && v != "on" {
		return false
	}
	l.state.otherRole = otherRole(c, l.read.Primary())
	return true
}

// otherRole reports whether the connection says that its server is not the primary,
// or not a replica.
func otherRole(c *pgconn.PgConn, primary bool) bool {
	v := c.ParameterStatus("in_hot_standby")
	return v != "" && (v == "on") == primary
}

// giveBack returns a connection that was not used.
func (l *lease) giveBack() {
	l.conn.Release()
	l.conn, l.state = nil, nil
}

// tryElsewhere ends the attempt on this node and reports whether the read may be
// tried again. sent tells that the statement may have reached the node.
func (l *lease) tryElsewhere(ctx context.Context, err error, sent bool) bool {
	r, cause := remedyFor(ctx, err, l.read.Primary())
	l.attempts++
	if l.conn != nil {
		l.capture()
		l.release()
	}
	if r == surface || l.attempts >= maxAttempts {
		l.db.core.End(&l.read)
		return false
	}
	switch {
	case r == onPrimary:
		l.db.core.FailToPrimary(&l.read, cause)
	case r == sameAgain || l.read.Primary():
		// The primary has no elsewhere: its next connection may be sound.
		l.db.core.Retry(&l.read, cause, sent)
	default:
		l.db.core.Fail(&l.read, cause, sent)
	}
	return true
}

// lostNetwork reports whether the error comes from the connection.
func lostNetwork(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		strings.Contains(err.Error(), "conn closed") || strings.Contains(err.Error(), "unexpected EOF")
}
