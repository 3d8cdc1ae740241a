package route

import (
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
	"github.com/tidegatedb/tidegate/internal/rules"
)

// Ticket is one read's way through the router. It is not safe for concurrent
// use; the zero Ticket with Class and Ledger set is ready for [Router.Begin].
type Ticket struct {
	Class tidegate.Class
	// Ledger is the session's, nil without a session.
	Ledger *ledger.Ledger

	// Node is where the read goes.
	Node int
	Role tidegate.Role
	// Epoch is the history of that node.
	Epoch tidegate.Epoch
	// at is the node, also when its index has become another's.
	at *Node
	// Proof is the observation that the decision rests on; for the primary it
	// may be nil.
	Proof *freshness.Observation
	// Life is the proof's incarnation, zero without one.
	Life tidegate.Incarnation

	reason   tidegate.Reason
	required tidegate.Position
	current  int64
	unproven bool
	stale    bool   // older than its class's budget
	slot     bool   // holds a fallback slot
	slotAt   int64  // since when it is used, zero before
	keeps    bool   // has a slot that is put aside
	wanted   bool   // has wanted to fall back
	belongs  int64  // on the primary, since when; zero if it does not
	timed    int64  // since when, zero if it is not timed
	move     uint64 // all but the nodes that it may leave its own for, for the sake of balance
	queued   int64  // waiting for one
	changed  bool   // what the session requires can not be judged; see Told
	verdict  tidegate.Verdict
	tied     bool   // to this life of the primary, see Tied
	news     uint64 // of the session, when that was decided
	waited   int64
	retries  int
	exclude  uint64 // nodes that have failed the read
	avoid    uint64 // replicas that are out, or that its class does not use
	second   uint64 // replicas for when none of the others qualifies
	floor    *floor // when the decision began, or began anew
	pinned   bool   // to the primary
	rolled   bool   // the rollout has been asked
	// cause is of the last of the retries, and replicas is how many replicas have failed.
	cause    tidegate.RetryCause
	replicas uint8
	// held is why the rollout keeps the read on the primary, if it does.
	held tidegate.Reason
	// shadow is where a held read would have gone, and why.
	shadow       *Node
	shadowReason tidegate.Reason
	noted        bool // dispatched in the ledger
	counted      bool // in the node's load
	entered      bool // in the ledger, on the primary
}

// out returns the nodes that the read does not use as replicas.
func (tk *Ticket) out() uint64 { return tk.exclude | tk.avoid }

// Decision returns what was decided.
func (r *Router) Decision(tk *Ticket) tidegate.Decision {
	d := tidegate.Decision{
		Cluster: r.cfg.Cluster, Class: tk.Class, Role: tk.Role, Reason: tk.reason, Waited: time.Duration(tk.waited),
		Required: tk.required, Unproven: tk.unproven, Stale: tk.stale, Queued: time.Duration(tk.queued), Retries: tk.retries, RetryCause: tk.cause,
	}
	if tk.Role != tidegate.RoleUnknown {
		d.Node = tk.at.Name
	}
	if tk.shadow != nil {
		d.ShadowNode = tk.shadow.Name
	}
	d.ShadowReason = tk.shadowReason
	if tk.changed || tk.Role == tidegate.RoleUnknown {
		d.Verdict = tk.verdict
	}
	if tk.Proof != nil {
		d.Observed = tk.Proof.Applied
	}
	if tk.Role == tidegate.RolePrimary && !tk.unproven {
		// The primary has what it has acknowledged since it was looked at.
		d.Observed = d.Observed.Join(tk.required)
	}
	switch {
	case tk.Role == tidegate.RolePrimary && !tk.unproven:
		d.StalenessKnown = true
	case tk.current != 0:
		d.Staleness, d.StalenessKnown = time.Duration(mono.Now()-tk.current), true
	}
	return d
}

// take notes that the read goes to a replica. The ledger is locked, if there is
// one.
func (r *Router) take(tk *Ticket, t *freshness.Table, node int, reason tidegate.Reason) {
	n := &t.Nodes[node]
	if l := tk.Ledger; l != nil {
		tk.required = l.Mark()
		if tk.Class.Need() == tidegate.NeedCausal || rules.EveryClassLeavesSeen.On() {
			l.Dispatch(t, node, n.Incarnation)
			tk.noted = true
		}
	}
	r.enterReplica(tk, n, node, reason)
}

// enterReplica notes where the read goes.
func (r *Router) enterReplica(tk *Ticket, n *freshness.Node, node int, reason tidegate.Reason) {
	tk.Node, tk.Role, tk.Proof, tk.Life, tk.Epoch = node, tidegate.RoleReplica, n.Obs, n.Incarnation, n.Epoch
	tk.current, tk.reason = n.Current, reason
	if tk.wanted {
		r.share.instead.Add(1)
	}
	tk.unproven, tk.changed, tk.stale = false, false, false
	r.count(tk)
}

func (r *Router) count(tk *Ticket) {
	s := &r.slots[tk.Node]
	tk.timed = 0
	if (s.flying.enter()%paceEvery == 0 || r.slows.Load() != 0) && tk.Role == tidegate.RoleReplica && !tk.Class.Placed() {
		tk.timed = mono.Now()
	}
	tk.at, tk.counted = s.node.Load(), true
}

// Tied reports whether only the life of the primary that the proof is of is known to have
// what the session must see.
func (tk *Ticket) Tied() bool { return tk.tied && tk.Role == tidegate.RolePrimary }

// Of returns what the caller knows the ticket's node by: Node.Of.
func (tk *Ticket) Of() any { return tk.at.Of }

// enter notes that the read goes to the primary.
func (r *Router) enter(tk *Ticket) {
	r.count(tk)
	switch {
	case tk.slot || tk.keeps:
		tk.slotAt = mono.Now()
	case r.fallbacks != nil:
		tk.belongs = r.Working()
	}
	if tk.Ledger != nil {
		tk.Ledger.Enter(tk.Life)
		tk.entered = true
	}
}

func (r *Router) uncount(tk *Ticket) {
	if tk.entered {
		tk.Ledger.Leave()
		tk.entered = false
	}
	r.giveBack(tk)
	if tk.belongs != 0 {
		r.Worked(tk.belongs)
		tk.belongs = 0
	}
	if tk.counted {
		r.slots[tk.Node].flying.leave()
		tk.counted = false
	}
}

// Done ends a read that was sent: now is when its last row was delivered. It
// may be called more than once.
func (r *Router) Done(tk *Ticket, now int64) {
	if tk.timed != 0 && r.slots[tk.Node].node.Load() == tk.at {
		r.paces.nodes[tk.Node].took(now-tk.timed, now)
	}
	tk.timed = 0
	r.uncount(tk)
	if tk.noted {
		tk.noted = false
		tk.Ledger.Done(tk.Life, now)
	}
}

// Told notes that the read was answered and its decision delivered. One that says
// that history has changed has told the session, which can go on from there. A
// report that reached nobody is made again.
func (r *Router) Told(tk *Ticket) {
	if !tk.changed || tk.Proof == nil {
		return
	}
	tk.changed = false
	tk.Ledger.Restart(tk.Epoch, tk.Life, tk.news)
}

// Undo ends a read that was never sent.
func (r *Router) Undo(tk *Ticket) {
	r.disregard(tk)
	r.uncount(tk)
	if tk.noted {
		tk.noted = false
		tk.Ledger.Undo(tk.Life)
	}
}
