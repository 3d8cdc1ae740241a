// Package record holds what happened in a run of the lab: one [Op] for each
// read and write, in the order in which its session began them. Every other
// room of the lab either writes these records or judges them.
package record

import "time"

// Kind says whether an operation read or wrote.
type Kind uint8

// The kinds of operation.
const (
	Read Kind = iota
	Write
)

func (k Kind) String() string {
	if k == Write {
		return "write"
	}
	return "read"
}

// Row is one row of the lab's table. A key is written by one session only and
// its versions strictly rise from 0, so a version identifies a write.
type Row struct {
	Key     int64
	Version int64
}

// Answer is what a strategy gives back for one read.
type Answer struct {
	Rows []Row
	// Node names the server that answered, for messages only.
	Node string
	// Replica says that a replica answered, not the primary.
	Replica bool
	// Waited says that the read was held until a node had caught up.
	Waited bool
	// Unproven says that the strategy itself could not prove the answer fresh.
	Unproven bool
	// MarkedStale says that the strategy declared the answer to be stale.
	MarkedStale bool
	// Fallback says that the primary answered because no replica could.
	Fallback bool
	// Shed says that the strategy refused the read to protect the primary. It
	// comes with an error.
	Shed bool
	// Reason is the strategy's word for why the read went where it went, empty
	// for one that has none.
	Reason string
	// NotFresh says that a read that was refused was so because no node has what it
	// asks for, and not for want of room. Typed says that the error says so by its type.
	NotFresh, Typed bool
	// Queued is how long the read waited for room on the primary.
	Queued time.Duration
	// Bound is how old the answer can be at most, as the strategy says, if Bounded.
	Bound   time.Duration
	Bounded bool
	// Retries is how many nodes had failed before this one answered.
	Retries int
	// Begun says that the read failed after it had delivered a row. It comes with
	// an error.
	Begun bool
}

// Op is the record of one operation. Times count from the start of the run.
type Op struct {
	Session  int
	Seq      int // its place among those of its session, as they began
	Instance int
	Kind     Kind

	// Due is when the operation should have begun, Start when it was handed to
	// the strategy. The difference is the time it queued behind its session's
	// earlier operations; it is no part of the latency.
	Due, Start, End time.Duration

	// Key and Version are what a write wrote.
	Key, Version int64

	// Asked are the keys that a read asked for, each once. Strong says that the
	// answer had to be the newest.
	Asked  []int64
	Strong bool
	// Budget is how old the answer may be; nil means that it is no relaxed read.
	Budget *Budget
	// Deadline is how long the operation was given.
	Deadline time.Duration
	Answer   Answer

	// AfterWrite says that this is the session's first read since its last
	// acknowledged write; SinceWrite is then the time from the acknowledgement
	// to Start, and AtOnce says that nothing came between them.
	AfterWrite bool
	SinceWrite time.Duration
	AtOnce     bool

	// Told is the row that an event told of which made the session read; nil for
	// any other operation.
	Told *Row
	// Overlaps says that the session had another request in flight when this one
	// began.
	Overlaps bool
	// Dropped is how many tokens the session's client had lost right before.
	Dropped int

	// Err is why the operation has no result. The outcome of a write that
	// failed is unknown: it may still appear.
	Err error

	// Violations are the promises that a read's answer broke.
	Violations []Violation
}

// OK reports whether the operation was acknowledged or answered.
func (o *Op) OK() bool { return o.Err == nil }

// Latency is the time that the strategy took.
func (o *Op) Latency() time.Duration { return o.End - o.Start }

// Broke reports whether the answer broke the promise at least once.
func (o *Op) Broke(p Promise) bool {
	for _, v := range o.Violations {
		if v.Promise == p {
			return true
		}
	}
	return false
}
