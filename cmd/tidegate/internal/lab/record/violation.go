package record

import "fmt"

// Promise is one of the things that a read must not do.
type Promise uint8

// The promises that the lab checks on every read.
const (
	// ReadYourWrites: a session sees its last acknowledged write.
	ReadYourWrites Promise = iota
	// MonotonicReads: a session never sees a row older than it has seen it.
	MonotonicReads
	// ReadsAfterEvents: a read that an event caused sees what the event tells of.
	ReadsAfterEvents
	// WithinBudget: a relaxed read shows what was acknowledged longer ago than its
	// budget, unless its answer is marked stale.
	WithinBudget
	// WithinBound: a read shows what was acknowledged longer ago than the age that
	// the strategy says its answer has at most.
	WithinBound
	// RealRows: an answer holds each row that was asked for once, and only
	// versions that somebody has written. No routing can break this; a server,
	// a driver or the lab itself can, and then no count means anything.
	RealRows
)

func (p Promise) String() string {
	switch p {
	case ReadYourWrites:
		return "read-your-writes"
	case MonotonicReads:
		return "monotonic reads"
	case ReadsAfterEvents:
		return "reads after events"
	case WithinBudget:
		return "budget"
	case WithinBound:
		return "proven age"
	default:
		return "real rows"
	}
}

// Absent stands for the version of a row that an answer lacks.
const Absent = -1

// Violation is one row of one answer that broke a promise.
type Violation struct {
	Promise Promise
	Session int
	Key     int64
	// Knew is the version that the session knew (for RealRows the newest that
	// can exist), Got the one in the answer or Absent.
	Knew, Got int64
}

func (v Violation) String() string {
	got := fmt.Sprintf("got version %d", v.Got)
	if v.Got == Absent {
		got = "the row was absent"
	}
	return fmt.Sprintf("%s: session %d, row %d: knew version %d, %s", v.Promise, v.Session, v.Key, v.Knew, got)
}
