package freshness

import (
	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/rules"
)

// NoNode is the index of no node.
const NoNode = -1

// Table is the latest observation of every node. It is immutable: a change makes
// a new one. Reading it takes no lock.
type Table struct {
	// Nodes has one entry for each node, by index.
	Nodes []Node
	// Primary is the index of the one primary, or [NoNode] when none is known or
	// two claim to be it.
	Primary int
	// Conflict tells that more than one node claims to be the primary of the
	// same line: writes must be refused, nobody can tell which one is right.
	Conflict bool
	// Epoch is the history of the newest primary that was seen, also while it is
	// unreachable. Before one has been seen it is what the replicas say, if they
	// can tell and agree; the zero Epoch means that nobody knows yet.
	Epoch tidegate.Epoch
	// Lineage is how Epoch came about.
	Lineage Lineage
	// Lives are the primary's last ones, the newest first.
	Lives [maxLives]Life
	// Shown is a position of Epoch up to which the primary has been proven to
	// show every commit. It only grows within an epoch.
	Shown tidegate.Position

	next chan struct{}
}

// Node is what the table has of one node.
type Node struct {
	// Applied, Incarnation and Sent repeat the observation's. What a causal read
	// looks at comes first, in one cache line.
	Applied tidegate.Position
	// Usable tells that the node answers, is a replica and provably belongs to
	// the table's epoch: it is on it, or on a line before it and not beyond where the
	// epoch left that, so that it shows a part of what the epoch contains.
	Usable bool
	// Fence is why a node that answers is neither usable nor the primary.
	Fence       tidegate.Fence
	Incarnation tidegate.Incarnation
	// Current is the send time of the newest look at the primary whose position
	// this replica has applied, or zero when it is not known: what the node
	// shows is at most now - Current old.
	Current int64
	Sent    int64
	// Delay is an estimate of how long this replica takes to apply what the primary
	// has, in nanoseconds; zero while nothing slower than a look was seen.
	Delay int64
	// Epoch is the node's history as far as it is known: the observation's, or
	// the table's for a replica that cannot tell its line while only one history
	// has ever been in sight.
	Epoch tidegate.Epoch
	// Obs is the newest observation, nil before the first.
	Obs *Observation
	// Err is why the newest probe failed, nil when it succeeded. The observation
	// before it still holds for connections of its incarnation.
	Err error
	// held is the history that the node was on when it had been sent so much, in that life.
	held heldLine
	// overtook is the life in which it had what the primary lacked.
	overtook tidegate.Incarnation
	// FailedSince is the send time of the first of the failed probes in a row.
	FailedSince int64
}

// Next returns a channel that is closed when the table has been replaced.
func (t *Table) Next() <-chan struct{} { return t.next }

// PrimaryObs returns the primary's newest observation, or nil when no primary is
// known or its newest probe failed.
func (t *Table) PrimaryObs() *Observation {
	if t.Primary == NoNode || t.Nodes[t.Primary].Err != nil {
		return nil
	}
	return t.Nodes[t.Primary].Obs
}

// Lag returns how far a usable replica is behind what the primary was last seen to
// have, in the engine's unit of positions.
func (t *Table) Lag(node int) (uint64, bool) {
	if t.Primary == NoNode || !t.Nodes[node].Usable {
		return 0, false
	}
	p, n := t.Nodes[t.Primary].Applied.Number(), t.Nodes[node].Applied.Number()
	return p - min(p, n), true // the look at the replica can be the newer one
}

// Incarnation returns the index of the node that was last seen in that
// incarnation, or [NoNode].
func (t *Table) Incarnation(id tidegate.Incarnation) int {
	for i := range t.Nodes {
		if t.Nodes[i].Incarnation == id && t.Nodes[i].Obs != nil {
			return i
		}
	}
	return NoNode
}

// clone returns a copy to be changed and published.
func (t *Table) clone() *Table {
	c := *t
	c.Nodes = append([]Node(nil), t.Nodes...)
	c.next = make(chan struct{})
	return &c
}

// heldLine remembers where a replica was when its line was known.
type heldLine struct {
	epoch    tidegate.Epoch
	life     tidegate.Incarnation
	streamed tidegate.Position
}

// settle derives the roles, epochs and usability of all nodes from their
// observations. It reports whether the history has become another one.
func (t *Table) settle(h *histories) (changed bool) {
	for i := range t.Nodes {
		if o := t.Nodes[i].Obs; o != nil {
			h.see(o.Epoch)
			h.see(tidegate.Epoch{System: o.Epoch.System, Line: o.LeastLine})
		}
	}
	var rival int
	t.Primary, rival = t.claimant()
	t.Conflict = rival != NoNode
	switch p := t.Primary; {
	case p == NoNode:
	case t.Conflict:
		if a, b := t.Nodes[p].Obs, t.Nodes[rival].Obs; a.Epoch == b.Epoch {
			h.dispute(a, b)
		}
		t.Primary = NoNode
	case t.leftBehind(p) && rules.HigherLineWins.On():
		t.Primary = NoNode
	default:
		changed = t.follow(h.full(t.Nodes[p].Obs), h.of(t.Nodes[p].Obs))
	}
	if !t.Epoch.Known() && !h.more {
		// No primary has been seen yet: replicas that can tell their line and
		// agree are the only history in sight.
		t.Epoch = h.first
	}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		n.Usable, n.Fence = false, tidegate.FenceNone
		if n.Obs == nil {
			continue
		}
		if n.Obs.Role == tidegate.RolePrimary {
			t.settlePrimary(h, i)
		} else {
			t.settleReplica(h, n)
		}
	}
	return changed
}

