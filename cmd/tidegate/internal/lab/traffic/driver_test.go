package traffic_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/check"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/traffic"
)

// app is a perfect database with fixed latencies, shared by its instances.
// Tokens count the operations of a session.
type app struct {
	mu        sync.Mutex
	rows      map[int64]int64
	busy      map[int]bool
	served    map[int]int // operations by session, as its token must say
	overlap   bool
	badToken  bool
	readTime  time.Duration
	writeTime time.Duration
	failWrite func(version int64) bool
}

func (a *app) fleet(n int) *traffic.Fleet {
	var list []strategy.Instance
	for range n {
		list = append(list, a)
	}
	return traffic.NewFleet(list...)
}

// serve takes the time of one operation and checks what every operation must
// keep to.
func (a *app) serve(ctx context.Context, s *strategy.Session, d time.Duration) error {
	a.mu.Lock()
	n, err := strconv.Atoi("0" + s.Token)
	s.Token = strconv.Itoa(n + 1)
	a.overlap = a.overlap || a.busy[s.ID]
	a.badToken = a.badToken || err != nil || n != a.served[s.ID]
	a.served[s.ID]++
	a.busy[s.ID] = true
	a.mu.Unlock()
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	a.mu.Lock()
	a.busy[s.ID] = false
	a.mu.Unlock()
	return ctx.Err()
}

