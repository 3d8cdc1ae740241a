package fake

import (
	"context"
	"fmt"

	"github.com/tidegatedb/tidegate/engine"
)

// Tx is a transaction on the primary that writes one key. It is over after one of
// Commit, Rollback, End and Lose. It is not safe for concurrent use.
type Tx struct {
	g     *Gate
	write engine.Write
	conn  *conn
	proc  *Process
}

// Begin begins a transaction on the primary. An error tells that there is none.
func (g *Gate) Begin(ctx context.Context, key int64) (*Tx, error) {
	w, err := g.core.BeginWrite(ctx)
	if err != nil {
		return nil, err
	}
	t := &Tx{g: g, write: w}
	t.conn, err = g.pools[1][w.Node].acquire(ctx)
	if err == nil {
		err = t.conn.l.leg(ctx, OpWrite)
	}
	if err != nil {
		g.core.EndWrite(&t.write)
		if ctx.Err() == nil {
			g.core.Suspect(w.Node)
		}
		return nil, err
	}
	n := t.conn.l.n
	if !n.lives(t.conn) {
		return nil, t.refused(ErrDead)
	}
	t.proc = n.Begin(key)
	if ended, _ := t.proc.Ended(); ended {
		return nil, t.refused(fmt.Errorf("%w: %s", ErrNotPrimary, n.name))
	}
	return t, nil
}

func (t *Tx) refused(err error) error {
	t.g.core.EndWrite(&t.write)
	t.g.core.Suspect(t.write.Node)
	return err
}

// Process returns the server process that runs the transaction.
func (t *Tx) Process() *Process { return t.proc }

// Look runs a statement that reads everything that is committed and shown.
func (t *Tx) Look(ctx context.Context) (v View, err error) {
	err = t.conn.ask(ctx, OpRead, func(n *Node) { v = n.view() })
	if err != nil {
		return nil, err
	}
	return v, nil
}

// Commit commits and returns the new version of the key. An error leaves the
// outcome unknown; the process lives on if it is ctx that has ended.
func (t *Tx) Commit(ctx context.Context) (int64, error) {
	n := t.conn.l.n
	pos := n.position()
	serial, err := t.commit(ctx)
	if !t.g.opts.Mistakes.CaptureBeforeCommit {
		pos = n.position()
	}
	if err == nil {
		err = t.conn.back(ctx, OpWrite)
	}
	if err == nil && !n.lives(t.conn) {
		err = ErrDead
	}
	if err != nil {
		t.unknown()
		return 0, err
	}
	t.done(pos)
	return int64(serial), nil
}

// commit commits on the server.
func (t *Tx) commit(ctx context.Context) (serial int, err error) {
	if t.conn.cut {
		return 0, ErrDead // nothing was sent
	}
	serial = t.proc.Flush()
	if d := t.g.opts.Delay; d != nil {
		if err := sleep(ctx, d(t.conn.l.n, OpShow)); err != nil {
			t.conn.sever()
			return serial, err
		}
	}
	t.proc.End()
	if serial == 0 {
		return 0, ErrDead
	}
	return serial, nil
}

// CommitItself commits past the gate, as a function can that runs in a
// transaction. The gate learns of it with End.
func (t *Tx) CommitItself(ctx context.Context) (int64, error) {
	serial, err := t.commit(ctx)
	if err == nil {
		err = t.conn.back(ctx, OpWrite)
	}
	return int64(serial), err
}

// Rollback takes back what was written. What was read has been seen.
func (t *Tx) Rollback(ctx context.Context) {
	t.proc.End()
	t.End(ctx)
}

// End ends a transaction that has ended without the gate: the position is taken
// behind it, in a round trip of its own that ctx does not end.
func (t *Tx) End(ctx context.Context) {
	var pos place
	err := t.conn.ask(context.WithoutCancel(ctx), OpWrite, func(n *Node) { pos = n.newestPosition() })
	if err != nil {
		t.unknown()
		return
	}
	t.done(pos)
}

// Lose breaks the connection; nobody knows what becomes of the transaction. Its
// process lives on, if its server does, and the caller says what it does.
func (t *Tx) Lose() {
	t.conn.sever()
	t.unknown()
}

func (t *Tx) unknown() {
	if !t.g.opts.Mistakes.ForgetsUnknown {
		t.g.core.Unknown(&t.write, &t.conn.born, t.proc.id)
	}
	t.g.core.Suspect(t.write.Node)
	t.g.core.EndWrite(&t.write)
}

func (t *Tx) done(p place) {
	t.g.core.Committed(&t.write, &t.conn.born, p.pos, p.durable || t.g.opts.Mistakes.SaysDurable)
	t.g.core.EndWrite(&t.write)
	t.g.pools[1][t.conn.l.n.index].release(t.conn)
}
