package route

import (
	"context"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

const (
	// fastAsks is how many of a waiter's asks are due at once. A replica usually
	// catches up within a millisecond, and a Go timer below one sleeps one.
	fastAsks = 4
	// homeAsks is how many of a waiter's asks go only to the replica that its
	// session has read from. After a write that one usually catches up at once, and
	// staying needs no other look.
	homeAsks = 2
	// homePatience bounds the wait for the answer to one of them: a replica that
	// hangs must not hold its sessions.
	homePatience = 2 * time.Millisecond
	// firstPause and longestPause space the later asks of one waiter.
	firstPause   = 500 * time.Microsecond
	longestPause = 5 * time.Millisecond
)

// Begin decides where the read goes and notes it in the session's ledger and the
// node's load; the caller ends it with Done, Undo or Failed. After Failed it may
// be called again with the same ticket.
//
// The ladder: an eligible replica; a bounded wait for one; the primary, proven
// to show what the session has seen; an error that wraps tidegate.ErrNotFresh,
// or the context's.
func (r *Router) Begin(ctx context.Context, tk *Ticket) error {
	tk.avoid, tk.second, tk.floor = 0, 0, r.floor.Load()
	if !r.plain(tk.Class) {
		r.use(tk)
	}
	if p := r.rollout.Load(); tk.held != tidegate.ReasonNone || p != nil && r.hold(tk, *p) {
		return r.primary(ctx, tk, tk.held, nil)
	}
	switch need := tk.Class.Need(); {
	case need == tidegate.NeedStrong:
		return r.primary(ctx, tk, tidegate.ReasonStrong, nil)
	case tk.pinned:
		return r.primary(ctx, tk, tidegate.ReasonReplicaFailed, nil)
	case need == tidegate.NeedRelaxed:
		return r.beginRelaxed(ctx, tk)
	case tk.Ledger == nil:
		r.stats.Sessionless.Add(1)
		return r.primary(ctx, tk, tidegate.ReasonNoSession, nil)
	case r.stay(tk, r.facts.Table()):
		return nil
	default:
		return r.beginCausal(ctx, tk)
	}
}

// stay is the way of most reads: the session stays where it reads, which needs
// nothing but its own books. It reports whether it does. With other reads of the
// session in flight it does not: what those have shown by now has to be noted
// first, should this one have to leave for the sake of its connection.
func (r *Router) stay(tk *Ticket, t *freshness.Table) bool {
	l := tk.Ledger
	l.Lock()
	node := l.Stay(t, tk.out()|tk.second|r.slows.Load())
	if node == freshness.NoNode || r.Flying(node) > littleLoaded || l.Busy() || tk.floor != nil && !t.Nodes[node].Applied.Covers(tk.floor.in(t)) || r.moves(tk, t, node) {
		l.Unlock()
		return false
	}
	l.Again()
	tk.required = l.Mark()
	l.Unlock()
	tk.noted = true
	r.enterReplica(tk, &t.Nodes[node], node, tidegate.ReasonStayed)
	return true
}

func (r *Router) beginCausal(ctx context.Context, tk *Ticket) error {
	l := tk.Ledger
	w := waiter{r: r}
	defer w.stop(tk)
	var p plan
	home, leave := freshness.NoNode, false
	shun := r.shun(r.facts.Table(), tk.out())
	for {
		var asks ledger.Asks
		t := r.facts.Table()
		if w.asks >= fastAsks {
			shun = 0 // late is better than later
		}
		r.use(tk)
		n := need{exclude: tk.out() | shun, second: tk.second | tk.move, floor: tk.floor.in(t)}
		l.Lock()
		if w.asks == 0 {
			home = l.Home(t) // before it is bounded and forgotten
			if l.Busy() {
				leave = l.Flying() > littleLoaded
				l.Touch(0)
			}
		}
		// Not for ever: what the crowded replica answers late, it does answer.
		n.leave = leave && w.asks < homeAsks
		node, reason, status := r.pick(l, t, &n, &asks)
		if node != freshness.NoNode {
			r.take(tk, t, node, reason)
			l.Unlock()
			return nil
		}
		tk.required = l.Mark()
		some := status != ledger.Changed && r.candidates(t, &n, &asks)
		if n.oldest != 0 && t.Primary != freshness.NoNode {
			asks.Nodes |= 1 << uint(t.Primary) // an age is proven by both sides
		}
		patient := l.Patient()
		if some {
			r.plan(ctx, tk, t, &n, &p)
		}
		if shun != 0 && (!some || p.hopeless) {
			l.SetPatient(patient) // it is decided with the others
			l.Unlock()
			shun, p = 0, plan{}
			continue
		}
		l.Unlock()
		switch {
		case status == ledger.Changed:
			// The reason becomes ReasonHistoryChanged there, unless a parallel
			// read of the session is told first.
			return r.primary(ctx, tk, tidegate.ReasonBehind, &w)
		case !some:
			return r.primary(ctx, tk, tk.noReplica(), &w)
		case p.hopeless:
			r.stats.Predicted.Add(1)
			return r.primary(ctx, tk, tidegate.ReasonPredicted, &w)
		}
		w.patience, w.due = 0, p.due
		if w.asks < homeAsks && home != freshness.NoNode && t.Nodes[home].Usable && n.exclude>>uint(home)&1 == 0 {
			asks.Nodes, w.patience = 1<<uint(home), homePatience
		}
		if !w.wait(ctx, t, &asks, p.limit) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if shun != 0 {
				shun = 0
				continue
			}
			l.Lock()
			l.SetPatient(!p.patient) // a long wait in vain is not followed by another
			l.Unlock()
			return r.primary(ctx, tk, tidegate.ReasonBehind, &w)
		}
		tk.floor = r.floor.Load()
	}
}

