package fake

import (
	"time"

	"github.com/tidegatedb/tidegate/engine"
)

// Options configure a [Gate].
type Options struct {
	// Core configures the core; the gate sets its nodes. An empty cluster name
	// means "fake".
	Core engine.Config
	// Weights are the nodes' weights. Nil means all the same.
	Weights []int
	// Tags are the nodes' tags, and Dedicated says which of them are dedicated; nil is
	// none.
	Tags      [][]string
	Dedicated []bool
	// Delay, if not nil, says how long one way of an operation takes.
	Delay func(n *Node, op Op) time.Duration
	// Pick, if not nil, picks among n idle connections. Nil means the last used.
	Pick func(n int) int
	// ConnLife is how long a connection is used. Zero means for ever.
	ConnLife time.Duration
	// Probed, if not nil, is told of each probe's answer when it arrives, and when
	// the node was asked. The observation is not to be kept.
	Probed func(n *Node, asked time.Time, o *engine.Observation, err error)
	// Breaks, if not nil, says whether the connection breaks now, behind what the
	// operation did on the node and before its answer arrives.
	Breaks func(n *Node, op Op) bool
	// Mistakes are what the adapter does wrong.
	Mistakes Mistakes
}

// Mistakes are an adapter's mistakes, for tests that show that they are noticed.
type Mistakes struct {
	// CaptureBeforeCommit takes a write's position inside its transaction.
	CaptureBeforeCommit bool
	// BoundIsApplied forgets that a replica shows more than it has published.
	BoundIsApplied bool
	// PendingAfterPosition asks for the fate of processes behind the position.
	PendingAfterPosition bool
	// CeilingIsFlushed forgets commits that are shown before they are durable.
	CeilingIsFlushed bool
	// SaysDurable says of each position that it was durable.
	SaysDurable bool
	// SkipsAdmit uses a connection whatever is known of it.
	SkipsAdmit bool
	// ForgetsPosition does not tell the position of a read on the primary.
	ForgetsPosition bool
	// ForgetsUnknown does not tell of a write whose outcome is not known.
	ForgetsUnknown bool
	// ForgetsLost does not tell of a read on the primary whose position was lost.
	ForgetsLost bool
	// EndsEarly takes a connection that is held for one that is not read any more
	// behind its first statement.
	EndsEarly bool
	// Leaks does not close what a failed start has begun.
	Leaks bool
}
