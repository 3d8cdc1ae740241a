package tidegate

import (
	"context"
	"fmt"
	"time"
)

// Hook is told what is decided and what becomes known of a cluster. Metrics, logs and
// traces hang off it. Functions that are nil are not called; the zero Hook does
// nothing.
//
// They are called where it happens, so they must return quickly, must not call
// the database that calls them, and must be safe for concurrent use.
type Hook struct {
	// Decided is called for every [Decision] on a read, with the read's context, in
	// the goroutine of the read and before its statement is sent. A read whose node
	// failed before the first row has one for each attempt.
	Decided func(context.Context, Decision)
	// Probed is called for the result of every look at a node, one at a time.
	Probed func(Probe)
	// Changed is called when something else than a position has changed, one at a
	// time and in order.
	Changed func(Change)
	// Suspected is called for a [Suspect] before its statement is sent, in its goroutine,
	// if the database's configuration asks for it.
	Suspected func(context.Context, Suspect)
}

// Suspect is a write of a session that has read from a replica before. If the write is
// based on that read, it is based on what may not be the newest state any more, and
// two of its kind can undo each other: the read belongs into the write's transaction,
// or into a strong class. Nobody can see from outside whether it is.
type Suspect struct {
	Cluster string
	// Read and Write say where the application has read and writes, as "function
	// (file:line)".
	Read, Write string
}

// Probe is the result of one look at a node.
type Probe struct {
	Cluster, Node string
	// Err is why the node did not answer. What follows it is zero then, but for
	// Took.
	Err error
	// Took is the time from the question to the answer or to the failure.
	Took time.Duration
	// Role is the node's role.
	Role Role
	// Usable tells that reads may go there: a replica of the cluster's history.
	Usable bool
	// Applied is what the node has applied: reads show at least that.
	Applied Position
	// Lag is how far, in the engine's unit (bytes of log for PostgreSQL), a usable
	// replica was behind what the primary was last known to have, when LagKnown
	// says so. It does not grow while nothing is written.
	Lag      uint64
	LagKnown bool
	// Staleness is how old a usable replica's state can be at most, when
	// StalenessKnown says so. It compares no clocks: it counts from the moment at
	// which the primary was asked for a position that the replica has.
	Staleness      time.Duration
	StalenessKnown bool
}

// ChangeKind says what has changed.
type ChangeKind uint8

// The kinds of a [Change].
const (
	// ChangeNone is the zero ChangeKind: nothing.
	ChangeNone ChangeKind = iota
	// NodeAdded: the node is watched from now on.
	NodeAdded
	// NodeRemoved: the node is not used any more.
	NodeRemoved
	// NodeFound: the node has answered for the first time; its Role says as what.
	NodeFound
	// NodeFailing: the node does not answer probes any more; Err says why.
	NodeFailing
	// NodeAnswering: a node that had answered, and then did not, does so again.
	NodeAnswering
	// RoleChanged: the node was Before and is Role now.
	RoleChanged
	// NodeRestarted: the node began a new life; what it showed before proves
	// nothing. It follows RoleChanged where both happened between two looks.
	NodeRestarted
	// HistoryChanged: the cluster goes on in another history, Epoch, after a
	// failover or a restore.
	HistoryChanged
	// PrimariesConflict: more than one node of one history says that it is the
	// primary. Writes are refused.
	PrimariesConflict
	// ConflictOver: there is one primary again.
	ConflictOver
	// RolloutChanged: reads are routed by another [Rollout] from now on.
	RolloutChanged
	// NodeEjected: reads leave the node out, for the reason in Ejection.
	NodeEjected
	// NodeReturned: reads use the node again, a few at first.
	NodeReturned
	// FloorRaised: replicas must have Floor for any read of this process from now on.
	FloorRaised
	// FloorDropped: something of what replicas had to have for any read belongs to another
	// history than Epoch; Floor is what is left.
	FloorDropped
	// FallbacksHigh: more than the configured share of the reads wants the primary for want
	// of a replica, in Share; classes with [ShedFirst] go without it.
	FallbacksHigh
	// FallbacksNormal: it is less than half of that share again.
	FallbacksNormal
	// NodeSlow: reads go around the node as long as another has what they need, because it
	// answers later than others: in the middle reads took Took there.
	NodeSlow
	// NodeQuick: it answers as others do again.
	NodeQuick
	// NodeFenced: the node answers and is not used, for the reason in Fence.
	NodeFenced
	// NodeUnfenced: nothing speaks against the node any more, or it does not answer.
	NodeUnfenced
)

// EjectionReason says why a replica is left out.
type EjectionReason uint8

// The reasons of an ejection.
const (
	// EjectionNone: it is not left out.
	EjectionNone EjectionReason = iota
	// EjectionLag: its state is older than LongestLag, or it is further behind than MostLag.
	EjectionLag
	// EjectionFailing: it did not answer probes for a while, and has not been well for
	// long enough since.
	EjectionFailing
)

// String returns "none", "lag" or "failing".
func (r EjectionReason) String() string {
	switch r {
	case EjectionLag:
		return "lag"
	case EjectionFailing:
		return "failing"
	default:
		return "none"
	}
}

var changeNames = [...]string{
	"none", "node-added", "node-removed", "node-found", "node-failing", "node-answering", "role-changed", "node-restarted",
	"history-changed", "primaries-conflict", "conflict-over", "rollout-changed", "node-ejected", "node-returned", "floor-raised", "floor-dropped",
	"fallbacks-high", "fallbacks-normal", "node-slow", "node-quick", "node-fenced", "node-unfenced",
}

// String returns the kind as a word for logs and metrics.
func (k ChangeKind) String() string {
	if int(k) < len(changeNames) {
		return changeNames[k]
	}
	return fmt.Sprintf("change-%d", uint8(k))
}

// Change is something about a cluster that is not a position and has changed.
type Change struct {
	Kind    ChangeKind
	Cluster string
	// Node names whose change it is, "" when it is the cluster's.
	Node string
	// Role is the node's role now, Before what it was.
	Role, Before Role
	// Epoch is the cluster's history now, with HistoryChanged, PrimariesConflict,
	// ConflictOver, FloorRaised and FloorDropped; EpochBefore is what it was, with HistoryChanged.
	Epoch, EpochBefore Epoch
	// Rollout is how reads are routed now, with RolloutChanged.
	Rollout Rollout
	// Floor is what every replica must have, with FloorRaised and FloorDropped.
	Floor Position
	// Share is the part of the reads that wanted the primary for want of a replica, of
	// those that replicas are there for, with FallbacksHigh and FallbacksNormal.
	Share float64
	// Took is how long a read takes on the node, the median of those timed lately, with
	// NodeSlow and NodeQuick.
	Took time.Duration
	// Ejection says why the node is left out, with NodeEjected.
	Ejection EjectionReason
	// Fence says why the node is not used, with NodeFenced.
	Fence Fence
	// Err says why, with NodeFailing.
	Err error
}