func (r *Router) beginRelaxed(ctx context.Context, tk *Ticket) error {
	w := waiter{r: r}
	defer w.stop(tk)
	limit := r.patience(ctx, tk, tk.Class.Wait(r.cfg.Wait))
	shun := r.shun(r.facts.Table(), tk.out())
	for {
		var asks ledger.Asks
		t := r.facts.Table()
		r.use(tk)
		n := need{relaxed: true, oldest: oldest(tk.Class, mono.Now()), exclude: tk.out() | shun, second: tk.second, floor: tk.floor.in(t)}
		node := r.best(t, &n)
		if node == freshness.NoNode && shun != 0 {
			n.exclude = tk.out() // late is better than older
			node = r.best(t, &n)
		}
		if node != freshness.NoNode {
			if l := tk.Ledger; l != nil {
				l.Lock()
				defer l.Unlock()
			}
			r.take(tk, t, node, tidegate.ReasonWithinBudget)
			return nil
		}
		if !r.candidates(t, &n, &asks) {
			return r.breach(ctx, tk, tk.noReplica(), &w)
		}
		// Being current is proven by both sides: the replica's position and a
		// look at the primary to compare it with.
		if t.Primary != freshness.NoNode {
			asks.Nodes |= 1 << uint(t.Primary)
		}
		if !w.wait(ctx, t, &asks, limit) {
			if err := ctx.Err(); err != nil {
				return err
			}
			return r.breach(ctx, tk, tidegate.ReasonBehind, &w)
		}
		tk.floor = r.floor.Load()
	}
}

// noReplica says why there is none.
func (tk *Ticket) noReplica() tidegate.Reason {
	if tk.retries > 0 {
		return tidegate.ReasonReplicaFailed
	}
	return tidegate.ReasonNoReplica
}

// clip leaves half of the caller's time for the read itself.
func clip(ctx context.Context, limit time.Duration) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return max(0, min(limit, time.Until(deadline)/2))
	}
	return limit
}

// candidates adds to asks the two usable replicas with the newest position; it
// reports whether there is any.
func (r *Router) candidates(t *freshness.Table, n *need, asks *ledger.Asks) bool {
	a, b := newest(t, n.exclude)
	if a == freshness.NoNode {
		return false
	}
	asks.Nodes |= 1 << uint(a)
	if b != freshness.NoNode {
		asks.Nodes |= 1 << uint(b)
	}
	return true
}

func newest(t *freshness.Table, exclude uint64) (a, b int) {
	a, b = freshness.NoNode, freshness.NoNode
	for i := range t.Nodes {
		if !t.Nodes[i].Usable || exclude&(1<<uint(i)) != 0 {
			continue
		}
		switch {
		case a == freshness.NoNode || !t.Nodes[a].Applied.Covers(t.Nodes[i].Applied):
			a, b = i, a
		case b == freshness.NoNode || !t.Nodes[b].Applied.Covers(t.Nodes[i].Applied):
			b = i
		}
	}
	return a, b
}

// Refuse ends a read that no node could be proven for and returns its error.
func (r *Router) Refuse(tk *Ticket) error {
	r.Undo(tk)
	return r.refuse(tk, r.facts.Table(), &waiter{r: r})
}

// refuse is the last rung.
func (r *Router) refuse(tk *Ticket, t *freshness.Table, w *waiter) error {
	r.stats.Refused.Add(1)
	e := &tidegate.NotFreshError{Cluster: r.cfg.Cluster, Class: tk.Class, Required: tk.required, Waited: w.spent(), NoPrimary: t.Primary == freshness.NoNode}
	if a, _ := newest(t, 0); a != freshness.NoNode {
		e.Observed = t.Nodes[a].Applied
	}
	tk.nowhere()
	return e
}

// nowhere makes the decision of a read that is refused that there is none; what
// earlier attempts found is over.
func (tk *Ticket) nowhere() {
	tk.Role, tk.Proof, tk.current, tk.reason, tk.verdict = tidegate.RoleUnknown, nil, 0, tidegate.ReasonNone, tidegate.VerdictNone
}
