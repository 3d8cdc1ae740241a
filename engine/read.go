package engine

import (
	"context"
	"errors"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/mono"
	"github.com/tidegatedb/tidegate/internal/route"
	"github.com/tidegatedb/tidegate/internal/rules"
)

// Read is one read's way through the core. The zero Read is ready for
// [Core.Begin]. It is not safe for concurrent use.
type Read struct {
	ticket  route.Ticket
	begun   bool
	told    bool // of the last decision
	ended   bool
	reading bool // the session counts it as in flight
	session *tidegate.Session
	// observer gets the decisions, if not nil.
	observer *tidegate.Decisions
}

// Node returns where the read goes.
func (rd *Read) Node() int { return rd.ticket.Node }

// Source returns the source of the node where the read goes. Unlike its index it
// never becomes another's.
func (rd *Read) Source() Source {
	s, _ := rd.ticket.Of().(Source)
	return s
}

// Primary reports whether the read goes to the primary.
func (rd *Read) Primary() bool { return rd.ticket.Role == tidegate.RolePrimary }

// Captures reports whether the read's position has to be asked for in its own
// round trip: it goes to the primary for a session.
func (rd *Read) Captures() bool { return rd.Primary() && rd.ticket.Ledger != nil }

// Begin decides where a read of the class goes for the context's session. It
// may wait. Errors wrap [tidegate.ErrNotFresh], [tidegate.ErrOverloaded],
// [tidegate.ErrClass], [tidegate.ErrClosed] or are the context's; the read is over
// then.
func (c *Core) Begin(ctx context.Context, class tidegate.Class, rd *Read) error {
	if !rd.begun {
		if err := class.Err(); err != nil {
			return err
		}
		if class.Need() == tidegate.NeedRelaxed {
			if err := c.cfg.admits(class); err != nil { // declared after New
				return err
			}
		}
		rd.begun = true
		var s *tidegate.Session
		s, rd.observer = tidegate.From(ctx)
		if s != nil {
			if err := s.Load(ctx); err != nil {
				rd.begun = false
				return err
			}
			rd.session = s
		}
		rd.ticket.Class, rd.ticket.Ledger = class, c.ledger(s)
	}
	rd.told = false
	if c.Closed() {
		return tidegate.ErrClosed
	}
	err := c.router.Begin(ctx, &rd.ticket)
	if err != nil && (errors.Is(err, tidegate.ErrNotFresh) || errors.Is(err, tidegate.ErrOverloaded)) {
		c.decided(ctx, rd) // nowhere
	}
	if err == nil && rd.session != nil && !rd.reading {
		rd.reading = true
		rd.session.BeginRead()
	} else if err != nil {
		rd.rest()
	}
	return err
}

// rest makes the session count the read as in flight no more.
func (rd *Read) rest() {
	if rd.reading {
		rd.reading = false
		rd.session.EndRead()
	}
}

// Admit reports whether the proof that the read rests on holds for a connection,
// given the observation that the adapter took on it when it was made. If that
// cannot be known yet it waits for a look at the node, holding the connection.
// On false the adapter gives the connection back and begins again.
//
// A connection lives within one incarnation. So an observation holds for it if
// both carry the same incarnation, or if it comes from the same server and was
// sent after the connection was there.
func (c *Core) Admit(ctx context.Context, rd *Read, born *Observation) bool {
	tk := &rd.ticket
	ok := c.holds(tk, born) || c.router.Reconsider(ctx, tk, func(o *Observation) bool { return matches(o, born) })
	if ok {
		c.decided(ctx, rd)
	} else {
		rd.rest()
	}
	return ok
}

func (c *Core) holds(tk *route.Ticket, born *Observation) bool {
	if tk.Role == tidegate.RolePrimary {
		// A primary stays one of its line for as long as its connections live. Where only
		// its present life will do, the connection has to be of that.
		return tk.Proof != nil && born.Server == tk.Proof.Server &&
			(born.Role == tidegate.RolePrimary && onLine(born, tk.Epoch) && !tk.Tied() || matches(tk.Proof, born))
	}
	return tk.Life == born.Incarnation || matches(tk.Proof, born)
}

func matches(o, born *Observation) bool {
	if o == nil {
		return false
	}
	return o.Incarnation == born.Incarnation || o.Server == born.Server && born.Received < o.Sent || !rules.ConnOlderThanProbe.On()
}

