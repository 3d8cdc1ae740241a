package fake

import (
	"context"

	"github.com/tidegatedb/tidegate"
)

// Held is one connection that is proven for a class and a session, for as long as
// it is held: rows that are still open, a read transaction, a pinned connection.
// Reads on it are not retried. It is not safe for concurrent use.
type Held struct{ l lease }

// Acquire returns a connection to a node that has what the context's session must
// see. The caller must Release it.
func (g *Gate) Acquire(ctx context.Context, class tidegate.Class) (*Held, error) {
	h := &Held{lease{g: g}}
	if err := h.l.take(ctx, class); err != nil {
		return nil, err
	}
	return h, nil
}

// Look runs a statement that reads everything, in a snapshot of its own.
func (h *Held) Look(ctx context.Context) (v View, err error) {
	err = h.l.conn.ask(ctx, OpRead, func(n *Node) { v = n.view() })
	if h.l.g.opts.Mistakes.EndsEarly {
		h.l.g.core.End(&h.l.read)
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// Node returns where the connection leads, and to which life.
func (h *Held) Node() (*Node, tidegate.Incarnation) { return h.l.conn.l.n, h.l.conn.life }

// Decision says why it leads there.
func (h *Held) Decision() tidegate.Decision { return h.l.g.core.Decision(&h.l.read) }

// Break breaks the connection. What it has shown is shown.
func (h *Held) Break() { h.l.conn.sever() }

// Release gives the connection back. On the primary it first takes the position
// that bounds what was shown, in a round trip of its own that ctx does not end.
func (h *Held) Release(ctx context.Context) {
	l := &h.l
	if l.read.Captures() {
		var pos place
		err := l.conn.ask(context.WithoutCancel(ctx), OpRead, func(n *Node) { pos = n.newestPosition() })
		switch {
		case err == nil:
			l.at(pos)
		case !l.g.opts.Mistakes.ForgetsLost:
			l.g.core.Lost(&l.read)
		}
	}
	l.g.core.End(&l.read)
	l.release()
}
