// Package check judges every answer of a run. It knows nothing of routing: it
// compares what a session was shown with what that session was shown and told
// before.
//
// # What is checked
//
// Formally, for each session and each of its reads, with acked(k) the newest
// version of its own key k whose write was acknowledged before the read began,
// seen(k) the newest version of row k in answers that it had by then, and told(k)
// the version of row k that an event told of which the read brought along:
//
//   - read-your-writes: an answer has version(k) >= acked(k);
//   - monotonic reads: an answer has version(k) >= seen(k); one that already
//     broke read-your-writes with the same row is not reported twice;
//   - reads after events: an answer has version(k) >= told(k); one that already
//     broke another promise with the same row is not reported twice;
//   - real rows: an answer has each row that was asked for once, and
//     version(k) <= the newest version whose write had begun.
//
// Plainly: what you saved is there, what you saw does not go away, what made you
// look is to be seen, and nothing is made up.
//
// Requests of one session may overlap. What arrived after a read had begun is not
// required of that read, and counts for those that begin later, whatever the
// order in which the answers come.
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
// other. It is for one goroutine, or for several that take turns.
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

// Required is what one read must show, by what its session knew when it began.
type Required struct {
	asked        []int64
	known, acked []int64      // by the place in asked
	told         []record.Row // by events
}

// Begin says that a read of the keys is about to be sent, each asked once. The
// rows told are those that events told of which the read brings along; a row that
// is not asked for requires nothing.
func (s *Session) Begin(asked []int64, told ...record.Row) Required {
	q := Required{asked: asked, told: told, known: make([]int64, len(asked)), acked: make([]int64, len(asked))}
	for i, key := range asked {
		q.known[i] = s.seen[key]
		if key == s.own {
			q.acked[i] = s.acked
			q.known[i] = max(s.acked, s.seen[key])
		}
	}
	return q
}

// BeginRelaxed says that a read of the keys is about to be sent that may show less
// than the session knows. What it shows counts for those that follow.
func (s *Session) BeginRelaxed(asked []int64) Required {
	return Required{asked: asked, known: make([]int64, len(asked)), acked: make([]int64, len(asked))}
}

// Read judges an answer to a read that nothing overlapped. Call it after the
// answer arrived and before the session's next operation.
func (s *Session) Read(asked []int64, rows []record.Row) []record.Violation {
	return s.End(s.Begin(asked), rows)
}

// End judges the answer to a read. Call it when the answer has arrived.
func (s *Session) End(q Required, rows []record.Row) []record.Violation {
	asked := q.asked
	var broken []record.Violation
	report := func(p record.Promise, key, knew, got int64) {
		broken = append(broken, record.Violation{Promise: p, Session: s.id, Key: key, Knew: knew, Got: got})
	}

	// An answer is one snapshot, so every row is judged against what was known
	// before it; what it shows counts for the reads that begin from now on.
	shown := make(map[int64]int64, len(asked))
	for _, r := range rows {
		if _, twice := shown[r.Key]; twice || !slices.Contains(asked, r.Key) {
			report(record.RealRows, r.Key, 0, r.Version)
			continue
		}
		shown[r.Key] = r.Version
	}
	for i, key := range asked {
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
		// An answer that arrived meanwhile may have shown more.
		s.seen[key] = max(s.seen[key], version)
		switch known, told := q.known[i], q.toldOf(key); {
		case key == s.own && version < q.acked[i]:
			report(record.ReadYourWrites, key, known, version)
		case version < known:
			report(record.MonotonicReads, key, known, version)
		case version < told:
			report(record.ReadsAfterEvents, key, told, version)
		}
	}
	return broken
}

// toldOf is the version of a row that events told of; 0 when they did not.
func (q Required) toldOf(key int64) (version int64) {
	for _, r := range q.told {
		if r.Key == key {
			version = max(version, r.Version)
		}
	}
	return version
}
