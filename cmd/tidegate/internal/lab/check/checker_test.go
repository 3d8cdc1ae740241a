package check_test

import (
	"testing"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/check"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// In the stories that follow, session s writes row s, and reads rows 0 to 2.

// event is one thing that a session does.
type event func(t *testing.T, sessions []*check.Session) []record.Violation

// sends begins a write whose outcome the session never learns; writes is one
// that is acknowledged.
func sends(session int, version int64) event {
	return func(_ *testing.T, s []*check.Session) []record.Violation {
		s[session].Writing(version)
		return nil
	}
}

func writes(session int, version int64) event {
	return func(_ *testing.T, s []*check.Session) []record.Violation {
		s[session].Writing(version)
		s[session].Wrote(version)
		return nil
	}
}

// reads is an answer with the versions of rows 0, 1 and 2. Absent leaves a row
// out.
func reads(session int, versions ...int64) event {
	var rows []record.Row
	for key, v := range versions {
		if v != record.Absent {
			rows = append(rows, record.Row{Key: int64(key), Version: v})
		}
	}
	return answers(session, rows...)
}

func answers(session int, rows ...record.Row) event {
	return func(_ *testing.T, s []*check.Session) []record.Violation {
		return s[session].Read([]int64{0, 1, 2}, rows)
	}
}

// play runs a story and returns the violations of its last event; the others
// must have none.
func play(t *testing.T, story []event) []record.Violation {
	t.Helper()
	checker := check.New(3)
	var sessions []*check.Session
	for id := range 3 {
		sessions = append(sessions, checker.Session(id, int64(id)))
	}
	var got []record.Violation
	for i, e := range story {
		got = e(t, sessions)
		if len(got) > 0 && i < len(story)-1 {
			t.Fatalf("event %d of the story broke a promise already: %v", i, got)
		}
	}
	return got
}

func TestValidStories(t *testing.T) {
	t.Parallel()
	for name, story := range map[string][]event{
		"nothing was written":                       {reads(0, 0, 0, 0)},
		"own write is there":                        {writes(0, 1), reads(0, 1, 0, 0)},
		"own write is there for good":               {writes(0, 1), reads(0, 1, 0, 0), reads(0, 1, 0, 0)},
		"own newer write is there":                  {writes(0, 1), writes(0, 2), reads(0, 2, 0, 0)},
		"another's write is not there yet":          {writes(1, 1), reads(0, 0, 0, 0)},
		"another's write appears":                   {writes(1, 1), reads(0, 0, 0, 0), reads(0, 0, 1, 0)},
		"another's writes skip one":                 {writes(1, 1), writes(1, 2), reads(0, 0, 2, 0)},
		"two sessions disagree":                     {writes(2, 1), reads(0, 0, 0, 1), reads(1, 0, 0, 0)},
		"an older row beside a newer one":           {writes(1, 1), writes(2, 1), reads(0, 0, 0, 1), reads(0, 0, 1, 1)},
		"a write in flight is seen by another":      {sends(1, 1), reads(0, 0, 1, 0)},
		"unknown outcome: never appears":            {sends(0, 1), reads(0, 0, 0, 0), reads(0, 0, 0, 0)},
		"unknown outcome: appears at once":          {sends(0, 1), reads(0, 1, 0, 0)},
		"unknown outcome: appears later":            {sends(0, 1), reads(0, 0, 0, 0), reads(0, 1, 0, 0)},
		"unknown outcome: appears to another first": {sends(0, 1), reads(1, 1, 0, 0), reads(0, 0, 0, 0)},
		"unknown outcome: overtaken by the next":    {sends(0, 1), writes(0, 2), reads(0, 2, 0, 0)},
		"unknown outcome: after an own write":       {writes(0, 1), sends(0, 2), reads(0, 1, 0, 0), reads(0, 2, 0, 0)},
		"rows in another order": {
			writes(2, 1), answers(0, record.Row{Key: 2, Version: 1}, record.Row{Key: 0}, record.Row{Key: 1}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := play(t, story); len(got) > 0 {
				t.Errorf("violations in a valid story: %v", got)
			}
		})
	}
}

func TestPlantedViolations(t *testing.T) {
	t.Parallel()
	const stale, backwards, unreal = record.ReadYourWrites, record.MonotonicReads, record.RealRows
	for name, c := range map[string]struct {
		story []event
		want  record.Violation
	}{
		"own write is missing": {
			[]event{writes(0, 1), reads(0, 0, 0, 0)},
			record.Violation{Promise: stale, Knew: 1, Got: 0},
		},
		"own newest write is missing": {
			[]event{writes(0, 1), writes(0, 2), reads(0, 1, 0, 0)},
			record.Violation{Promise: stale, Knew: 2, Got: 1},
		},
		"own write is missing, in a session that is not the first": {
			[]event{writes(2, 1), reads(2, 0, 0, 0)},
			record.Violation{Promise: stale, Session: 2, Key: 2, Knew: 1, Got: 0},
		},
		"own write vanishes after it was seen": {
			[]event{writes(0, 1), reads(0, 1, 0, 0), reads(0, 0, 0, 0)},
			record.Violation{Promise: stale, Knew: 1, Got: 0},
		},
		"own write is missing long after": {
			[]event{writes(0, 1), reads(0, 1, 0, 0), writes(1, 1), reads(0, 1, 1, 0), reads(0, 0, 1, 0)},
			record.Violation{Promise: stale, Knew: 1, Got: 0},
		},
		"own row is gone": {
			[]event{writes(0, 1), reads(0, record.Absent, 0, 0)},
			record.Violation{Promise: stale, Knew: 1, Got: record.Absent},
		},
		"own row is gone before anything was written": {
			[]event{reads(0, record.Absent, 0, 0)},
			record.Violation{Promise: stale, Knew: 0, Got: record.Absent},
		},
		"own write hidden behind one of unknown outcome": {
			[]event{writes(0, 1), sends(0, 2), reads(0, 0, 0, 0)},
			record.Violation{Promise: stale, Knew: 1, Got: 0},
		},
		"own write after one of unknown outcome": {
			[]event{sends(0, 1), writes(0, 2), reads(0, 1, 0, 0)},
			record.Violation{Promise: stale, Knew: 2, Got: 1},
		},
		"write of unknown outcome vanishes after it was seen": {
			[]event{sends(0, 1), reads(0, 1, 0, 0), reads(0, 0, 0, 0)},
			record.Violation{Promise: backwards, Knew: 1, Got: 0},
		},
		"write of unknown outcome vanishes, an acknowledged one stays": {
			[]event{writes(0, 1), sends(0, 2), reads(0, 2, 0, 0), reads(0, 1, 0, 0)},
			record.Violation{Promise: backwards, Knew: 2, Got: 1},
		},
		"another's row goes back": {
			[]event{writes(1, 1), reads(0, 0, 1, 0), reads(0, 0, 0, 0)},
			record.Violation{Promise: backwards, Key: 1, Knew: 1, Got: 0},
		},
		"another's row goes back, but not to the start": {
			[]event{writes(1, 1), writes(1, 2), reads(0, 0, 2, 0), reads(0, 0, 1, 0)},
			record.Violation{Promise: backwards, Key: 1, Knew: 2, Got: 1},
		},
		"another's row goes back after a while": {
			[]event{writes(1, 1), reads(0, 0, 1, 0), writes(0, 1), reads(0, 1, 1, 0), reads(0, 1, 0, 0)},
			record.Violation{Promise: backwards, Key: 1, Knew: 1, Got: 0},
		},
		"another's write in flight goes back": {
			[]event{sends(1, 1), reads(0, 0, 1, 0), reads(0, 0, 0, 0)},
			record.Violation{Promise: backwards, Key: 1, Knew: 1, Got: 0},
		},
		"another's row goes back while a third one advances": {
			[]event{writes(1, 1), writes(2, 1), reads(0, 0, 1, 0), reads(0, 0, 0, 1)},
			record.Violation{Promise: backwards, Key: 1, Knew: 1, Got: 0},
		},
		"another's row is gone": {
			[]event{writes(1, 1), reads(0, 0, 1, 0), reads(0, 0, record.Absent, 0)},
			record.Violation{Promise: backwards, Key: 1, Knew: 1, Got: record.Absent},
		},
		"another's row is gone before it was seen": {
			[]event{reads(0, 0, record.Absent, 0)},
			record.Violation{Promise: backwards, Key: 1, Knew: 0, Got: record.Absent},
		},
		"a version that nobody wrote": {
			[]event{writes(1, 1), reads(0, 0, 2, 0)},
			record.Violation{Promise: unreal, Key: 1, Knew: 1, Got: 2},
		},
		"an own version that was not written yet": {
			[]event{reads(0, 1, 0, 0)},
			record.Violation{Promise: unreal, Knew: 0, Got: 1},
		},
		"a row twice": {
			[]event{answers(0, record.Row{Key: 0}, record.Row{Key: 1}, record.Row{Key: 1}, record.Row{Key: 2})},
			record.Violation{Promise: unreal, Key: 1},
		},
		"a row twice, in two versions": {
			[]event{writes(1, 1), answers(0, record.Row{Key: 0}, record.Row{Key: 1, Version: 1}, record.Row{Key: 1}, record.Row{Key: 2})},
			record.Violation{Promise: unreal, Key: 1},
		},
		"a row that was not asked for": {
			[]event{answers(0, record.Row{Key: 0}, record.Row{Key: 1}, record.Row{Key: 2}, record.Row{Key: 9, Version: 4})},
			record.Violation{Promise: unreal, Key: 9, Got: 4},
		},
		"a version below every version": {
			[]event{answers(0, record.Row{Key: 0}, record.Row{Key: 1, Version: -7}, record.Row{Key: 2})},
			record.Violation{Promise: backwards, Key: 1, Got: -7},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := play(t, c.story)
			if len(got) != 1 || got[0] != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestEveryRowIsJudged(t *testing.T) {
	t.Parallel()
	got := play(t, []event{
		writes(0, 3), writes(1, 3), writes(2, 3), reads(0, 3, 3, 3), reads(0, 2, 1, record.Absent),
	})
	if len(got) != 3 {
		t.Errorf("three rows went back, reported were %v", got)
	}
}

// A violation must not become the new normal: what the session knows only grows.
func TestViolationsAreReportedAgain(t *testing.T) {
	t.Parallel()
	checker := check.New(3)
	other, s := checker.Session(1, 1), checker.Session(0, 0)
	other.Writing(5)
	asked := []int64{0, 1, 2}
	rows := func(v int64) []record.Row { return []record.Row{{Key: 0}, {Key: 1, Version: v}, {Key: 2}} }
	for i, v := range []int64{5, 3, 3, 4} {
		if got := s.Read(asked, rows(v)); len(got) != min(i, 1) {
			t.Errorf("read %d with version %d: %v", i, v, got)
		}
	}
	if got := s.Read(asked, rows(5)); len(got) != 0 {
		t.Errorf("back at the known version: %v", got)
	}
}

// A version that cannot be must not be held against the answers that follow.
func TestUnrealVersionsAreForgotten(t *testing.T) {
	t.Parallel()
	checker := check.New(3)
	s := checker.Session(0, 0)
	asked := []int64{0, 1}
	if got := s.Read(asked, []record.Row{{Key: 0}, {Key: 1, Version: 99}}); len(got) != 1 {
		t.Fatalf("version 99 of nothing: %v", got)
	}
	if got := s.Read(asked, []record.Row{{Key: 0}, {Key: 1}}); len(got) != 0 {
		t.Errorf("an honest answer after it: %v", got)
	}
}

// Only rows that were asked for are judged: the others are not in the answer.
func TestUnaskedRowsAreNotMissed(t *testing.T) {
	t.Parallel()
	checker := check.New(3)
	s := checker.Session(0, 0)
	s.Writing(1)
	s.Wrote(1)
	if got := s.Read([]int64{1}, []record.Row{{Key: 1}}); len(got) != 0 {
		t.Errorf("row 0 was not asked for: %v", got)
	}
	if got := s.Read([]int64{0, 1}, []record.Row{{Key: 0}, {Key: 1}}); len(got) != 1 {
		t.Errorf("row 0 was asked for: %v", got)
	}
}
