package freshness

import (
	"github.com/tidegatedb/tidegate"
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
	// the table's epoch.
	Usable      bool
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

// histories remembers which histories were in sight, so that a replica that
// cannot tell its line is trusted only while there was never a choice.
type histories struct {
	first tidegate.Epoch
	more  bool
}

func (h *histories) see(e tidegate.Epoch) {
	switch {
	case !e.Known():
	case !h.first.Known():
		h.first = e
	case h.first != e:
		h.more = true
	}
}

// settle derives the roles, epochs and usability of all nodes from their
// observations.
func (t *Table) settle(h *histories) {
	for i := range t.Nodes {
		if o := t.Nodes[i].Obs; o != nil {
			h.see(o.Epoch)
		}
	}
	t.Primary, t.Conflict = t.claimant()
	if p := t.Primary; p != NoNode {
		if t.Conflict || t.leftBehind(p) {
			t.Primary = NoNode
		} else if e := t.Nodes[p].Obs.Epoch; e != t.Epoch {
			t.Epoch, t.Shown = e, tidegate.Position{}
		}
	}
	if !t.Epoch.Known() && !h.more {
		// No primary has been seen yet: replicas that can tell their line and
		// agree are the only history in sight.
		t.Epoch = h.first
	}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if n.Obs == nil {
			continue
		}
		n.Epoch = n.Obs.Epoch
		if n.Epoch.Line == 0 && !h.more && n.Epoch.System == t.Epoch.System {
			n.Epoch = t.Epoch
		}
		n.Usable = n.Err == nil && n.Obs.Role == tidegate.RoleReplica && n.Epoch.Known() && n.Epoch == t.Epoch && !t.Conflict
	}
}

// claimant returns the node with the best claim to be the primary, and whether
// another one's is as good. An unreachable former primary does not compete with
// a reachable one.
func (t *Table) claimant() (best int, conflict bool) {
	best = NoNode
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
		better := n.Obs.Epoch.Line > b.Obs.Epoch.Line
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
			conflict = true
		}
	}
	return best, conflict
}

// leftBehind reports whether any node is on a higher line of the primary's
// system.
func (t *Table) leftBehind(primary int) bool {
	e := t.Nodes[primary].Obs.Epoch
	for i := range t.Nodes {
		if o := t.Nodes[i].Obs; o != nil && o.Epoch.System == e.System && o.Epoch.Line > e.Line {
			return true
		}
	}
	return false
}
