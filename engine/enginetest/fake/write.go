package fake

import (
	"context"

	"github.com/tidegatedb/tidegate"
)

// Write writes a key and returns its new version. It is never repeated. When ctx
// ends after the statement was sent the outcome is unknown.
func (g *Gate) Write(ctx context.Context, key int64) (int64, error) {
	t, err := g.Begin(ctx, key)
	if err != nil {
		return 0, err
	}
	defer t.proc.End()
	return t.Commit(ctx)
}

// WriteInDoubt begins a write and loses the connection: the outcome is unknown.
// The returned process still runs; the caller says what becomes of it.
func (g *Gate) WriteInDoubt(ctx context.Context, key int64) (*Process, error) {
	t, err := g.Begin(ctx, key)
	if err != nil {
		return nil, err
	}
	t.Lose()
	return t.proc, nil
}

// lives reports whether the connection works and its server is the one that it
// was made to.
func (n *Node) lives(c *conn) (ok bool) {
	n.with(func() { ok = !n.down && !c.cut && n.life == c.life })
	return ok
}

// place is a position that bounds all that the primary shows, and whether it was durable
// when it was taken.
type place struct {
	pos     tidegate.Position
	durable bool
}

// position returns where the primary is.
func (n *Node) position() (p place) {
	n.with(func() { p = n.newestPosition() })
	return p
}

// newestPosition is position for who holds the cluster's lock.
func (n *Node) newestPosition() place {
	if n.c.cfg.Async {
		return place{at(len(n.log)), n.flushed == len(n.log)}
	}
	return place{at(n.flushed), true}
}
