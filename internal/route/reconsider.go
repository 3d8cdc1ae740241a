package route

import (
	"context"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// Reconsider is for a ticket whose proof does not hold for the connection at
// hand: it takes the dispatch back, waits for a look at the same node that does
// hold for it, and dispatches again if the node is still eligible then. On false
// the read has to begin again; a node that gives no such look in time is left
// out then.
func (r *Router) Reconsider(ctx context.Context, tk *Ticket, holds func(*freshness.Observation) bool) bool {
	node, role, reason, slot := tk.Node, tk.Role, tk.reason, tk.slot
	tk.slot, tk.keeps = false, slot // it is not queued for again
	r.Undo(tk)
	ok := r.reconsider(ctx, tk, holds, node, role, reason)
	if tk.slot, tk.keeps = slot, false; !ok {
		r.giveBack(tk)
	}
	return ok
}

func (r *Router) reconsider(ctx context.Context, tk *Ticket, holds func(*freshness.Observation) bool, node int, role tidegate.Role, reason tidegate.Reason) bool {
	w := waiter{r: r}
	defer w.stop(tk)
	limit := clip(ctx, r.cfg.ProofWait)
	if role == tidegate.RoleReplica {
		limit = r.patience(ctx, tk, tk.Class.Wait(r.cfg.Wait)) / 2 // the rest is for the others
	}
	for {
		t := r.facts.Table()
		n := &t.Nodes[node]
		if n.Err == nil && n.Obs != nil && holds(n.Obs) {
			return r.again(tk, t, node, role, reason)
		}
		asks := ledger.Asks{Nodes: 1 << uint(node)}
		if n.Err != nil || n.Obs == nil || r.slots[node].node.Load() != tk.at || !w.wait(ctx, t, &asks, limit) {
			r.leave(tk, node, role)
			r.retried(tk, tidegate.RetryUnproven)
			return false
		}
	}
}

// again repeats the decision for one node on a newer table.
func (r *Router) again(tk *Ticket, t *freshness.Table, node int, role tidegate.Role, reason tidegate.Reason) bool {
	if role == tidegate.RolePrimary {
		// What the session needs was judged in the history of that time, and in the
		// primary's life where that matters.
		if t.Primary != node || t.Nodes[node].Epoch != tk.Epoch || tk.tied && t.Nodes[node].Incarnation != tk.Life {
			return false
		}
		tk.Proof, tk.Life, tk.Epoch = t.Nodes[node].Obs, t.Nodes[node].Incarnation, t.Nodes[node].Epoch
		r.enter(tk)
		return true
	}
	only := need{exclude: ^(uint64(1) << uint(node)), floor: r.floor.Load().in(t)}
	if tk.Class.Need() == tidegate.NeedRelaxed {
		only.relaxed, only.oldest = true, oldest(tk.Class, mono.Now())
		stale := tk.stale
		if stale {
			only.oldest = ageless
		}
		if l := tk.Ledger; l != nil {
			l.Lock()
			defer l.Unlock()
		}
		if !r.eligible(t, node, &only) {
			return false
		}
		r.take(tk, t, node, reason)
		tk.stale = stale
		return true
	}
	l := tk.Ledger
	l.Lock()
	defer l.Unlock()
	var asks ledger.Asks
	if i, why, _ := r.pickCausal(l, t, &only, &asks); i != freshness.NoNode {
		r.take(tk, t, i, why)
		return true
	}
	return false
}

// Soon returns the nodes that a read which follows a write will ask, as a bit set:
// the replica that the session has read from, else the two with the newest
// positions.
func (r *Router) Soon(l *ledger.Ledger) uint64 {
	t := r.facts.Table()
	l.Lock()
	home := l.Home(t)
	l.Unlock()
	if home != freshness.NoNode && t.Nodes[home].Usable {
		return 1 << uint(home)
	}
	var asks ledger.Asks
	r.candidates(t, &need{exclude: r.avoid(tidegate.Causal)}, &asks)
	return asks.Nodes
}