func (a *app) Read(ctx context.Context, s *strategy.Session, keys []int64) (record.Answer, error) {
	if err := a.serve(ctx, s, a.readTime); err != nil {
		return record.Answer{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	answer := record.Answer{Replica: true, Node: "fake"}
	for _, k := range keys {
		answer.Rows = append(answer.Rows, record.Row{Key: k, Version: a.rows[k]})
	}
	return answer, nil
}

var errUnknown = errors.New("outcome unknown")

func (a *app) ReadStrong(ctx context.Context, s *strategy.Session, keys []int64) (record.Answer, error) {
	answer, err := a.Read(ctx, s, keys)
	answer.Reason = "strong"
	return answer, err
}

func (a *app) Write(ctx context.Context, s *strategy.Session, key, version int64) error {
	if err := a.serve(ctx, s, a.writeTime); err != nil {
		return err
	}
	if a.failWrite != nil && a.failWrite(version) {
		return errUnknown
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rows[key] = max(a.rows[key], version)
	return nil
}

func (a *app) Close() {}

func newApp() *app {
	return &app{
		rows: map[int64]int64{}, busy: map[int]bool{}, served: map[int]int{},
		readTime: 300 * time.Microsecond, writeTime: 600 * time.Microsecond,
	}
}

// drive runs a load in a bubble, where time passes only when all wait.
func drive(t *testing.T, l traffic.Load, a *app, with func(ctx context.Context) context.Context) (log *record.Log, unsent int, took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		if with != nil {
			ctx = with(ctx)
		}
		log = record.NewLog(l.Sessions)
		start := time.Now()
		unsent = traffic.Drive(ctx, l, start, a.fleet(l.Instances), check.New(l.Keys()), log)
		took = time.Since(start)
	})
	if a.overlap || a.badToken {
		t.Errorf("operations of a session overlapped: %v; a token was lost: %v", a.overlap, a.badToken)
	}
	return log, unsent, took
}

func TestDriveKeepsToThePlan(t *testing.T) {
	t.Parallel()
	l := usual
	l.Duration = 3 * time.Second
	log, unsent, took := drive(t, l, newApp(), nil)
	if took < 2900*time.Millisecond || took > 3100*time.Millisecond {
		t.Errorf("took %v", took)
	}
	planned, done := 0, 0
	for id, ops := range log.Sessions() {
		steps := slices.Collect(l.Steps(id))
		planned += len(steps)
		done += len(ops)
		for i, op := range ops {
			step := steps[i]
			if op.Session != id || op.Instance != step.Instance || (op.Kind == record.Write) != step.Write || !slices.Equal(op.Asked, step.Keys) {
				t.Fatalf("session %d, operation %d: planned %+v, done %+v", id, i, step, op)
			}
			if op.Start < op.Due || op.Due < step.Due || (step.Pace == traffic.Scheduled && op.Due != step.Due) {
				t.Fatalf("session %d, operation %d: planned for %v, due %v, began %v", id, i, step.Due, op.Due, op.Start)
			}
			if i > 0 && op.Start < ops[i-1].End {
				t.Fatalf("session %d: operation %d began before the last one ended", id, i)
			}
			want := 300 * time.Microsecond
			if step.Write {
				want = 600 * time.Microsecond
			}
			if op.Latency() != want {
				t.Fatalf("latency %v", op.Latency())
			}
			if len(op.Violations) > 0 {
				t.Fatalf("violations on a perfect database: %v", op.Violations)
			}
		}
	}
	if done+unsent != planned || unsent > planned/100 {
		t.Errorf("%d operations planned, %d done, %d left", planned, done, unsent)
	}
}

// The first read after a write comes when nothing has passed, or 5 ms or more.
func TestReadsAfterWrites(t *testing.T) {
	t.Parallel()
	l := usual
	l.Duration = 3 * time.Second
	log, _, _ := drive(t, l, newApp(), nil)
	atOnce, later := 0, 0
	for _, ops := range log.Sessions() {
		for i, op := range ops {
			follows := i > 0 && ops[i-1].Kind == record.Write
			if op.AfterWrite != follows {
				t.Fatalf("operation %d: AfterWrite is %v, follows a write: %v", i, op.AfterWrite, follows)
			}
			if !follows {
				continue
			}
			if got := op.Start - ops[i-1].End; op.SinceWrite != got {
				t.Fatalf("began %v after the write, the record says %v", got, op.SinceWrite)
			}
			switch {
			case op.AtOnce && op.SinceWrite == 0:
				atOnce++
			case !op.AtOnce && op.SinceWrite >= traffic.LaterReadDelay:
				later++
			default:
				t.Fatalf("at once: %v, %v after the write", op.AtOnce, op.SinceWrite)
			}
		}
	}
	near(t, "reads at once", float64(atOnce), float64(later), 0.2)
}

// A database that is too slow gets its load all the same: the operations queue,
// their records say so, and their latency does not hide in the queue.
func TestSlowAnswersDoNotSlowTheLoad(t *testing.T) {
	t.Parallel()
	l := traffic.Load{Sessions: 4, Instances: 1, Rate: 100, Duration: 10 * time.Second, Seed: 1}
	a := newApp()
	a.readTime = 100 * time.Millisecond // 40 reads/s at best
	log, unsent, took := drive(t, l, a, nil)
	if took > l.Duration+a.readTime {
		t.Errorf("took %v", took)
	}
	reads, latest := 0, time.Duration(0)
	for _, ops := range log.Sessions() {
		reads += len(ops)
		for _, op := range ops {
			if op.Latency() != a.readTime {
				t.Fatalf("latency %v", op.Latency())
			}
			latest = max(latest, op.Start-op.Due)
		}
	}
	near(t, "reads", float64(reads), 400, 0.05)
	near(t, "reads left", float64(unsent), 600, 0.15)
	if latest < 4*time.Second {
		t.Errorf("the latest read began only %v late", latest)
	}
}

// Writes whose outcome is unknown are no own writes to see, and their version
// is not used again.
func TestUnknownOutcomes(t *testing.T) {
	t.Parallel()
	l := usual
	l.Duration = 2 * time.Second
	a := newApp()
	a.failWrite = func(version int64) bool { return version%3 == 0 }
	log, _, _ := drive(t, l, a, nil)
	failed := 0
	for _, ops := range log.Sessions() {
		last := int64(0)
		for i, op := range ops {
			if len(op.Violations) > 0 {
				t.Fatalf("violations: %v", op.Violations)
			}
			if op.Kind == record.Write {
				if op.Version != last+1 {
					t.Fatalf("version %d after %d", op.Version, last)
				}
				last = op.Version
				if op.Err != nil {
					failed++
				}
			} else if i > 0 && ops[i-1].Err != nil && op.AfterWrite {
				t.Fatal("a read after a failed write counts as one after an own write")
			}
		}
	}
	if failed == 0 {
		t.Error("no write failed")
	}
}

// A strategy that loses writes is found out, in the records and the live counts.
func TestLostWritesAreFound(t *testing.T) {
	t.Parallel()
	l := usual
	l.Duration = 2 * time.Second
	a := newApp()
	a.rows = nil // every read shows version 0
	lossy := lossyApp{a}
	var log *record.Log
	synctest.Test(t, func(t *testing.T) {
		log = record.NewLog(l.Sessions)
		traffic.Drive(t.Context(), l, time.Now(), traffic.NewFleet(lossy, lossy), check.New(l.Keys()), log)
	})
	if log.Live.Stale.Load() == 0 || log.FirstViolation() == nil {
		t.Error("nothing was found")
	}
}

type lossyApp struct{ *app }

func (a lossyApp) Write(ctx context.Context, s *strategy.Session, _, _ int64) error {
	return a.serve(ctx, s, a.writeTime)
}

// A hung database ends as errors.
func TestOperationsHaveALimit(t *testing.T) {
	t.Parallel()
	l := traffic.Load{Sessions: 1, Instances: 1, Rate: 10, Duration: 2 * time.Second, Seed: 1}
	a := newApp()
	a.readTime = time.Hour
	log, _, took := drive(t, l, a, nil)
	if took > 10*time.Second || log.Live.Erred.Load() != 1 || !errors.Is(log.FirstError().Err, context.DeadlineExceeded) {
		t.Errorf("took %v, %d errors", took, log.Live.Erred.Load())
	}
}

// When the run is cut short, it ends at once, and what was cut off is no error.
func TestCutShort(t *testing.T) {
	t.Parallel()
	l := usual
	a := newApp()
	a.readTime = 50 * time.Millisecond
	log, unsent, took := drive(t, l, a, func(ctx context.Context) context.Context {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Second, cancel)
		return ctx
	})
	if took != time.Second {
		t.Errorf("took %v", took)
	}
	if log.Live.Erred.Load() != 0 || log.FirstError() != nil {
		t.Errorf("%d errors: %v", log.Live.Erred.Load(), log.FirstError())
	}
	if unsent == 0 || log.Live.Reads.Load() == 0 {
		t.Errorf("%d reads, %d operations left", log.Live.Reads.Load(), unsent)
	}
}

// Strong reads are asked for as such, and recorded so.
func TestStrongReads(t *testing.T) {
	t.Parallel()
	l := usual
	l.Duration, l.Strong = 3*time.Second, 0.3
	log, _, _ := drive(t, l, newApp(), nil)
	strong, reads := 0.0, 0.0
	for _, ops := range log.Sessions() {
		for _, op := range ops {
			if op.Strong != (op.Answer.Reason == "strong") {
				t.Fatalf("a strong read: %v, answered as one: %q", op.Strong, op.Answer.Reason)
			}
			if op.Kind == record.Read {
				reads++
				if op.Strong {
					strong++
				}
			}
		}
	}
	near(t, "part of strong reads", strong/reads, 0.3, 0.1)
}
