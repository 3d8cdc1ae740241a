package traffic_test

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/check"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/traffic"
)

// Parallel reads are the reads that there were, at other times: rates stay.
func TestParallelKeepsTheRates(t *testing.T) {
	t.Parallel()
	l := usual
	l.Parallel = 0.3
	reads, writes, beside, free := 0.0, 0.0, 0.0, 0.0
	for _, steps := range plan(l) {
		for i, s := range steps {
			if s.Write {
				writes++
			} else {
				reads++
			}
			if !s.Write && s.Pace == traffic.Scheduled {
				free++
			}
			if s.Beside {
				beside++
				if s.Write || s.Pace != traffic.Scheduled {
					t.Fatalf("the session does not wait for %+v", s)
				}
			}
			if i > 0 && steps[i-1].Beside && s.Due != steps[i-1].Due {
				t.Fatalf("step %+v follows %+v", s, steps[i-1])
			}
			if i > 0 && s.Due < steps[i-1].Due {
				t.Fatalf("step %+v is due before %+v", s, steps[i-1])
			}
		}
	}
	near(t, "reads per second", reads/20, 1000, 0.03)
	near(t, "part of writes", writes/(reads+writes), 0.2, 0.06)
	near(t, "part of reads that are not waited for", beside/free, 0.3, 0.05)
}

func TestDropsAreAPart(t *testing.T) {
	t.Parallel()
	l := usual
	l.Drops = 0.05
	drops, all, atOnce := 0.0, 0.0, 0
	for _, steps := range plan(l) {
		for _, s := range steps {
			all++
			if s.Drop {
				drops++
				if s.Pace == traffic.AtOnce {
					atOnce++
				}
			}
		}
	}
	near(t, "part of drops", drops/all, 0.05, 0.1)
	if atOnce == 0 {
		t.Error("no token is lost right after a write")
	}
	// What does not ask for either is planned as ever.
	for _, step := range slices.Concat(plan(usual)...) {
		if step.Drop || step.Beside {
			t.Fatalf("planned %+v", step)
		}
	}
	if l := usual; !reflect.DeepEqual(plan(l), plan(usual)) {
		t.Error("two plans of one load differ")
	}
}

// browser is an application whose clients send requests side by side. A read sees
// what was there when it began, a write is there when it ends.
type browser struct {
	mu       sync.Mutex
	rows     map[int64]int64
	flying   map[int]int // requests under way, by session
	most     int         // of one session at once
	forgot   int
	busy     int // forgot while a request was under way
	listener bool
	stale    bool // rereads show version 0
	events   map[int]chan traffic.Event
}

const readTime, writeTime = 4 * time.Millisecond, 2 * time.Millisecond

func (b *browser) Client(session int) traffic.Client {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &tab{b, session}
	if !b.listener {
		return c
	}
	b.events[session] = make(chan traffic.Event, 1000)
	return listening{c, b.events[session]}
}

type tab struct {
	b  *browser
	id int
}

// during does something at the beginning and at the end of a request that takes
// its time.
func (c *tab) during(d time.Duration, first, last func()) {
	c.b.mu.Lock()
	c.b.flying[c.id]++
	c.b.most = max(c.b.most, c.b.flying[c.id])
	first()
	c.b.mu.Unlock()
	time.Sleep(d)
	c.b.mu.Lock()
	last()
	c.b.flying[c.id]--
	c.b.mu.Unlock()
}

func (c *tab) Read(_ context.Context, op *record.Op) {
	op.Instance = 7
	c.during(readTime, func() {
		for _, k := range op.Asked {
			op.Answer.Rows = append(op.Answer.Rows, record.Row{Key: k, Version: c.b.rows[k]})
		}
	}, func() {})
}

func (c *tab) Write(_ context.Context, op *record.Op) {
	c.during(writeTime, func() {}, func() {
		c.b.rows[op.Key] = op.Version
		if c.b.listener {
			other := (c.id + 1) % len(c.b.events)
			c.b.events[other] <- traffic.Event{Row: record.Row{Key: op.Key, Version: op.Version}, Message: []byte("told")}
		}
	})
}

func (c *tab) Forget(context.Context) int {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.b.forgot++
	if c.b.flying[c.id] > 0 {
		c.b.busy++
	}
	return 3
}

type listening struct {
	*tab
	events chan traffic.Event
}

func (l listening) Events() <-chan traffic.Event { return l.events }

func (l listening) Reread(ctx context.Context, op *record.Op, e traffic.Event) {
	l.Read(ctx, op)
	if string(e.Message) != "told" {
		op.Answer.Rows = nil
	}
	if l.b.stale {
		for i := range op.Answer.Rows {
			op.Answer.Rows[i].Version = 0
		}
	}
}

