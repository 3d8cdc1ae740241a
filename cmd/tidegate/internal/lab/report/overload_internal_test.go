package report

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

var errRefused = errors.New("refused")

// refused is a read that was sent away, in time and with a typed error.
func refused(change func(*record.Op)) record.Op {
	return read(200_000, func(op *record.Op) {
		op.Err, op.Deadline = errRefused, time.Second
		op.Answer = record.Answer{Shed: true, Typed: true, Queued: 180 * time.Millisecond}
		change(op)
	})
}

// Reads that were refused are counted apart from errors, and by whether the refusal
// was any good.
func TestMeasureShed(t *testing.T) {
	t.Parallel()
	fails := &record.Budget{Within: time.Second, OnBreach: record.Fail}
	log := record.NewLog(1)
	for _, op := range []record.Op{
		refused(func(*record.Op) {}),
		refused(func(op *record.Op) { op.Answer.Typed = false }),
		refused(func(op *record.Op) { op.Deadline = 200 * time.Millisecond }),
		refused(func(op *record.Op) { op.Deadline = 200*time.Millisecond - 1 }),
		refused(func(op *record.Op) { op.Budget, op.Answer.NotFresh = fails, true }), // as it asks
		refused(func(op *record.Op) { op.Budget = fails }),
		refused(func(op *record.Op) { op.Answer.NotFresh = true }), // nobody asked for that
		read(100, func(op *record.Op) { op.Err = errRefused }),
		read(100, func(op *record.Op) { op.Answer.MarkedStale, op.Answer.Queued = true, 100*time.Millisecond }),
	} {
		log.Add(op)
	}
	got := Measure(log)
	want := Overload{StaleMarked: 1, ShedUntyped: 1, ShedLate: 1, LimiterWaitP99us: 180_000}
	if got.Overload != want || got.Shed != 6 || got.Errors != 1 || got.Reads != 1 {
		t.Errorf("got %+v, %d shed, %d errors, %d reads", got.Overload, got.Shed, got.Errors, got.Reads)
	}
}

func TestMeasureClasses(t *testing.T) {
	t.Parallel()
	short := &record.Budget{Within: 100 * time.Millisecond, OnBreach: record.ServeStale}
	long := &record.Budget{Within: time.Second, OnBreach: record.Fail}
	relaxed := func(b record.Budget, age time.Duration, change func(*record.Op)) record.Op {
		return read(9000, func(op *record.Op) {
			op.Budget, op.Answer.Bounded, op.Answer.Bound = &b, true, age
			if change != nil {
				change(op)
			}
		})
	}
	const ms = time.Millisecond
	log := record.NewLog(2)
	for _, op := range []record.Op{
		relaxed(*long, 900*ms, nil),
		relaxed(*long, 0, func(op *record.Op) { op.Err, op.Answer = errRefused, record.Answer{Shed: true, NotFresh: true} }),
		relaxed(*long, 0, func(op *record.Op) { op.Err, op.Answer = errRefused, record.Answer{Shed: true} }),
		relaxed(*long, 0, func(op *record.Op) { op.Err = errRefused }),
		relaxed(*short, 10*ms, nil),
		relaxed(*short, 20*ms, nil),
		relaxed(*short, 5000*ms, func(op *record.Op) { op.Answer.MarkedStale = true }),
		relaxed(*short, time.Minute, func(op *record.Op) { op.Answer.Replica = false }),
		relaxed(*short, 0, func(op *record.Op) { op.Answer.Bounded = false }),
		relaxed(*short, 30*ms, func(op *record.Op) { op.Violations = []record.Violation{{Promise: record.WithinBudget}} }),
		read(100, func(op *record.Op) { op.Violations = []record.Violation{{Promise: record.WithinBound}} }),
	} {
		log.Add(op)
	}
	got := Measure(log)
	want := []Class{
		{BudgetMs: 100, OnBreach: "stale", Reads: 6, ReplicaReads: 5, StaleMarked: 1, BudgetBreaches: 1,
			BoundP50us: 20_000, BoundP99us: 5_000_000, BoundMaxUs: 5_000_000, UnmarkedMaxUs: 30_000},
		{BudgetMs: 1000, OnBreach: "fail", Reads: 1, ReplicaReads: 1, Failed: 1, Shed: 1, Errors: 1,
			BoundP50us: 900_000, BoundP99us: 900_000, BoundMaxUs: 900_000, UnmarkedMaxUs: 900_000},
	}
	if !reflect.DeepEqual(got.Classes, want) {
		t.Errorf("got  %+v\nwant %+v", got.Classes, want)
	}
	if got.BudgetBreaches != 1 || got.BoundBreaches != 1 || got.StaleMarked != 1 || got.Shed != 1 {
		t.Errorf("all: %+v", got)
	}
	// They are not among the latencies of the others.
	if got.ReadP50us != 100 || got.Reads != 8 {
		t.Errorf("%d reads, p50 %d", got.Reads, got.ReadP50us)
	}

	var out bytes.Buffer
	r := Result{PrimarySlots: 4, PrimaryCostMs: 16, Strategies: []Figures{got, {Name: "tidegate-memory"}}}
	r.Table(&out)
	for _, want := range []string{"not room for all", "queue p99", "keep budgets?", "100ms, stale", "1s, fail", "5,000"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Count(out.String(), "keep budgets?") != 1 {
		t.Errorf("classes of a strategy that has none:\n%s", out.String())
	}
	for _, line := range strings.Split(out.String(), "\n") {
		if len([]rune(line)) > 100 || strings.HasPrefix(line, "│") && len([]rune(line)) > 80 {
			t.Errorf("a line is too wide: %s", line)
		}
	}
	out.Reset()
	if err := r.JSON(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"primary_slots":4,"primary_cost_ms":16,`, `"classes":[{"budget_ms":100,"on_breach":"stale","reads":6,`, `"unmarked_bound_max_us":30000}`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in %s", want, out.String())
		}
	}
}

// Where there is not room for all, reads may be refused, if that is done well; and
// where conflicts are the subject, there must have been some.
func TestJudgeOverload(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		figures Figures
		terms   Terms
		status  int
	}{
		"shed":                   {Figures{Shed: 9}, Terms{Sheds: true}, 0},
		"shed without a reason":  {Figures{Shed: 9}, Terms{}, 1},
		"shed too late":          {Figures{Shed: 9, Overload: Overload{ShedLate: 1}}, Terms{Sheds: true}, 1},
		"shed without a type":    {Figures{Shed: 9, Overload: Overload{ShedUntyped: 1}}, Terms{Sheds: true}, 1},
		"errors beside shedding": {Figures{Shed: 9, Errors: 1, ReadErrorsBeforeRow: 1}, Terms{Sheds: true}, 1},
		"too old":                {Figures{BudgetBreaches: 1}, Terms{Sheds: true}, 1},
		"conflicts":              {Figures{RecoveryConflicts: 1}, Terms{Conflicts: true}, 0},
		"no conflicts":           {Figures{}, Terms{Conflicts: true}, 2},
	} {
		c.figures.Name, c.figures.Reads = Ours, 100
		if got := Judge(&Result{Strategies: []Figures{c.figures}}, c.terms); got.Status != c.status {
			t.Errorf("%s: got %d %q, want %d", name, got.Status, got.Line, c.status)
		}
	}
}