func (c *Core) decided(ctx context.Context, rd *Read) {
	rd.told = true
	c.readFrom(rd)
	aged := rd.ticket.Role == tidegate.RoleReplica && rd.ticket.Class.Need() == tidegate.NeedRelaxed
	if rd.observer == nil && len(c.news.deciding) == 0 && !aged {
		return
	}
	d := c.router.Decision(&rd.ticket)
	if aged {
		c.ages.add(&d)
	}
	rd.observer.Add(d)
	for _, f := range c.news.deciding {
		f(ctx, d)
	}
}

// Decision returns what was decided.
func (c *Core) Decision(rd *Read) tidegate.Decision { return c.router.Decision(&rd.ticket) }

// At joins the position of a read on the primary to the session's mark. born is
// the connection's first observation; durable is as in [Core.Committed].
func (c *Core) At(rd *Read, born *Observation, pos tidegate.Position, durable bool) {
	tk := &rd.ticket
	if !rd.Captures() || !rules.PrimaryReadBoundsItself.On() {
		return
	}
	epoch := lineOf(tk.Epoch, born)
	tk.Ledger.ReachedVolatile(epoch, pos, lifeIn(born, durable))
	c.watcher.Note(epoch, pos)
}

// lineOf returns the history that a connection to the primary writes and reads:
// its own if it was made to a primary, which keeps its line for as long as its
// connections live; else that of the look that found it promoted.
func lineOf(table tidegate.Epoch, born *Observation) tidegate.Epoch {
	if born != nil && born.Role == tidegate.RolePrimary && born.Epoch.Known() && !onLine(born, table) {
		return born.Epoch
	}
	return table
}

// onLine reports whether a connection was made to a server on the epoch's line.
func onLine(born *Observation, e tidegate.Epoch) bool {
	return born.Epoch.System == e.System && born.Epoch.Line == e.Line
}

// Lost tells that the position of a read on the primary could not be taken.
func (c *Core) Lost(rd *Read) {
	if rd.Captures() && rules.PrimaryReadBoundsItself.On() {
		rd.ticket.Ledger.Owe(rd.ticket.Life, nil)
	}
}

func incarnationOf(o *Observation) tidegate.Incarnation {
	if o == nil {
		return 0
	}
	return o.Incarnation
}

// End ends a read that was sent; its last row has been delivered. Only the first
// call counts.
func (c *Core) End(rd *Read) {
	if !rd.ended {
		rd.ended = true
		c.router.Done(&rd.ticket, mono.Now())
		if rd.told {
			c.router.Told(&rd.ticket)
		}
		rd.rest()
	}
}

// Cancel ends a read that was not sent. It can begin again.
func (c *Core) Cancel(rd *Read) {
	c.router.Undo(&rd.ticket)
	rd.rest()
}

// Fail ends an attempt that its node failed before the first row, for that cause; the
// next Begin goes elsewhere: to one other replica, and from there to the primary. sent
// tells that the statement may have reached the node.
func (c *Core) Fail(rd *Read, cause tidegate.RetryCause, sent bool) {
	c.router.Failed(&rd.ticket, cause, sent)
	rd.rest()
}

// Retry ends an attempt that failed before the first row for a reason that may
// not hold for another connection to the same node.
func (c *Core) Retry(rd *Read, cause tidegate.RetryCause, sent bool) {
	c.router.Retry(&rd.ticket, cause, sent)
	rd.rest()
}

// FailToPrimary ends an attempt that a replica cannot serve, such as a read of a
// table that it has not replayed yet; the next Begin goes to the primary.
func (c *Core) FailToPrimary(rd *Read, cause tidegate.RetryCause) {
	c.router.FailToPrimary(&rd.ticket, cause)
	rd.rest()
}

// Flying returns how many reads are in flight on the read's node, with this one.
func (c *Core) Flying(rd *Read) int64 { return c.router.Flying(rd.ticket.Node) }

// Alternative reports whether, as far as is known, another replica has what the read
// needs, and ok says so too of its source and the reads in flight there. An adapter that
// would have to wait on the read's node asks.
func (c *Core) Alternative(rd *Read, ok func(s Source, flying int64) bool) bool {
	return c.router.Alternative(&rd.ticket, func(of any, flying int64) bool {
		s, _ := of.(Source)
		return ok(s, flying)
	})
}

// Refuse returns the error for a read that no node could be proven for.
func (c *Core) Refuse(rd *Read) error {
	rd.rest()
	return c.router.Refuse(&rd.ticket)
}

// Attempts returns how many attempts of the read have failed.
func (rd *Read) Attempts() int { return rd.ticket.Retries() }