// surf runs a load against a browser in a bubble.
func surf(t *testing.T, l traffic.Load, b *browser) *record.Log {
	t.Helper()
	log := record.NewLog(l.Sessions)
	synctest.Test(t, func(t *testing.T) {
		b.rows, b.flying, b.events = map[int64]int64{}, map[int]int{}, map[int]chan traffic.Event{}
		traffic.Drive(t.Context(), l, time.Now(), b, check.New(l.Keys()), log)
	})
	return log
}

// Requests of a session overlap, its writes follow one another, the log is in the
// order in which they began, and nobody is blamed for what had not arrived.
func TestRequestsOverlap(t *testing.T) {
	t.Parallel()
	l := usual
	l.Duration, l.Parallel = 3*time.Second, 0.3
	b := &browser{}
	log := surf(t, l, b)
	overlaps, old := 0, 0
	for _, ops := range log.Sessions() {
		for i, op := range ops {
			if len(op.Violations) > 0 {
				t.Fatalf("violations: %v", op.Violations)
			}
			if i == 0 {
				continue
			}
			last := ops[i-1]
			if op.Start < last.Start {
				t.Fatalf("%v comes after %v", op.Start, last.Start)
			}
			if op.Start < last.End {
				overlaps++
				if !op.Overlaps {
					t.Fatalf("%+v overlaps %+v", op, last)
				}
			}
			if op.Kind == record.Write && last.Kind == record.Read && last.End > op.End && last.Answer.Rows[0].Version < op.Version {
				old++ // it arrived after the write, and does not show it
			}
			if op.Kind == record.Read && op.Instance != 7 {
				t.Fatalf("the application says instance 7, the record %d", op.Instance)
			}
		}
	}
	if overlaps < 100 || old < 10 || b.most < 3 {
		t.Errorf("%d overlaps, %d old answers after a write, at most %d at once", overlaps, old, b.most)
	}
}

// Tokens are lost all at once: nothing is under way that could bring some back.
func TestTokensAreLostAtOnce(t *testing.T) {
	t.Parallel()
	l := usual
	l.Duration, l.Parallel, l.Drops = 3*time.Second, 0.3, 0.1
	b := &browser{listener: true}
	log := surf(t, l, b)
	dropped := 0
	for _, ops := range log.Sessions() {
		for _, op := range ops {
			if op.Dropped > 0 {
				dropped++
			}
			if op.Dropped > 0 && op.Overlaps {
				t.Fatalf("%+v", op)
			}
		}
	}
	if b.forgot < 100 || b.busy > 0 || dropped != b.forgot {
		t.Errorf("lost %d times, %d times with a request under way, recorded %d times", b.forgot, b.busy, dropped)
	}
}

// Every event makes its session read the row that it tells of, and a read that
// does not show it is found out.
func TestEventsMakeSessionsRead(t *testing.T) {
	t.Parallel()
	for _, stale := range []bool{false, true} {
		l := usual
		l.Duration = 3 * time.Second
		log := surf(t, l, &browser{listener: true, stale: stale})
		rereads, missed, writes := 0, 0, 0
		for _, ops := range log.Sessions() {
			for _, op := range ops {
				if op.Kind == record.Write {
					writes++
				}
				if op.Told == nil {
					continue
				}
				rereads++
				if op.Told.Key == int64(op.Session) || op.Asked[0] != int64(op.Session) || !slices.Contains(op.Asked, op.Told.Key) || len(op.Asked) != traffic.KeysPerRead {
					t.Fatalf("told of %v, session %d asked for %v", op.Told, op.Session, op.Asked)
				}
				if op.Broke(record.ReadsAfterEvents) {
					missed++
				}
			}
		}
		if rereads < writes*9/10 || rereads == 0 {
			t.Errorf("%d rereads after %d writes", rereads, writes)
		}
		if (missed > 0) != stale {
			t.Errorf("stale: %v; %d rereads missed what their event told of", stale, missed)
		}
	}
}

// A client that is called has one token, or none.
func TestCalledClientsForget(t *testing.T) {
	t.Parallel()
	client := newApp().fleet(1).Client(0)
	if n := client.Forget(t.Context()); n != 0 {
		t.Errorf("lost %d tokens before there was one", n)
	}
	client.Write(t.Context(), &record.Op{Version: 1})
	if n := client.Forget(t.Context()); n != 1 {
		t.Errorf("lost %d tokens", n)
	}
}
