package check_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/check"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// Row 1 has version 1 since 1 s, 2 since 2 s and perhaps 3, whose write failed; row
// 2 has version 1 since 5 s.
func TestAges(t *testing.T) {
	t.Parallel()
	const s = time.Second
	writes := [][]record.Op{
		{
			{Kind: record.Write, Key: 1, Version: 1, End: 1 * s},
			{Kind: record.Write, Key: 1, Version: 2, End: 2 * s},
			{Kind: record.Write, Key: 1, Version: 3, End: 3 * s, Err: errors.New("unknown")},
		},
		{{Kind: record.Write, Key: 2, Version: 1, End: 5 * s}},
	}
	within := func(d time.Duration) *record.Budget { return &record.Budget{Within: d} }
	rows := func(one, two int64) []record.Row {
		return []record.Row{{Key: 1, Version: one}, {Key: 2, Version: two}}
	}
	for name, c := range map[string]struct {
		op             record.Op
		budget, bounds int
	}{
		"all of it":                        {record.Op{Start: 9 * s, Budget: within(1), Answer: record.Answer{Rows: rows(2, 1)}}, 0, 0},
		"what failed may be seen":          {record.Op{Start: 9 * s, Budget: within(1), Answer: record.Answer{Rows: rows(3, 1)}}, 0, 0},
		"too old":                          {record.Op{Start: 9 * s, Budget: within(s), Answer: record.Answer{Rows: rows(1, 1)}}, 1, 0},
		"both rows too old":                {record.Op{Start: 9 * s, Budget: within(s), Answer: record.Answer{Rows: rows(0, 0)}}, 2, 0},
		"old enough for one of them":       {record.Op{Start: 9 * s, Budget: within(5 * s), Answer: record.Answer{Rows: rows(1, 0)}}, 1, 0},
		"just within":                      {record.Op{Start: 9 * s, Budget: within(7 * s), Answer: record.Answer{Rows: rows(1, 0)}}, 0, 0},
		"just not":                         {record.Op{Start: 9*s + 1, Budget: within(7 * s), Answer: record.Answer{Rows: rows(1, 0)}}, 1, 0},
		"before anything was acknowledged": {record.Op{Start: s / 2, Budget: within(1), Answer: record.Answer{Rows: rows(0, 0)}}, 0, 0},
		"marked":                           {record.Op{Start: 9 * s, Budget: within(s), Answer: record.Answer{Rows: rows(0, 0), MarkedStale: true}}, 0, 0},
		"marked and older than it says":    {record.Op{Start: 9 * s, Budget: within(s), Answer: record.Answer{Rows: rows(1, 1), MarkedStale: true, Bounded: true, Bound: 2 * s}}, 0, 1},
		"as old as it says":                {record.Op{Start: 9 * s, Budget: within(s), Answer: record.Answer{Rows: rows(1, 1), MarkedStale: true, Bounded: true, Bound: 7 * s}}, 0, 0},
		"causal, older than it says":       {record.Op{Start: 9 * s, Answer: record.Answer{Rows: rows(1, 1), Bounded: true, Bound: s}}, 0, 1},
		"causal, and says nothing":         {record.Op{Start: 9 * s, Answer: record.Answer{Rows: rows(1, 1)}}, 0, 0},
		"failed":                           {record.Op{Start: 9 * s, Budget: within(s), Err: errors.New("no"), Answer: record.Answer{Rows: rows(0, 0)}}, 0, 0},
		"a row that nobody wrote":          {record.Op{Start: 9 * s, Budget: within(s), Answer: record.Answer{Rows: []record.Row{{Key: 7}}}}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			history := [][]record.Op{writes[0], writes[1], {c.op}}
			check.Ages(history)
			got := map[record.Promise]int{}
			for _, v := range history[2][0].Violations {
				got[v.Promise]++
			}
			if got[record.WithinBudget] != c.budget || got[record.WithinBound] != c.bounds || len(got) > 2 {
				t.Errorf("got %v", history[2][0].Violations)
			}
		})
	}
}

// A relaxed read may go back, and what it showed counts.
func TestRelaxedReads(t *testing.T) {
	t.Parallel()
	c := check.New(2)
	s, other := c.Session(0, 0), c.Session(1, 1)
	s.Writing(1)
	s.Wrote(1)
	other.Writing(1)
	keys := []int64{0, 1}
	if v := s.Read(keys, []record.Row{{Key: 0, Version: 1}, {Key: 1, Version: 0}}); v != nil {
		t.Errorf("a causal read: %v", v)
	}
	if v := s.End(s.BeginRelaxed(keys), []record.Row{{Key: 0, Version: 0}, {Key: 1, Version: 1}}); v != nil {
		t.Errorf("a relaxed read: %v", v)
	}
	if v := s.Read(keys, []record.Row{{Key: 0, Version: 1}, {Key: 1, Version: 0}}); len(v) != 1 || v[0].Promise != record.MonotonicReads {
		t.Errorf("a causal read that goes back behind it: %v", v)
	}
	if v := s.End(s.BeginRelaxed(keys), []record.Row{{Key: 0, Version: 2}, {Key: 1, Version: 1}}); len(v) != 1 || v[0].Promise != record.RealRows {
		t.Errorf("a relaxed read of what nobody wrote: %v", v)
	}
}
