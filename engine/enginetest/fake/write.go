package fake

import (
	"context"
	"fmt"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// Write writes a key and returns its new version. It is never repeated. When ctx
// ends after the statement was sent the outcome is unknown.
func (g *Gate) Write(ctx context.Context, key int64) (int64, error) {
	w, c, proc, err := g.begin(ctx, key)
	if err != nil {
		return 0, err
	}
	defer g.core.EndWrite(w)
	n := c.l.n
	pos := n.position()
	serial := proc.Flush()
	if g.opts.Delay != nil {
		err = sleep(ctx, g.opts.Delay(n, OpShow))
	}
	proc.End()
	if !g.opts.Mistakes.CaptureBeforeCommit {
		pos = n.position()
	}
	if err == nil {
		err = c.l.leg(ctx, OpWrite)
	}
	if err == nil && (serial == 0 || !n.lives(c)) {
		err = ErrDead
	}
	if err != nil {
		g.core.Unknown(w, &c.born, proc.id)
		g.core.Suspect(n.index)
		return 0, err
	}
	g.core.Committed(w, &c.born, pos)
	g.pools[1][n.index].release(c)
	return int64(serial), nil
}

// WriteInDoubt begins a write and loses the connection: the outcome is unknown.
// The returned process still runs; the caller says what becomes of it.
func (g *Gate) WriteInDoubt(ctx context.Context, key int64) (*Process, error) {
	w, c, proc, err := g.begin(ctx, key)
	if err != nil {
		return nil, err
	}
	defer g.core.EndWrite(w)
	if !g.opts.Mistakes.ForgetsUnknown {
		g.core.Unknown(w, &c.born, proc.id)
	}
	return proc, nil
}

// begin brings a write to the primary.
func (g *Gate) begin(ctx context.Context, key int64) (*engine.Write, *conn, *Process, error) {
	w, err := g.core.BeginWrite(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	c, err := g.pools[1][w.Node].acquire(ctx)
	if err == nil {
		err = c.l.leg(ctx, OpWrite)
	}
	if err != nil {
		g.core.EndWrite(&w)
		if ctx.Err() == nil {
			g.core.Suspect(w.Node)
		}
		return nil, nil, nil, err
	}
	n := c.l.n
	if c.cut || !n.lives(c) {
		g.core.EndWrite(&w)
		g.core.Suspect(w.Node)
		return nil, nil, nil, ErrDead
	}
	proc := n.Begin(key)
	if ended, _ := proc.Ended(); ended {
		g.core.EndWrite(&w)
		g.core.Suspect(w.Node)
		return nil, nil, nil, fmt.Errorf("%w: %s", ErrNotPrimary, n.name)
	}
	return &w, c, proc, nil
}

// lives reports whether the connection's server is the one that it was made to.
func (n *Node) lives(c *conn) (ok bool) {
	n.with(func() { ok = !n.down && n.life == c.life })
	return ok
}

// position returns what bounds all that the primary shows.
func (n *Node) position() (pos tidegate.Position) {
	n.with(func() {
		if pos = at(n.flushed); n.c.cfg.Async {
			pos = at(len(n.log))
		}
	})
	return pos
}
