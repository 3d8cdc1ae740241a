package record_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

func TestLogCounts(t *testing.T) {
	t.Parallel()
	log := record.NewLog(2)
	bad := errors.New("bad")
	stale := record.Violation{Promise: record.ReadYourWrites}
	backwards := record.Violation{Promise: record.MonotonicReads}
	for _, op := range []record.Op{
		{Start: 1, Kind: record.Write},
		{Start: 2, Answer: record.Answer{Replica: true, Waited: true}},
		{Start: 5, Answer: record.Answer{Fallback: true}, Violations: []record.Violation{stale, stale, backwards}},
		{Start: 6, Kind: record.Write, Err: bad},
		{Start: 3, Session: 1, Answer: record.Answer{Shed: true}, Err: bad},
		{Start: 4, Session: 1, Violations: []record.Violation{backwards}},
		{Start: 9, Session: 1, Violations: []record.Violation{{Promise: record.ReadsAfterEvents}}},
	} {
		log.Add(op)
	}
	l := &log.Live
	for _, c := range []struct {
		name      string
		got, want int64
	}{
		{"reads", l.Reads.Load(), 4},
		{"writes", l.Writes.Load(), 1},
		{"replica", l.Replica.Load(), 1},
		{"waits", l.Waits.Load(), 1},
		{"fallbacks", l.Fallbacks.Load(), 1},
		{"stale", l.Stale.Load(), 2},
		{"backwards", l.Backwards.Load(), 2},
		{"shed", l.Shed.Load(), 1},
		{"errors", l.Erred.Load(), 1},
		{"start of the first error", int64(log.FirstError().Start), 6},
		{"start of the first violation", int64(log.FirstViolation().Start), 4},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, c.got, c.want)
		}
	}
	shed := record.NewLog(1)
	shed.Add(record.Op{Start: 1})
	shed.Add(record.Op{Start: 2, Err: errors.New("x"), Answer: record.Answer{Shed: true}})
	if op := shed.FirstError(); op == nil || op.Start != 2 {
		t.Errorf("reads were refused, and the first error is %+v", op)
	}
	shed.Add(record.Op{Start: 3, Err: errors.New("x")})
	if op := shed.FirstError(); op == nil || op.Start != 3 {
		t.Errorf("a read has failed, and the first error is %+v", op)
	}
	if empty := record.NewLog(1); empty.FirstError() != nil || empty.FirstViolation() != nil {
		t.Error("an empty log has an error or a violation")
	}
}

func TestViolationsReadWell(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]record.Violation{
		"read-your-writes: session 3, row 3: knew version 7, got version 6":   {Promise: record.ReadYourWrites, Session: 3, Key: 3, Knew: 7, Got: 6},
		"budget: session 1, row 2: knew version 4, got version 3":             {Promise: record.WithinBudget, Session: 1, Key: 2, Knew: 4, Got: 3},
		"proven age: session 1, row 2: knew version 4, got version 3":         {Promise: record.WithinBound, Session: 1, Key: 2, Knew: 4, Got: 3},
		"reads after events: session 2, row 5: knew version 4, got version 3": {Promise: record.ReadsAfterEvents, Session: 2, Key: 5, Knew: 4, Got: 3},
		"monotonic reads: session 1, row 2: knew version 0, the row was absent": {
			Promise: record.MonotonicReads, Session: 1, Key: 2, Got: record.Absent,
		},
	} {
		if v.String() != want {
			t.Errorf("got %q, want %q", v, want)
		}
	}
}

// A session whose requests overlap adds them as they end.
func TestLogSorts(t *testing.T) {
	t.Parallel()
	log := record.NewLog(2)
	for _, seq := range []int{3, 1, 2} {
		log.Add(record.Op{Session: 1, Seq: seq, Start: time.Second})
	}
	log.Sort(1)
	for i, op := range log.Sessions()[1] {
		if op.Seq != i+1 {
			t.Errorf("operation %d is at %d", op.Seq, i+1)
		}
	}
}

func TestLogKeepsRestarts(t *testing.T) {
	t.Parallel()
	log := record.NewLog(1)
	log.Restarted(3)
	log.Restarted(5)
	if got := log.Restarts(); len(got) != 2 || got[0] != 3 || got[1] != 5 {
		t.Errorf("got %v", got)
	}
}

func TestLogKeepsFaults(t *testing.T) {
	t.Parallel()
	log := record.NewLog(1)
	over := log.Fault(3, "a", "b")
	log.Fault(7, "c")
	over(5)
	got := log.Faults()
	if len(got) != 2 || got[0].Begin != 3 || got[0].End != 5 || len(got[0].Nodes) != 2 || got[1].Begin != 7 || got[1].End != 0 || got[1].Nodes[0] != "c" {
		t.Errorf("got %+v", got)
	}
}
