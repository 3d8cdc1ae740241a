package tidegate

import "slices"

// The bounds of what a session keeps and a token carries for one cluster. More
// than that becomes a catch-up, which costs freshness and never correctness.
const (
	// MaxSeen is the number of incarnations that a mark lists.
	MaxSeen = 4
	// MaxPending is the number of unknown outcomes that a mark lists.
	MaxPending = 4
	// MaxMarks is the number of marks in a token.
	MaxMarks = 8
	// MaxClusterName is the length in bytes of a cluster's name.
	MaxClusterName = 32
)

// Mark is what a session must see at least of one cluster, within one epoch. It
// only ever advances. It is data for tokens and adapters; the zero Mark requires
// nothing.
type Mark struct {
	// Cluster names the cluster.
	Cluster string
	// Epoch is the history that the positions and incarnations belong to.
	Epoch Epoch
	// Position is the floor for replicas: one that covers it may answer, when
	// Seen allows it too.
	Position Position
	// Shown is the part of Position that came from reads on replicas. A primary
	// makes a commit visible after it has streamed it, so it must have shown
	// this much before it answers the session.
	Shown Position
	// Seen lists the incarnations that the session read from and whose bound is
	// not yet part of Position.
	Seen []Incarnation
	// CatchUp means: must see all that was committed up to now, because the
	// outcome of a write or the session's token is not known.
	CatchUp bool
	// Primary is the primary's incarnation when CatchUp was born; zero when it
	// was not known then.
	Primary Incarnation
	// Volatile is the primary's life in which Position was handed out before it was
	// durable there: when that life ends, what Position stands for can be gone, while the
	// history grows past its number again. Zero means that Position was durable.
	Volatile Incarnation
	// Pending lists server processes whose transaction may still commit: CatchUp
	// stays open until they are known to be gone.
	Pending []uint64
	// Patient allows one causal read to wait for a replica longer than its class
	// says: the one before it went to the primary because the replicas needed
	// longer. Without it a session under such a lag would never leave the primary,
	// since each read there asks for more.
	Patient bool
}

// Clone returns a copy that shares nothing with m.
func (m Mark) Clone() Mark {
	m.Seen = slices.Clone(m.Seen)
	m.Pending = slices.Clone(m.Pending)
	return m
}

// merge joins n, of the same cluster and epoch, into m.
func (m *Mark) merge(n Mark) {
	m.Position = m.Position.Join(n.Position)
	m.Shown = m.Shown.Join(n.Shown)
	m.Seen = union(m.Seen, n.Seen)
	m.Pending = union(m.Pending, n.Pending)
	m.Patient = m.Patient || n.Patient
	m.Volatile = JoinBirth(m.Volatile, n.Volatile)
	if n.CatchUp {
		m.Primary = JoinBirth(m.Primary, n.Primary)
		m.CatchUp = true
	}
}

// union appends to a what b lists and a does not.
func union[E comparable](a, b []E) []E {
	if len(a) == 0 {
		a = slices.Grow(a, len(b))
	}
	for _, e := range b {
		if !slices.Contains(a, e) {
			a = append(a, e)
		}
	}
	return a
}

// noPrimary is a birth that no primary matches.
const noPrimary = ^Incarnation(0)

// JoinBirth joins the primary's lives under which two duties of one epoch, or two
// positions that were not durable, arose; zero is none. Two different ones mean that at
// least one of them is over, and with it possibly what it had acknowledged: no look at
// either settles both.
func JoinBirth(a, b Incarnation) Incarnation {
	switch {
	case a == 0 || a == b:
		return b
	case b == 0:
		return a
	default:
		return noPrimary
	}
}

// mergeMarks joins marks of the same cluster and epoch and keeps different
// epochs side by side: only somebody who sees the cluster can judge them. What
// it adds shares nothing with more and repeats nothing, as a token must not.
func mergeMarks(into []Mark, more []Mark) []Mark {
next:
	for _, n := range more {
		for i := range into {
			if into[i].Cluster == n.Cluster && into[i].Epoch == n.Epoch {
				into[i].merge(n)
				continue next
			}
		}
		into = append(into, Mark{Cluster: n.Cluster, Epoch: n.Epoch})
		into[len(into)-1].merge(n)
	}
	return into
}
