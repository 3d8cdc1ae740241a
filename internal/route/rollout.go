package route

import (
	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/chance"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// SetRollout changes which reads are routed, from the next decision on.
func (r *Router) SetRollout(to tidegate.Rollout) {
	if to == tidegate.RolloutOn {
		r.rollout.Store(nil)
		return
	}
	r.rollout.Store(&to)
}

// Rollout returns which reads are routed.
func (r *Router) Rollout() tidegate.Rollout {
	if p := r.rollout.Load(); p != nil {
		return *p
	}
	return tidegate.RolloutOn
}

// hold reports whether the rollout keeps the read on the primary, and notes the
// reason: what was decided for a read's first attempt holds for all. A causal
// read without a session is there anyway, and its own reason says more.
func (r *Router) hold(tk *Ticket, to tidegate.Rollout) bool {
	need := tk.Class.Need()
	if tk.rolled || need == tidegate.NeedStrong || need == tidegate.NeedCausal && tk.Ledger == nil {
		return tk.held != tidegate.ReasonNone
	}
	tk.rolled = true
	var nonce uint64
	if tk.Ledger != nil {
		nonce = tk.Ledger.Nonce()
	}
	if nonce == 0 {
		nonce = chance.Uint64()
	}
	switch {
	case to.Routes(nonce):
		return false
	case to.Shadow():
		tk.held = tidegate.ReasonShadow
		r.look(tk)
	default:
		tk.held = tidegate.ReasonRollout
	}
	return true
}

// look notes where the read would go without a wait, and goes nowhere.
func (r *Router) look(tk *Ticket) {
	var asks ledger.Asks
	t := r.facts.Table()
	node, reason := freshness.NoNode, tidegate.ReasonBehind
	if !r.candidates(t, &need{exclude: tk.out()}, &asks) {
		reason = tidegate.ReasonNoReplica
	}
	if l := tk.Ledger; tk.Class.Need() == tidegate.NeedRelaxed {
		n := need{relaxed: true, oldest: oldest(tk.Class, mono.Now()), exclude: tk.out(), second: tk.second, floor: tk.floor.in(t)}
		if node = r.best(t, &n); node != freshness.NoNode {
			reason = tidegate.ReasonWithinBudget
		}
	} else {
		n := need{exclude: tk.out(), second: tk.second, floor: tk.floor.in(t)}
		l.Lock()
		if i, why, status := r.pick(l, t, &n, &asks); i != freshness.NoNode || status == ledger.Changed {
			node, reason = i, why
		}
		l.Unlock()
	}
	r.stats.Shadowed.Add(1)
	if tk.shadowReason = reason; node != freshness.NoNode {
		tk.shadow = r.slots[node].node.Load()
		r.stats.ShadowReplica.Add(1)
	}
}
