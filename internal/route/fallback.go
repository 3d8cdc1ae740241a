package route

import (
	"context"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// falls reports whether a read is on the primary for want of a replica: neither by its
// class or its caller nor by the rollout.
func (tk *Ticket) falls(reason tidegate.Reason) bool {
	return tk.Class.Need() != tidegate.NeedStrong && reason != tidegate.ReasonNoSession && tk.held == tidegate.ReasonNone
}

// alone reports whether the primary is all that there is: then nobody's place is taken
// there.
func alone(t *freshness.Table) bool {
	for i := range t.Nodes {
		if i != t.Primary && (t.Nodes[i].Obs != nil || t.Nodes[i].Err != nil) {
			return false
		}
	}
	return t.Primary != freshness.NoNode
}

// turn gets a read that falls back its slot on the primary, and holds up no other
// read. It reports whether the read needs none any more: a replica qualified while it
// queued, or its class takes a stale answer rather than none.
func (r *Router) turn(ctx context.Context, tk *Ticket, reason tidegate.Reason, causal bool, w *waiter) (over bool, err error) {
	if tk.slot || !tk.falls(reason) || alone(r.facts.Table()) {
		return false, nil
	}
	if !tk.wanted {
		tk.wanted = true
		r.share.wanted.Add(1)
	}
	if tk.Class.ShedFirst() && r.share.high.Load() {
		if r.serveShed(tk) {
			return true, nil
		}
		return false, r.overloaded(tk, w, 0)
	}
	if r.fallbacks == nil {
		return false, nil
	}
	p := r.fallbacks.enter()
	if p == nil {
		tk.gotSlot()
		return false, nil
	}
	r.stats.Queued.Add(1)
	limit := clip(ctx, r.cfg.FallbackWait)
	defer func() {
		queued := mono.Now() - p.since
		tk.queued += queued
		if w.start != 0 {
			w.start += queued // it is no part of the wait
		}
	}()
	for {
		t := r.facts.Table()
		over = causal && r.qualifies(tk, t) || tk.Class.Need() == tidegate.NeedRelaxed && r.keepsBudget(tk, t)
		if !over {
			if slot, more := p.wait(ctx, t.Next(), limit); slot {
				tk.gotSlot()
			} else if more {
				continue
			}
		}
		if !tk.slot && !r.fallbacks.leave(p) {
			tk.gotSlot()
		}
		switch {
		case over:
			r.giveBack(tk)
			return true, nil
		case tk.slot:
			return false, nil
		case ctx.Err() != nil:
			return false, ctx.Err()
		}
		if r.serveShed(tk) {
			return true, nil
		}
		return false, r.overloaded(tk, w, time.Duration(mono.Now()-p.since))
	}
}

// serveShed counts a read that is sent away, and reports whether a replica answers it all
// the same, because its class takes a stale answer rather than none.
func (r *Router) serveShed(tk *Ticket) bool {
	r.stats.Shed.Add(1)
	// A read that replicas cannot serve, or have failed, does not go there again.
	return !tk.pinned && tk.Class.OnBreach() == tidegate.BreachStaleWhenShed && r.serveStale(tk, r.facts.Table())
}

// gotSlot notes that the read has a slot. It is used from when the read is on the
// primary: before that the read may have to wait for a proof.
func (tk *Ticket) gotSlot() { tk.slot, tk.slotAt = true, 0 }

// giveBack gives the read's slot back, if it has one.
func (r *Router) giveBack(tk *Ticket) {
	if tk.slot {
		r.fallbacks.release(tk.slotAt)
		tk.slot = false
	}
}

// Working notes that something which belongs on the primary is on its way there: a round
// trip of a write, or a read that does not fall back. It returns what [Router.Worked]
// wants to know of it. The limit of the reads that do follows how long these take.
func (r *Router) Working() (began int64) {
	now := mono.Now()
	if r.fallbacks != nil {
		r.fallbacks.begins(now)
	}
	return now
}

// Unworked notes that it has not reached the primary, or was not answered.
func (r *Router) Unworked() {
	if r.fallbacks != nil {
		r.fallbacks.unbegins()
	}
}

// Worked notes that it is over, however it ended.
func (r *Router) Worked(began int64) {
	if r.fallbacks != nil {
		r.fallbacks.ends(began, mono.Now())
	}
}

// FallbackLimit returns how many reads may be on the primary for want of a replica now,
// how many are, and how many queue. Without a bound it is all zero. Below one it is the
// part of the time in which one may.
func (r *Router) FallbackLimit() (limit float64, used, queued int) {
	l := r.fallbacks
	if l == nil {
		return 0, 0, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.look(mono.Now())
	return l.limit, l.used, l.queue.Len()
}

// qualifies takes a replica that has come to qualify for a causal read, and reports
// whether there is one.
func (r *Router) qualifies(tk *Ticket, t *freshness.Table) bool {
	l := tk.Ledger
	l.Lock()
	defer l.Unlock()
	var asks ledger.Asks
	return r.settle(l, t, &asks) == ledger.Settled && r.covers(tk, t)
}

// keepsBudget takes a replica that has come to keep a relaxed read's budget, and reports
// whether there is one.
func (r *Router) keepsBudget(tk *Ticket, t *freshness.Table) bool {
	if tk.held != tidegate.ReasonNone || tk.pinned {
		return false
	}
	r.use(tk)
	n := need{relaxed: true, oldest: oldest(tk.Class, mono.Now()), exclude: tk.out(), second: tk.second, floor: r.floor.Load().in(t)}
	node := r.best(t, &n)
	if node == freshness.NoNode {
		return false
	}
	if l := tk.Ledger; l != nil {
		l.Lock()
		defer l.Unlock()
	}
	r.take(tk, t, node, tidegate.ReasonWithinBudget)
	return true
}

// overloaded is the error of a read that is sent away.
func (r *Router) overloaded(tk *Ticket, w *waiter, queued time.Duration) error {
	e := &tidegate.OverloadedError{Cluster: r.cfg.Cluster, Class: tk.Class, Queued: queued, RetryAfter: r.cfg.FallbackWait}
	if l := tk.Ledger; l != nil && tk.Class.Need() == tidegate.NeedCausal {
		l.Lock()
		t := r.facts.Table()
		n := need{mark: l.Need().Join(r.floor.Load().in(t)), exclude: tk.out()}
		l.Unlock()
		now := mono.Now()
		if best, eta := r.expected(t, &n, now); best != freshness.NoNode {
			e.RetryAfter = max(e.RetryAfter, time.Duration(eta-now))
		}
	}
	tk.nowhere()
	tk.reason = tidegate.ReasonShed
	return e
}

// breach is what becomes of a relaxed read whose budget no replica keeps, for that reason.
func (r *Router) breach(ctx context.Context, tk *Ticket, reason tidegate.Reason, w *waiter) error {
	t := r.facts.Table()
	switch tk.Class.OnBreach() {
	case tidegate.BreachStale:
		if r.serveStale(tk, t) {
			return nil
		}
	case tidegate.BreachFail:
		return r.refuse(tk, t, w)
	}
	return r.primary(ctx, tk, reason, w)
}

// serveStale takes a replica whatever its age, and reports whether there is one.
func (r *Router) serveStale(tk *Ticket, t *freshness.Table) bool {
	node := r.best(t, &need{relaxed: true, oldest: ageless, exclude: tk.exclude | r.avoidAged(tk.Class), second: tk.second, floor: r.floor.Load().in(t)})
	if node == freshness.NoNode {
		return false
	}
	if l := tk.Ledger; l != nil {
		l.Lock()
		defer l.Unlock()
	}
	r.take(tk, t, node, tidegate.ReasonStale)
	tk.stale = true
	r.stats.Stale.Add(1)
	return true
}
