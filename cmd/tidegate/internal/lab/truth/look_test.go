package truth_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/truth"
)

const ms = time.Millisecond

// wrote and saw are operations of one session on rows 0 and 1, at milliseconds
// of the run.
func wrote(at int, version int64) record.Op {
	t := time.Duration(at) * ms
	return record.Op{Kind: record.Write, Start: t, End: t + ms, Version: version}
}

func saw(at int, versions ...int64) record.Op {
	t := time.Duration(at) * ms
	op := record.Op{Kind: record.Read, Start: t, End: t + ms}
	for key, v := range versions {
		op.Answer.Rows = append(op.Answer.Rows, record.Row{Key: int64(key), Version: v})
	}
	return op
}

// until is an operation that took longer.
func until(at int, op record.Op) record.Op {
	op.End = time.Duration(at) * ms
	return op
}

// told is a read because of an event.
func told(op record.Op, key, version int64) record.Op {
	op.Told = &record.Row{Key: key, Version: version}
	return op
}

// relaxed is a read whose answer may be old.
func relaxed(op record.Op) record.Op {
	op.Budget = &record.Budget{Within: time.Second}
	return op
}

func failed(op record.Op) record.Op {
	op.Err = errors.New("refused")
	return op
}

func look(at int, versions ...int64) truth.Look {
	t := time.Duration(at) * ms
	return truth.Look{Began: t, Ended: t + ms, Versions: versions}
}

func TestOpportunities(t *testing.T) {
	t.Parallel()
	type ops = []record.Op
	type looks = []truth.Look
	for name, c := range map[string]struct {
		ops      ops
		replicas []looks
		want     int
	}{
		"nothing known": {
			ops{saw(10, 0, 0)}, []looks{{look(12, 0, 0)}}, 0,
		},
		"own write is lacking": {
			ops{wrote(5, 1), saw(10, 1, 0)}, []looks{{look(12, 0, 0)}}, 1,
		},
		"own write is lacking, and the answer may be old": {
			ops{wrote(5, 1), relaxed(saw(10, 0, 3)), saw(20, 1, 3)}, []looks{{look(12, 0, 0), look(22, 1, 2)}}, 1,
		},
		"own write is there": {
			ops{wrote(5, 1), saw(10, 1, 0)}, []looks{{look(12, 1, 0)}}, 0,
		},
		"own write was lacking before the read only": {
			ops{wrote(5, 1), saw(10, 1, 0)}, []looks{{look(8, 0, 0), look(12, 1, 0)}}, 0,
		},
		"the first look after the read counts, not a later one": {
			ops{wrote(5, 1), saw(10, 1, 0)}, []looks{{look(10, 1, 0), look(15, 0, 0)}}, 0,
		},
		"a look at the very moment counts": {
			ops{wrote(5, 1), saw(10, 1, 0)}, []looks{{look(10, 0, 0)}}, 1,
		},
		"what was seen before is lacking": {
			ops{saw(5, 0, 3), saw(10, 0, 3)}, []looks{{look(6, 0, 3), look(12, 0, 2)}}, 1,
		},
		"what this read itself shows was not known before it": {
			ops{saw(10, 0, 3)}, []looks{{look(12, 0, 0)}}, 0,
		},
		"one of two replicas is enough": {
			ops{wrote(5, 1), saw(10, 1, 0)}, []looks{{look(12, 1, 0)}, {look(12, 0, 0)}}, 1,
		},
		"both replicas count once": {
			ops{wrote(5, 1), saw(10, 1, 0)}, []looks{{look(12, 0, 0)}, {look(12, 0, 0)}}, 1,
		},
		"each read counts": {
			ops{wrote(5, 1), saw(10, 1, 0), saw(20, 1, 0), saw(30, 1, 0)},
			[]looks{{look(11, 0, 0), look(21, 0, 0), look(31, 1, 0)}}, 2,
		},
		"a replica that no longer answers is not live": {
			ops{wrote(5, 1), saw(10, 1, 0)}, []looks{{look(9, 0, 0), look(36, 0, 0)}}, 0,
		},
		"a replica that never answered is not live": {
			ops{wrote(5, 1), saw(10, 1, 0)}, []looks{{}}, 0,
		},
		"a missing row is lacking": {
			ops{saw(5, 0, 0), saw(10, 0, 0)}, []looks{{look(6, 0, 0), look(12, record.Absent, 0)}}, 1,
		},
		"a failed read was not checked": {
			ops{wrote(5, 1), failed(saw(10))}, []looks{{look(12, 0, 0)}}, 0,
		},
		"a failed write is not known": {
			ops{failed(wrote(5, 1)), saw(10, 0, 0)}, []looks{{look(12, 0, 0)}}, 0,
		},
		"an answer that came later is not known": {
			ops{until(20, saw(5, 0, 3)), saw(10, 0, 0)}, []looks{{look(12, 0, 2)}}, 0,
		},
		"an answer that came in between is known to the next": {
			ops{until(11, saw(5, 0, 3)), until(11, saw(6, 0, 3)), saw(15, 0, 3)}, []looks{{look(7, 0, 2), look(16, 0, 2)}}, 1,
		},
		"a write under way is not known": {
			ops{until(20, wrote(5, 1)), saw(10, 0, 0), saw(21, 1, 0)}, []looks{{look(12, 0, 0), look(22, 0, 0)}}, 1,
		},
		"what an event told of is lacking": {
			ops{told(saw(10, 0, 3), 1, 3)}, []looks{{look(12, 0, 2)}}, 1,
		},
		"what an event told of is there": {
			ops{told(saw(10, 0, 3), 1, 3)}, []looks{{look(12, 0, 3)}}, 0,
		},
		"what an event told of counts for its read only": {
			ops{told(saw(10, 0, 2), 1, 3), saw(15, 0, 2)}, []looks{{look(12, 0, 2), look(16, 0, 2)}}, 1,
		},
		"what went back is still known": {
			ops{saw(1, 0, 3), saw(5, 0, 1), saw(10, 0, 3)}, []looks{{look(2, 0, 3), look(6, 0, 3), look(12, 0, 2)}}, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := truth.Opportunities([][]record.Op{c.ops}, toLooks(c.replicas), 2); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func toLooks[T ~[]truth.Look](in []T) (out [][]truth.Look) {
	for _, l := range in {
		out = append(out, l)
	}
	return out
}

// A read that went wrong shows by itself that it could.
func TestViolationsAreOpportunities(t *testing.T) {
	t.Parallel()
	for _, p := range []record.Promise{record.ReadYourWrites, record.MonotonicReads, record.ReadsAfterEvents, record.RealRows} {
		bad := saw(10, 0, 0)
		bad.Violations = []record.Violation{{Promise: p}}
		want := 1
		if p == record.RealRows {
			want = 0 // no replica is to blame for it
		}
		if got := truth.Opportunities([][]record.Op{{wrote(5, 1), bad}}, [][]truth.Look{{look(12, 1, 0)}}, 2); got != want {
			t.Errorf("%v: got %d, want %d", p, got, want)
		}
	}
}

// What one session knows is nothing to another.
func TestSessionsKnowDifferentThings(t *testing.T) {
	t.Parallel()
	histories := [][]record.Op{
		{wrote(5, 1), saw(10, 1, 0)},
		{saw(10, 0, 0), saw(20, 0, 0)},
	}
	looks := [][]truth.Look{{look(11, 0, 0), look(21, 0, 0)}}
	if got := truth.Opportunities(histories, looks, 2); got != 1 {
		t.Errorf("got %d, want 1", got)
	}
}
