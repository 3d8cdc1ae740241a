package report

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

func TestPercentile(t *testing.T) {
	t.Parallel()
	us := func(values ...int) (list []time.Duration) {
		for _, v := range values {
			list = append(list, time.Duration(v)*time.Microsecond)
		}
		return list
	}
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = 100 - i // not sorted
	}
	for _, c := range []struct {
		values []int
		p      float64
		want   int64
	}{
		{nil, 0.5, 0},
		{[]int{7}, 0.5, 7},
		{[]int{7}, 0.99, 7},
		{[]int{3, 1}, 0.5, 1},
		{[]int{3, 1, 2}, 0.5, 2},
		{[]int{4, 3, 2, 1}, 0.5, 2},
		{hundred, 0.5, 50},
		{hundred, 0.99, 99},
		{hundred, 1, 100},
		{hundred, 0, 1},
	} {
		if got := percentile(us(c.values...), c.p); got != c.want {
			t.Errorf("percentile %v of %v: got %d, want %d", c.p, c.values, got, c.want)
		}
	}
}

// read is a read that took so many microseconds.
func read(us int, change func(*record.Op)) record.Op {
	op := record.Op{Kind: record.Read, Start: time.Second, Due: time.Second, End: time.Second + time.Duration(us)*time.Microsecond}
	op.Answer.Replica = true
	if change != nil {
		change(&op)
	}
	return op
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	bad := errors.New("connection refused")
	log := record.NewLog(1)
	for _, op := range []record.Op{
		read(100, nil),
		read(300, func(op *record.Op) { op.Answer.Replica, op.Answer.Fallback, op.Answer.Reason = false, true, "behind" }),
		read(200, func(op *record.Op) { op.Answer.Unproven, op.Answer.Retries = true, 2 }),
		read(700, func(op *record.Op) { op.AfterWrite, op.AtOnce, op.Answer.Waited = true, true, true }),
		read(110, func(op *record.Op) { op.AfterWrite, op.SinceWrite = true, 5*time.Millisecond }),
		read(130, func(op *record.Op) { op.AfterWrite, op.SinceWrite = true, 9*time.Millisecond }),
		read(120, func(op *record.Op) {
			op.AfterWrite, op.SinceWrite, op.Answer.Replica = true, 7*time.Millisecond, false
		}),
		// After a failed read at once, the next may come too early for either.
		read(9000, func(op *record.Op) { op.AfterWrite, op.SinceWrite = true, time.Millisecond }),
		read(1, func(op *record.Op) { op.Err, op.Answer.Shed = bad, true }),
		read(2, func(op *record.Op) { op.Err = bad }),
		read(2, func(op *record.Op) { op.Err, op.Answer.Begun = bad, true }),
		read(2, func(op *record.Op) { op.Err, op.Answer.Begun = bad, true }),
		{Kind: record.Write, End: 600 * time.Microsecond},
		{Kind: record.Write, End: 500 * time.Microsecond},
		{Kind: record.Write, Due: 100 * time.Microsecond, Start: 100 * time.Microsecond, End: 800 * time.Microsecond, Err: bad},
		// Strong reads count as reads, and as no others' latency.
		read(5000, func(op *record.Op) {
			op.Strong, op.Answer.Replica, op.Answer.Reason, op.Answer.Unproven = true, false, "strong", true
		}),
		read(6000, func(op *record.Op) {
			op.Strong, op.AfterWrite, op.AtOnce, op.Answer.Replica, op.Answer.Reason = true, true, true, false, "strong"
		}),
		read(150, func(op *record.Op) {
			op.Violations = []record.Violation{{Promise: record.ReadYourWrites}, {Promise: record.MonotonicReads}}
		}),
		read(150, func(op *record.Op) { op.Violations = []record.Violation{{Promise: record.RealRows}} }),
	} {
		log.Add(op)
	}
	got := Measure(log)
	if got.FirstError == "" || got.FirstViolation == "" {
		t.Errorf("first error %q, first violation %q", got.FirstError, got.FirstViolation)
	}
	got.FirstError, got.FirstViolation = "", ""
	want := Figures{
		Writes: 2, Reads: 12, StaleReads: 1, BackwardsReads: 1, UnrealReads: 1, UnprovenReads: 2,
		ReplicaReads: 8, ReplicaShare: 0.6667, CausalReplicaShare: 0.8, StrongReads: 2, ReadAfterWriteReplicaShare: 0.8,
		ReadAfterWriteP50us: 120, ReadAfterWriteNowP50us: 700,
		Fallbacks: 1, Waits: 1, Shed: 1,
		Errors: 4, ReadErrorsBeforeRow: 1, ReadErrorsAfterRow: 2, WriteErrors: 1,
		ReadP50us: 150, ReadP95us: 300, ReadP99us: 300, WriteP50us: 500, WriteP95us: 600, WriteP99us: 600, WriteStallUs: 500,
		RetriedReads:       1,
		Overload:           Overload{ShedUntyped: 1, ShedLate: 1},
		PrimaryReadsBy:     Reasons{"behind": 1, "none": 1, "strong": 2},
		UnprovenBy:         Reasons{"none": 1, "strong": 1},
		UnpromptedWaitsMax: 1,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestMeasureNothing(t *testing.T) {
	t.Parallel()
	if got := Measure(record.NewLog(3)); !reflect.DeepEqual(got, Figures{}) {
		t.Errorf("got %+v", got)
	}
}

func TestThousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -100: "-100", -1000: "-1,000"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
