// Package check judges every answer of a run. It knows nothing of routing: it
// compares what a session was shown with what that session was shown and told
// before.
//
// # What is checked
//
// Formally, for each session, over its operations in the order it issued them,
// with acked(k) the newest version of its own key k whose write was
// acknowledged, and seen(k) the newest version of row k in its earlier answers:
//
//   - read-your-writes: an answer has version(k) >= acked(k);
//   - monotonic reads: an answer has version(k) >= seen(k); one that already
//     broke read-your-writes with the same row is not reported twice;
//   - real rows: an answer has each row that was asked for once, and
//     version(k) <= the newest version whose write had begun.
//
// Plainly: what you saved is there, what you saw does not go away, and nothing
// is made up.
//
// A write that ended in an error may or may not have happened, or may happen
// yet. It is neither required nor forbidden, until the session has seen it.
//
// What the checker does not say: that an answer is the newest there is, or that
// two sessions agree. Nobody promised either.
package check

import (
	"slices"
	"sync/atomic"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// Checker judges one run. It is safe for concurrent use by its sessions.
//
// Every row starts at version 0, and must be visible everywhere before the
// first operation: an absent row is older than any version.
type Checker struct {
	begun []atomic.Int64 // by key: the newest version whose write has begun
}

// New returns a checker for rows 0 to keys-1.
func New(keys int) *Checker {
	return &Checker{begun: make([]atomic.Int64, keys)}
}

// Session returns the state of one session, which writes the row own and no
// other. It is for one goroutine.
func (c *Checker) Session(id int, own int64) *Session {
	return &Session{c: c, id: id, own: own, seen: make([]int64, len(c.begun))}
}

// Session is what the checker holds about one session.
type Session struct {
	c     *Checker
	id    int
	own   int64
	acked int64
	seen  []int64
}

// Writing says that a write of version to the session's own row is about to be
// sent. From here on anybody may see it.
func (s *Session) Writing(version int64) {
	s.c.begun[s.own].Store(version)
}

// Wrote says that the write of version was acknowledged. A write whose outcome
// is unknown must not be told.
func (s *Session) Wrote(version int64) {
	s.acked = max(s.acked, version)
}

// Read judges an answer to a read of the keys asked, each asked once. Call it
// after the answer arrived and before the session's next operation.
func (s *Session) Read(asked []int64, rows []record.Row) []record.Violation {
	var broken []record.Violation
	report := func(p record.Promise, key, knew, got int64) {
		broken = append(broken, record.Violation{Promise: p, Session: s.id, Key: key, Knew: knew, Got: got})
	}

	// An answer is one snapshot, so every row is judged against what was known
	// before it; what it shows counts from the next read on.
	shown := make(map[int64]int64, len(asked))
	for _, r := range rows {
		if _, twice := shown[r.Key]; twice || !slices.Contains(asked, r.Key) {
			report(record.RealRows, r.Key, 0, r.Version)
			continue
		}
		shown[r.Key] = r.Version
	}
	for _, key := range asked {
		version, there := shown[key]
		if !there {
			version = record.Absent
		}
		if newest := s.c.begun[key].Load(); version > newest {
			// Not taken as seen: one made-up version must not turn every
			// honest answer that follows into a violation.
			report(record.RealRows, key, newest, version)
			continue
		}
		switch known := s.known(key); {
		case version >= known:
			s.seen[key] = version
		case key == s.own && version < s.acked:
			report(record.ReadYourWrites, key, known, version)
		default:
			report(record.MonotonicReads, key, known, version)
		}
	}
	return broken
}

// known is the oldest version of a row that the session may be shown.
func (s *Session) known(key int64) int64 {
	if key == s.own {
		return max(s.acked, s.seen[key])
	}
	return s.seen[key]
}
