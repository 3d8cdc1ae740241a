package check_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/check"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// flight is a read of session 0 that is under way. It asks for rows 0 to 2.
type flight struct {
	s *check.Session
	q check.Required
}

func fly(s *check.Session, told ...record.Row) flight {
	return flight{s, s.Begin([]int64{0, 1, 2}, told...)}
}

// lands judges the answer, with the versions of rows 0, 1 and 2.
func (f flight) lands(versions ...int64) []record.Promise {
	var rows []record.Row
	for key, v := range versions {
		rows = append(rows, record.Row{Key: int64(key), Version: v})
	}
	return promises(f.s.End(f.q, rows))
}

// What counts is what had arrived when a read began.
func TestOverlappingReads(t *testing.T) {
	t.Parallel()
	const rww, mono = record.ReadYourWrites, record.MonotonicReads
	for name, c := range map[string]struct {
		story func(s *check.Session) []record.Promise
		want  []record.Promise
	}{
		"a write that is acknowledged meanwhile is not required": {func(s *check.Session) []record.Promise {
			f := fly(s)
			s.Writing(1)
			s.Wrote(1)
			return f.lands(0, 0, 0)
		}, nil},
		"a write that was acknowledged before is": {func(s *check.Session) []record.Promise {
			s.Writing(1)
			s.Wrote(1)
			f := fly(s)
			s.Writing(2)
			s.Wrote(2)
			return f.lands(0, 0, 0)
		}, []record.Promise{rww}},
		"an answer that came meanwhile is not required": {func(s *check.Session) []record.Promise {
			s.Writing(1)
			f, other := fly(s), fly(s)
			other.lands(1, 0, 0)
			return f.lands(0, 0, 0)
		}, nil},
		"an answer that came before is": {func(s *check.Session) []record.Promise {
			s.Writing(1)
			fly(s).lands(1, 0, 0)
			return fly(s).lands(0, 0, 0)
		}, []record.Promise{mono}},
		"an old answer takes nothing back": {func(s *check.Session) []record.Promise {
			s.Writing(1)
			f, other := fly(s), fly(s)
			other.lands(1, 0, 0)
			f.lands(0, 0, 0)
			return fly(s).lands(0, 0, 0)
		}, []record.Promise{mono}},
		"a write's acknowledgement survives an old answer": {func(s *check.Session) []record.Promise {
			f := fly(s)
			s.Writing(1)
			s.Wrote(1)
			f.lands(0, 0, 0)
			return fly(s).lands(0, 0, 0)
		}, []record.Promise{rww}},
	} {
		if got := c.story(check.New(3).Session(0, 0)); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// A read because of an event sees what the event tells of.
func TestReadsAfterEvents(t *testing.T) {
	t.Parallel()
	checker := check.New(3)
	s, writer := checker.Session(0, 0), checker.Session(1, 1)
	writer.Writing(1)
	writer.Writing(2)
	told := record.Row{Key: 1, Version: 2}
	for i, c := range []struct {
		told     []record.Row
		versions []int64
		want     []record.Promise
	}{
		{nil, []int64{0, 0, 0}, nil},
		{[]record.Row{told}, []int64{0, 2, 0}, nil},
		{[]record.Row{told}, []int64{0, 1, 0}, []record.Promise{record.MonotonicReads}}, // it was seen by now, too
		{[]record.Row{{Key: 2, Version: 0}}, []int64{0, 2, 0}, nil},
		{[]record.Row{{Key: 9, Version: 5}}, []int64{0, 2, 0}, nil}, // is not asked for
	} {
		if got := fly(s, c.told...).lands(c.versions...); !slices.Equal(got, c.want) {
			t.Errorf("step %d: got %v, want %v", i, got, c.want)
		}
	}
	other := checker.Session(2, 2)
	if got := fly(other, told).lands(0, 1, 0); !slices.Equal(got, []record.Promise{record.ReadsAfterEvents}) {
		t.Errorf("an event that was not heeded: %v", got)
	}
	// Nothing is required of a read that did not bring the event along.
	if got := fly(other).lands(0, 1, 0); got != nil {
		t.Errorf("the read after it: %v", got)
	}
	v := other.End(other.Begin([]int64{1}, told), []record.Row{{Key: 1, Version: 1}})
	if len(v) != 1 || v[0] != (record.Violation{Promise: record.ReadsAfterEvents, Session: 2, Key: 1, Knew: 2, Got: 1}) {
		t.Errorf("got %v", v)
	}
}

// overlap lets reads of a history begin before some of what its session does
// before them.
func (h history) overlap(r *rand.Rand) history {
	c := h.clone()
	for i := range c.steps {
		if c.steps[i].what == read {
			c.steps[i].since = i - r.IntN(min(i, 12)+1)
		}
	}
	return c
}

// Whole histories of sessions whose reads overlap, against the definitions.
func TestOverlapsAgreeWithTheDefinitions(t *testing.T) {
	t.Parallel()
	broken, excused := 0, 0
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 7))
		h := honest(r, 5, 80)
		for range 4 {
			if i := r.IntN(len(h.steps)); h.steps[i].what == read {
				mutations[r.IntN(len(mutations))].make(r, &h, i)
			}
		}
		strict := h.oracle()
		h = h.overlap(r)
		want := h.oracle()
		for i, found := range h.judge() {
			if got := promises(found); !slices.Equal(got, want[i]) {
				t.Fatalf("seed %d, step %d (%v) since %d: the checker says %v, the definitions %v", seed, i, h.steps[i], h.steps[i].since, found, want[i])
			}
			if len(want[i]) > 0 {
				broken++
			} else if len(strict[i]) > 0 {
				excused++
			}
		}
	}
	if broken < seeds/2 || excused < seeds/20 {
		t.Errorf("%d answers were bad, and %d only if nothing had overlapped", broken, excused)
	}
}
