package record

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Log collects the operations of one run. Each session's part is touched by
// that session alone, one operation at a time, so Add takes no lock; everything
// else may be called when the sessions have ended.
type Log struct {
	Live     Live
	sessions [][]Op

	mu       sync.Mutex
	restarts []time.Duration
	faults   []Fault
}

// NewLog returns a log for so many sessions, numbered from 0.
func NewLog(sessions int) *Log {
	return &Log{sessions: make([][]Op, sessions)}
}

// Add appends an operation to its session's history and counts it.
func (l *Log) Add(op Op) {
	l.sessions[op.Session] = append(l.sessions[op.Session], op)
	l.Live.count(&op)
}

// Sort puts one session's operations into the order in which they began. Those
// of a session whose requests overlap are added as they end.
func (l *Log) Sort(session int) {
	slices.SortFunc(l.sessions[session], func(a, b Op) int { return cmp.Compare(a.Seq, b.Seq) })
}

// Sessions returns the histories, one for each session.
func (l *Log) Sessions() [][]Op { return l.sessions }

// Restarted notes that a server was restarted, at a time that counts from the
// start of the run and is not before the last one. It may be called at any time.
func (l *Log) Restarted(at time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.restarts = append(l.restarts, at)
}

// Restarts returns the times of the restarts, in order.
func (l *Log) Restarts() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]time.Duration(nil), l.restarts...)
}

// FirstError returns the earliest operation that failed, one that was refused only if
// there is no other, or nil.
func (l *Log) FirstError() *Op {
	if op := l.first(func(op *Op) bool { return op.Err != nil && !op.Answer.Shed }); op != nil {
		return op
	}
	return l.first(func(op *Op) bool { return op.Err != nil })
}

// FirstViolation returns the earliest read that broke a promise, or nil.
func (l *Log) FirstViolation() *Op {
	return l.first(func(op *Op) bool { return len(op.Violations) > 0 })
}

func (l *Log) first(match func(*Op) bool) *Op {
	var found *Op
	for _, ops := range l.sessions {
		for i := range ops {
			if op := &ops[i]; match(op) {
				if found == nil || op.Start < found.Start {
					found = op
				}
				break
			}
		}
	}
	return found
}
