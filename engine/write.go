package engine

import (
	"context"
	"fmt"
	"math/bits"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// Write is one write's way through the core.
type Write struct {
	// Node is the primary.
	Node   int
	source Source
	proof  *Observation
	epoch  tidegate.Epoch
	ledger *ledger.Ledger
	// session is not nil while the write is open.
	session  *tidegate.Session
	sent     int64 // when the round trip that is on its way began, zero without one
	doubtful bool
}

// Doubtful reports whether the primary does not answer probes: connections that there were
// before may be dead, and what is sent on a dead one has an unknown outcome. An adapter tries
// a connection first then.
func (w *Write) Doubtful() bool { return w.doubtful }

// BeginWrite returns where a write goes. It waits for a primary for Config.PrimaryWait at
// most. Errors are the context's, or wrap [tidegate.ErrNoPrimary] and say what each node
// answered. The caller ends the write by EndWrite.
func (c *Core) BeginWrite(ctx context.Context) (Write, error) {
	if c.Closed() {
		return Write{}, tidegate.ErrClosed
	}
	s := tidegate.SessionFrom(ctx)
	if s == nil {
		c.sessionlessWrites.Add(1)
	} else if err := s.BeginWrite(ctx); err != nil {
		return Write{}, err
	}
	t, source := c.primary()
	if source == nil {
		c.AwaitPrimary(ctx, mono.Now(), 0)
		t, source = c.primary()
	}
	if source == nil {
		if s != nil {
			s.EndWrite()
		}
		if err := ctx.Err(); err != nil {
			return Write{}, fmt.Errorf("%w (%w)", err, c.noPrimary(t))
		}
		return Write{}, c.noPrimary(t)
	}
	n := &t.Nodes[t.Primary]
	w := Write{Node: t.Primary, source: source, proof: n.Obs, epoch: n.Epoch, doubtful: n.Err != nil, session: s, ledger: c.ledger(s)}
	if s != nil {
		w.ledger.Enter(n.Obs.Incarnation)
		if c.cfg.Suspects {
			c.suspect(ctx, w.ledger)
		}
	}
	return w, nil
}

// Source returns the primary's source. Unlike its index it never becomes
// another's.
func (w *Write) Source() Source { return w.source }

// primary returns the source of the table's primary, nil when there is none. A node
// can be replaced by another with its index between the look at the table and the
// one at the members: then both are looked at again.
func (c *Core) primary() (*freshness.Table, Source) {
	for {
		t := c.watcher.Table()
		if t.Primary == freshness.NoNode {
			return t, nil
		}
		m := c.members.get(t.Primary)
		if now := c.watcher.Table(); now.Primary == t.Primary && now.Nodes[t.Primary].Incarnation == t.Nodes[t.Primary].Incarnation {
			if m == nil {
				return t, nil
			}
			return t, m.Source
		}
	}
}

// AwaitPrimary waits until a look that was sent after the time shows a primary, and
// reports whether one does. It waits until ctx ends, or Config.PrimaryWait after began.
// For an adapter that got no connection to the primary: nothing was sent, so that it may
// begin again with another one.
func (c *Core) AwaitPrimary(ctx context.Context, began, after int64) bool {
	left := began + int64(c.cfg.PrimaryWait) - mono.Now()
	if left <= 0 {
		return false
	}
	timer := time.NewTimer(time.Duration(left))
	defer timer.Stop()
	for {
		t := c.watcher.Table()
		if p := t.PrimaryObs(); p != nil && p.Sent > after {
			return true
		}
		select {
		case <-t.Next():
		case <-timer.C:
			return false
		case <-c.closed:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// noPrimary explains why none is known.
func (c *Core) noPrimary(t *freshness.Table) error {
	why := ""
	if t.Conflict {
		why = "; more than one node says that it is"
	}
	for i := range t.Nodes {
		if err := t.Nodes[i].Err; err != nil {
			why += fmt.Sprintf("; %s: %v", c.NodeName(i), err)
		}
		if f := t.Nodes[i].Fence; f != tidegate.FenceNone {
			why += fmt.Sprintf("; %s is fenced: %v", c.NodeName(i), f)
		}
	}
	return fmt.Errorf("%w%s", tidegate.ErrNoPrimary, why)
}

// Sent tells that the primary is about to be asked for something that a caller waits for
// and that mostly takes the same time: a statement on its own, or a COMMIT; not a batch
// or a copy. EndWrite tells that it has been answered. While reads fall back their limit
// follows how long these take, and the reads that belong on the primary.
func (c *Core) Sent(w *Write) {
	if w.sent == 0 {
		w.sent = c.router.Working()
	}
}

// EndWrite ends a write, after Committed or Unknown if it was sent. Only the first
// call counts.
func (c *Core) EndWrite(w *Write) {
	if w.sent != 0 {
		c.router.Worked(w.sent)
		w.sent = 0
	}
	if w.session != nil {
		w.ledger.Leave()
		w.session.EndWrite()
		w.session = nil
	}
}

// Captures reports whether the write has a session that its position belongs to.
func (w *Write) Captures() bool { return w.ledger != nil }

// Committed joins the position of a commit to the session's mark, and asks the
// replicas for a look soon. born is the connection's first observation. durable tells
// that the position was durable when it was taken: one that was not can be lost with the
// primary's life.
func (c *Core) Committed(w *Write, born *Observation, pos tidegate.Position, durable bool) {
	if w.ledger == nil {
		return
	}
	if born.Role != tidegate.RolePrimary && !matches(w.proof, born) {
		// Nobody can say which history this connection writes.
		c.Unknown(w, born, 0)
		return
	}
	epoch := lineOf(w.epoch, born)
	w.ledger.ReachedVolatile(epoch, pos, lifeIn(born, durable))
	c.watcher.Note(epoch, pos)
	at := mono.Now() + afterWrite
	for m := c.router.Soon(w.ledger); m != 0; m &= m - 1 {
		c.watcher.Demand(bits.TrailingZeros64(m), at)
	}
}

// lifeIn returns the life of the primary that a position depends on, zero for none.
func lifeIn(born *Observation, durable bool) tidegate.Incarnation {
	if durable {
		return 0
	}
	return incarnationOf(born)
}

// Unknown tells that the outcome of a write, or its position, is not known: the
// session must catch up with all that is committed by now. process is the
// adapter's name of the server process whose transaction may still commit, zero
// when the outcome is known.
func (c *Core) Unknown(w *Write, born *Observation, process uint64) {
	if w.ledger == nil {
		return
	}
	var pending []uint64
	if process != 0 {
		pending = []uint64{process}
	}
	at := incarnationOf(born)
	if at == 0 {
		at = incarnationOf(w.proof)
	}
	w.ledger.Owe(at, pending)
}
