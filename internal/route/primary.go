package route

import (
	"context"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
	"github.com/tidegatedb/tidegate/internal/rules"
)

// primary is the ladder's third rung. A session that has read from replicas is
// answered only by a primary that is proven to show as much; when that cannot be
// proven in time the answer is given, marked unproven and counted. A causal read
// takes a replica that qualifies meanwhile.
func (r *Router) primary(ctx context.Context, tk *Ticket, reason tidegate.Reason, w *waiter) error {
	if w == nil {
		w = &waiter{r: r}
		defer w.stop(tk)
	}
	w.patience = 0
	causal := tk.Class.Need() == tidegate.NeedCausal && tk.Ledger != nil && !tk.pinned && tk.held == tidegate.ReasonNone
	if over, err := r.turn(ctx, tk, reason, causal, w); over || err != nil {
		return err
	}
	err := r.prove(ctx, tk, reason, causal, w)
	if err != nil || tk.Role != tidegate.RolePrimary {
		r.giveBack(tk)
	}
	return err
}

// prove takes the primary once it is proven to show what the session has seen.
func (r *Router) prove(ctx context.Context, tk *Ticket, reason tidegate.Reason, causal bool, w *waiter) error {
	proofLimit, primaryLimit := w.spent()+clip(ctx, r.cfg.ProofWait), w.spent()+clip(ctx, r.cfg.PrimaryWait)
	touched := false
	var there tidegate.Incarnation
	for {
		var asks ledger.Asks
		t := r.facts.Table()
		if t.Primary == freshness.NoNode {
			if causal && r.qualifies(tk, t) {
				return nil
			}
			if w.waitPrimary(ctx, t, primaryLimit) {
				continue
			}
		}
		if t.Primary == freshness.NoNode || tk.exclude&(1<<uint(t.Primary)) != 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			return r.refuse(tk, t, w)
		}
		if on := life(t); tk.Ledger != nil && (!touched || on != there) {
			// Once for each life that may answer: what is open elsewhere counts.
			touched, there = true, on
			tk.Ledger.Lock()
			if tk.Ledger.Busy() {
				tk.Ledger.Touch(on)
			}
			tk.Ledger.Unlock()
		}
		status, shown := r.primaryProof(tk, t, causal, &asks)
		if tk.counted {
			return nil // a replica qualified meanwhile
		}
		switch {
		case status == ledger.Settled:
			return r.takePrimary(tk, t, reason, false)
		case status == ledger.Changed:
			if r.cfg.Foreign == tidegate.ForeignError && tk.verdict >= tidegate.VerdictForeign {
				return r.foreign(tk, t)
			}
			if !tk.changed {
				r.stats.Changed.Add(1)
				r.stats.Verdicts[tk.verdict].Add(1)
				tk.changed = true
			}
			return r.takePrimary(tk, t, tidegate.ReasonHistoryChanged, true)
		}
		if !shown.IsZero() {
			r.facts.WantShown(shown)
		}
		if causal {
			r.candidates(t, &need{exclude: tk.out()}, &asks)
		}
		if !w.wait(ctx, t, &asks, proofLimit) {
			if err := ctx.Err(); err != nil {
				return err
			}
			return r.takePrimary(tk, t, reason, true)
		}
	}
}

// life returns the primary's, zero when it does not answer.
func life(t *freshness.Table) tidegate.Incarnation {
	if p := t.PrimaryObs(); p != nil {
		return p.Incarnation
	}
	return 0
}

// primaryProof reports whether the primary of the table is proven to show what
// the session has seen, and if not, up to where it must be proven. It takes a
// replica that qualifies for a causal read.
func (r *Router) primaryProof(tk *Ticket, t *freshness.Table, causal bool, asks *ledger.Asks) (ledger.Status, tidegate.Position) {
	l := tk.Ledger
	if l == nil || tk.Class.Need() == tidegate.NeedRelaxed {
		return ledger.Settled, tidegate.Position{}
	}
	l.Lock()
	defer l.Unlock()
	if tk.changed {
		return ledger.Changed, tidegate.Position{}
	}
	status := r.settle(l, t, asks)
	tk.required, tk.news, tk.tied = l.Mark(), l.News(), l.Tied()
	if status == ledger.Changed {
		tk.verdict = l.Verdict()
	}
	if status != ledger.Settled {
		return status, tidegate.Position{}
	}
	if causal && r.covers(tk, t) {
		return ledger.Settled, tidegate.Position{}
	}
	unshown := !t.Shown.Covers(l.Shown())
	if l.Doubtful() && (causal || unshown) {
		// If there is no such position this read, or those to come, need not wait for it.
		r.facts.Demand(t.Primary, mono.Now())
	}
	if !unshown || !rules.PrimaryMustHaveShown.On() {
		return ledger.Settled, tidegate.Position{}
	}
	return ledger.Open, l.Shown()
}

// covers takes a replica that covers the settled mark, and reports whether there is
// one. The ledger is locked.
func (r *Router) covers(tk *Ticket, t *freshness.Table) bool {
	r.use(tk)
	n := need{mark: tk.Ledger.Need().Join(r.floor.Load().in(t)), oldest: r.oldestFor(tk.Ledger), exclude: tk.out(), second: tk.second}
	i := r.best(t, &n)
	if i != freshness.NoNode {
		r.take(tk, t, i, tidegate.ReasonCovered)
	}
	return i != freshness.NoNode
}

// foreign refuses a read whose session must see what is foreign.
func (r *Router) foreign(tk *Ticket, t *freshness.Table) error {
	r.stats.Refused.Add(1)
	r.stats.Verdicts[tk.verdict].Add(1)
	v := tk.verdict
	tk.nowhere()
	tk.verdict = v
	return &tidegate.ForeignTokenError{Cluster: r.cfg.Cluster, Verdict: v, Required: tk.required, Epoch: t.Epoch}
}

func (r *Router) takePrimary(tk *Ticket, t *freshness.Table, reason tidegate.Reason, unproven bool) error {
	n := &t.Nodes[t.Primary]
	tk.Node, tk.Role, tk.Proof, tk.Life, tk.Epoch = t.Primary, tidegate.RolePrimary, n.Obs, n.Incarnation, n.Epoch
	tk.current, tk.reason, tk.unproven = 0, reason, unproven
	if unproven {
		r.stats.Unproven.Add(1)
	}
	tk.stale = false
	if tk.falls(reason) {
		r.stats.Fallbacks.Add(1)
	}
	r.enter(tk)
	return nil
}
