package route

import (
	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// replicaTries is how many replicas may fail a read before it goes to the primary: what
// has befallen two of them may befall the others too, and the caller waits.
const replicaTries = 2

// Retry ends an attempt that failed before the first row for a reason that need not be
// the node's; the next [Router.Begin] may go there again. sent tells that the statement
// may have reached the node. A cause that is none counts as RetryConnection.
func (r *Router) Retry(tk *Ticket, cause tidegate.RetryCause, sent bool) {
	r.disregard(tk)
	if sent {
		r.Done(tk, mono.Now())
	} else {
		r.Undo(tk)
	}
	r.retried(tk, cause)
	r.facts.Demand(tk.Node, mono.Now())
}

// Failed ends a read that its node failed before the first row; the next [Router.Begin]
// goes elsewhere: to another replica, and after that to the primary.
func (r *Router) Failed(tk *Ticket, cause tidegate.RetryCause, sent bool) {
	r.leave(tk, tk.Node, tk.Role)
	r.Retry(tk, cause, sent)
}

// FailToPrimary ends an attempt that a replica cannot serve; the next [Router.Begin] goes
// to the primary.
func (r *Router) FailToPrimary(tk *Ticket, cause tidegate.RetryCause) {
	r.disregard(tk)
	r.Done(tk, mono.Now())
	r.retried(tk, cause)
	tk.pinned = true
}

// disregard makes nothing be learned from how long the attempt takes: a failure says
// nothing of answers.
func (r *Router) disregard(tk *Ticket) {
	tk.timed = 0
	if tk.belongs != 0 {
		tk.belongs = 0
		r.Unworked()
	}
}

// leave takes the node off the read's list. It does so for this read only: whether a node
// is left out by all is decided by looks at it.
func (r *Router) leave(tk *Ticket, node int, role tidegate.Role) {
	tk.exclude |= 1 << uint(node)
	if role != tidegate.RoleReplica {
		return
	}
	// Without a primary in sight the other replicas are all that there is.
	if tk.replicas++; tk.replicas >= replicaTries && r.facts.Table().PrimaryObs() != nil {
		tk.pinned = true
	}
}

// retried counts that the read begins again.
func (r *Router) retried(tk *Ticket, cause tidegate.RetryCause) {
	if cause == tidegate.RetryNone || int(cause) >= tidegate.RetryCauses {
		cause = tidegate.RetryConnection
	}
	tk.retries++
	tk.cause = cause
	r.stats.Retries[cause].Add(1)
}

// Alternative reports whether another replica than the ticket's is known to have what its
// read needs, and ok says so too of what the caller knows the node by and the reads in
// flight there. What the session has seen and is not bounded yet can require more.
func (r *Router) Alternative(tk *Ticket, ok func(of any, flying int64) bool) bool {
	if tk.Role != tidegate.RoleReplica {
		return false
	}
	t := r.facts.Table()
	n := need{exclude: tk.out() | 1<<uint(tk.Node), floor: r.floor.Load().in(t)}
	n.mark = tk.required.Join(n.floor)
	if tk.Class.Need() == tidegate.NeedRelaxed {
		n.relaxed, n.oldest = true, oldest(tk.Class, mono.Now())
	}
	for i := range t.Nodes {
		if s := &r.slots[i]; r.eligible(t, i, &n) && ok(s.node.Load().Of, s.flying.Load()) {
			return true
		}
	}
	return false
}

// Retries returns how many attempts of the ticket's read have failed.
func (tk *Ticket) Retries() int { return tk.retries }