// follow makes the primary's epoch the table's and reports whether it is another one than
// before, not the same better known.
func (t *Table) follow(e tidegate.Epoch, k *claimed) bool {
	if !sameEpoch(e, t.Epoch) {
		// Whoever is promoted shows what it has replayed before it takes writes.
		t.Epoch, t.Lineage, t.Shown = e, k.lineage, tidegate.At(e.Fork)
		return true
	}
	if k.told {
		t.Lineage = k.lineage
	} else { // another server, or another way to it, of which less is known
		e.Fork = t.Epoch.Fork
	}
	if e.Origin == 0 {
		e.Origin = t.Epoch.Origin
	}
	t.Epoch, t.Shown = e, t.Shown.Join(tidegate.At(e.Fork))
	return false
}

// settlePrimary says what is to be known of a node that says it is the primary.
func (t *Table) settlePrimary(h *histories, i int) {
	n := &t.Nodes[i]
	n.Epoch = h.full(n.Obs)
	switch {
	case i == t.Primary:
		n.Epoch = t.Epoch
	case n.Err != nil:
	case t.Conflict:
		n.Fence = tidegate.FenceConflict
	case n.Obs.Epoch.System != t.Epoch.System:
		n.Fence = tidegate.FenceForeign
	default:
		n.Fence = tidegate.FenceDeposed
	}
}

// settleReplica says which history a replica is on, and whether it can be used.
func (t *Table) settleReplica(h *histories, n *Node) {
	o := n.Obs
	n.Epoch = t.placed(h, n)
	b := t.Lineage.branch(n.Epoch.Line)
	if b != nil && !sameEpoch(b.Epoch, n.Epoch) {
		b = nil
	}
	switch {
	case n.Epoch.System != t.Epoch.System && t.Epoch.Known():
		n.Fence = tidegate.FenceForeign
	case !n.Epoch.Known():
		n.Fence = tidegate.FenceUnknownLine
	case t.Conflict, h.disputed(n.Epoch):
		n.Fence = tidegate.FenceConflict
	case sameEpoch(n.Epoch, t.Epoch):
		if n.Epoch = t.Epoch; t.overtakes(n) {
			n.Fence = tidegate.FenceDiverged
		}
	case b == nil && (n.Epoch.Line > t.Epoch.Line || n.Epoch.Line < t.Epoch.Line && !t.Lineage.Complete):
		n.Fence = tidegate.FenceNoHistory
	case b == nil || !b.End.Covers(o.Bound):
		n.Fence = tidegate.FenceDiverged
		if b != nil && !rules.FenceDiverged.On() {
			n.Fence, n.Epoch = tidegate.FenceNone, b.Epoch
		}
	default:
		n.Epoch = b.Epoch
	}
	n.Usable = n.Err == nil && n.Fence == tidegate.FenceNone && t.Epoch.Known()
	if n.Err != nil {
		n.Fence = tidegate.FenceNone
	}
}

// overtakes reports whether a replica has had, in its present life, what the primary did
// not have later: it follows another one, or the primary has lost what it had sent.
func (t *Table) overtakes(n *Node) bool {
	if p := t.PrimaryObs(); p != nil && n.Obs.Received < p.Sent && !p.Applied.Covers(n.Obs.Applied) && rules.FenceDiverged.On() {
		n.overtook = n.Obs.Incarnation
	}
	return n.overtook == n.Obs.Incarnation
}

// placed returns the system of a replica, its line if that is known, and what it can tell
// of that.
func (t *Table) placed(h *histories, n *Node) tidegate.Epoch {
	o := n.Obs
	e := o.Epoch
	switch {
	case e.Line != 0:
	case n.held.life == o.Incarnation && n.held.streamed == o.Streamed && !o.Streamed.IsZero() && o.Streamed.Covers(o.Applied):
		e = n.held.epoch
	case t.Epoch.Known() && e.System == t.Epoch.System && (o.LeastLine == t.Epoch.Line || !h.more):
		e.Line = t.Epoch.Line
	}
	if e.Line != 0 {
		n.held = heldLine{e, o.Incarnation, o.Streamed}
	}
	return e
}

// claimant returns the node with the best claim to be the primary, and another one whose
// claim is as good, [NoNode] where there is none. An unreachable former primary does not
// compete with a reachable one.
func (t *Table) claimant() (best, rival int) {
	best, rival = NoNode, NoNode
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if n.Obs == nil || n.Obs.Role != tidegate.RolePrimary {
			continue
		}
		if best == NoNode {
			best = i
			continue
		}
		b := &t.Nodes[best]
		better := n.Obs.Epoch.Line > b.Obs.Epoch.Line && rules.HigherLineWins.On()
		if up := n.Err == nil; up != (b.Err == nil) {
			better = up
		}
		if better {
			best = i
		}
	}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if n.Obs == nil || n.Obs.Role != tidegate.RolePrimary || (n.Err == nil) != (t.Nodes[best].Err == nil) {
			continue
		}
		// One server under two names is no rival of itself. Lines of different
		// systems say nothing about each other.
		if b := t.Nodes[best].Obs; n.Obs.Incarnation != b.Incarnation && (n.Obs.Epoch.Line == b.Epoch.Line || n.Obs.Epoch.System != b.Epoch.System) {
			rival = i
		}
	}
	return best, rival
}

// leftBehind reports whether any node is on a higher line of the primary's
// system.
func (t *Table) leftBehind(primary int) bool {
	e := t.Nodes[primary].Obs.Epoch
	for i := range t.Nodes {
		if o := t.Nodes[i].Obs; o != nil && o.Epoch.System == e.System && max(o.Epoch.Line, o.LeastLine) > e.Line {
			return true
		}
	}
	return false
}
