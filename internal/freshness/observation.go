package freshness

import (
	"context"

	"github.com/tidegatedb/tidegate"
)

// Observation is what one probe of one node said. It is immutable once
// published.
type Observation struct {
	// Sent and Received are monotonic times of this process, in nanoseconds
	// (package mono). What the probe says was true at some moment between them,
	// so "after Sent" is the only safe reading for lower bounds and "before
	// Sent" for upper bounds.
	Sent, Received int64
	// Server identifies the server whatever its life: system, address, port.
	Server uint64
	// Incarnation identifies the life of the server that answered.
	Incarnation tidegate.Incarnation
	// Role is what the node said it is.
	Role tidegate.Role
	// Epoch is the node's history. Its Line is zero where the node could not tell; the table
	// then says what follows. Fork and Origin are a replica's to tell, if it can; of a
	// primary the table knows them from what follows below.
	Epoch tidegate.Epoch
	// Applied is a lower bound of what reads on this incarnation that begin
	// after Sent show. On a primary it is the durable position: what replicas
	// can have received at all.
	Applied tidegate.Position
	// Bound is an upper bound of what reads on this incarnation that ended
	// before Sent can have shown. On a primary it bounds what any replica of
	// the same epoch can have shown before Sent.
	Bound tidegate.Position
	// Loose tells that a strict Bound may lie beyond all there is: nothing is known
	// to follow. It would be out of reach until the next write, so where the
	// primary can be asked for a bound, that one is waited for.
	Loose bool
	// Ceiling is set on a primary only: it bounds all that was committed and
	// visible there before Sent. It is above Applied where commits may be
	// acknowledged before they are durable.
	Ceiling tidegate.Position
	// Head is set on a primary only: no position that was handed out before Sent, to
	// whomever, is beyond its number. Zero means that the node could not tell.
	Head tidegate.Position
	// Lineage is set on a primary only, by engines that can tell it: the lines before its
	// own, with System, Line and End. Nil means that the node could not tell.
	Lineage *Lineage
	// Replayed is set on a primary only: where its replay ended, if it was a replica or
	// recovered from a crash earlier in this life. Zero means that it was not, or that
	// the node could not tell.
	Replayed tidegate.Position
	// Started names the life of the server process, however the server is reached; unlike
	// Incarnation it is the same for all that reach the server by different addresses.
	Started uint64
	// Streamed is set on a replica only: where what it has been sent ends. While it stays
	// the same and is not behind Applied, the replica is on the line that it was on. Zero
	// means that the node could not tell.
	Streamed tidegate.Position
	// LeastLine is set on a replica only: a line that it has reached, if Epoch.Line is not
	// known. Zero means that the node could not tell.
	LeastLine uint64
	// Running lists those of the probe's Pending processes that still run.
	Running []uint64
	// Asked is the probe's Pending list.
	Asked []uint64
}

// Settled reports whether the observation proves that the server process is
// gone: it was asked about it and does not list it as running.
func (o *Observation) Settled(process uint64) bool {
	asked := false
	for _, p := range o.Asked {
		asked = asked || p == process
	}
	for _, p := range o.Running {
		if p == process {
			return false
		}
	}
	return asked
}

// Source is how the watcher asks one node. The watcher calls Probe from one
// goroutine at a time.
type Source interface {
	// Probe asks the node. It reports whether the processes in pending still
	// run, and must sample that BEFORE the position: a process that is gone
	// then has committed below it or not at all. It sets all fields of the
	// observation but Sent and Received. An answer that leaves something
	// unknown is an error, not a zero.
	Probe(ctx context.Context, pending []uint64) (Observation, error)
}

// A Prover is a Source of an engine whose primary can make a commit visible
// after it has streamed it to replicas, so that a replica can be ahead of what
// the primary shows. Its methods are called from one goroutine, which is not the
// one that calls Probe.
type Prover interface {
	// Snapshot, asked of the primary, returns what it shows now.
	Snapshot(ctx context.Context) (Snapshot, error)
	// Committed, asked of a replica of the same epoch, returns a position that
	// it has applied and the transactions up to it that are committed there and
	// not part of the snapshot.
	Committed(ctx context.Context, s Snapshot) (tidegate.Position, Transactions, error)
	// Shows, asked of the primary, reports whether it shows all of them now.
	Shows(ctx context.Context, t Transactions) (bool, error)
	// Open, asked of the primary, returns its durable position and the
	// transactions that were open when it was sampled or later.
	Open(ctx context.Context) (tidegate.Position, Transactions, error)
	// Ended, asked of the primary, reports whether all of them have ended.
	Ended(ctx context.Context, t Transactions) (bool, error)
}

// Snapshot is an engine's description of what a primary shows.
type Snapshot any

// Transactions is an engine's list of transactions. Nil is the empty list.
type Transactions any
