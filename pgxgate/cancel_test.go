package pgxgate_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// goroutines returns a function that fails the test when there come to be more of them
// than now.
func goroutines(t *testing.T) (restored func()) {
	before := runtime.NumGoroutine()
	return func() {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				buf := make([]byte, 1<<20)
				t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
			}
		}
	}
}

// TestCancelledReadsLeaveNothing cancels a thousand reads of all kinds at any moment: while
// they wait for a replica, queue for the primary, wait for a connection, run, or have read
// half of their rows.
func TestCancelledReadsLeaveNothing(t *testing.T) {
	const (
		name          = "cancelled"
		reads, atOnce = 1000, 24
		slots         = 2
		queueing      = 15 * time.Millisecond
		longest       = 40 * time.Millisecond
	)
	c := cluster(t)
	restored := goroutines(t)
	var decided, undecided atomic.Int64 // when they were cancelled
	db := open(t, c, func(cfg *pgxgate.Config) {
		cfg.Nodes = marked(c, name)
		for i := range cfg.Nodes {
			cfg.Nodes[i].DSN += " pool_max_conns=10"
		}
		cfg.PrimaryReads, cfg.FallbackReads, cfg.FixedFallbacks, cfg.FallbackWait = 4, slots, true, queueing
	})
	const slow = "select pg_sleep(0.008)"
	// Each begins a read, and is done with it when ctx is over at the latest.
	kinds := map[string]func(ctx context.Context, r pgxgate.Reader, class tidegate.Class) error{
		"a statement": func(ctx context.Context, r pgxgate.Reader, _ tidegate.Class) error {
			_, err := r.Exec(ctx, slow)
			return err
		},
		"rows half read": func(ctx context.Context, r pgxgate.Reader, _ tidegate.Class) error {
			rows, err := r.Query(ctx, "select repeat('x', 1000) from generate_series(1, 10000)")
			if err != nil {
				return err
			}
			for i := 0; i < 10 && rows.Next(); i++ {
			}
			<-ctx.Done()
			rows.Close()
			return ctx.Err()
		},
		"one row": func(ctx context.Context, r pgxgate.Reader, _ tidegate.Class) error {
			var v int64
			return r.QueryRow(ctx, get, 1).Scan(&v)
		},
		"a batch": func(ctx context.Context, r pgxgate.Reader, _ tidegate.Class) error {
			b := &pgx.Batch{}
			b.Queue(slow)
			b.Queue(get, 1)
			return r.SendBatch(ctx, b).Close()
		},
		"a transaction": func(ctx context.Context, r pgxgate.Reader, _ tidegate.Class) error {
			return r.Tx(ctx, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, slow); return err })
		},
		"a pinned connection": func(ctx context.Context, _ pgxgate.Reader, class tidegate.Class) error {
			conn, err := db.Acquire(ctx, class)
			if err != nil {
				return err
			}
			defer conn.Release()
			_, err = conn.Conn().Exec(ctx, slow)
			return err
		},
	}
	classes := []tidegate.Class{tidegate.Causal, tidegate.Causal, tidegate.Causal, held,
		tidegate.Relaxed("shed", "takes what it gets", tidegate.Within(2*time.Millisecond), tidegate.StaleWhenShed())}
	var names []string
	for kind := range kinds {
		names = append(names, kind)
	}
	var sessions []context.Context
	for range 40 {
		ctx, _ := inSession(t)
		sessions = append(sessions, ctx)
	}
	cancelled := map[string]*atomic.Int64{}
	for kind := range kinds {
		cancelled[kind] = &atomic.Int64{}
	}

	over, stop := context.WithCancel(t.Context())
	var others, all sync.WaitGroup
	others.Go(func() { // replicas fall behind, and catch up
		for over.Err() == nil {
			for _, r := range c.Replicas() {
				if _, err := ask(context.WithoutCancel(over), r, "select pg_wal_replay_pause()"); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(20 * time.Millisecond)
			for _, r := range c.Replicas() {
				if _, err := ask(context.WithoutCancel(over), r, "select pg_wal_replay_resume()"); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(80 * time.Millisecond)
		}
	})
	others.Go(func() {
		for i := 0; over.Err() == nil; i++ {
			if _, err := db.Write().Exec(sessions[i%len(sessions)], update, 1, i); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Millisecond)
		}
	})
	// A busy machine decides few reads in time.
	for round := 0; round < 4 && (round == 0 || min(decided.Load(), undecided.Load()) < 50); round++ {
		var next atomic.Int64
		for range atOnce {
			all.Go(func() {
				for {
					i := int(next.Add(1)) - 1
					if i >= reads {
						return
					}
					kind, class := names[i%len(names)], classes[i%len(classes)]
					ctx, cancel := context.WithTimeout(sessions[rand.IntN(len(sessions))], time.Minute)
					ctx, seen := tidegate.Observe(ctx)
					timer := time.AfterFunc(rand.N(longest), cancel)
					err := kinds[kind](ctx, db.Read(class), class)
					switch _, sent := seen.Last(); {
					case !errors.Is(err, context.Canceled):
						if err != nil && !errors.Is(err, tidegate.ErrOverloaded) {
							t.Errorf("%s: %v", kind, err)
						}
					case sent:
						decided.Add(1)
						cancelled[kind].Add(1)
					default:
						undecided.Add(1)
						cancelled[kind].Add(1)
					}
					timer.Stop()
					cancel()
				}
			})
		}
		all.Wait()
	}
	stop()
	others.Wait()
	for kind, n := range cancelled {
		if n.Load() < 10 {
			t.Errorf("%s: %d were cancelled, which proves nothing", kind, n.Load())
		}
	}
	st := db.Stats()
	t.Logf("%d cancelled before they were sent, %d behind that; %d waited, %d queued, %d shed; began again: %v",
		undecided.Load(), decided.Load(), st.Waits, st.Queued, st.Shed, st.Retries)
	if min(decided.Load(), undecided.Load()) < 50 || st.Waits < 50 || st.Queued < 20 {
		t.Error("too little happened to prove anything")
	}

	// Connections whose statement was cancelled are closed behind the caller's back.
	eventually(t, "all connections to be free", func() bool { return db.AcquiredConns() == 0 })
	s := db.Status()
	for _, n := range s.Nodes {
		if n.Flying != 0 {
			t.Errorf("%d reads are in flight on %s", n.Flying, n.Node)
		}
	}
	if s.FallbacksNow != 0 || s.FallbacksQueued != 0 {
		t.Errorf("%d reads hold slots, %d queue", s.FallbacksNow, s.FallbacksQueued)
	}
	for i, ctx := range sessions {
		l := tidegate.SessionFrom(ctx).Ledger("main", nil).(*ledger.Ledger)
		l.Lock()
		if l.Busy() {
			t.Errorf("reads of session %d are in flight", i)
		}
		l.Unlock()
	}

	// There is room for as many reads that fall back as ever, and for no more.
	for _, r := range c.Replicas() {
		pause(t, r)
	}
	ctx, _ := inSession(t)
	must[any](t)(db.Write().Exec(ctx, update, key(t), 1))
	queued := db.Stats().Queued
	var conns []*pgxgate.Conn
	for range slots {
		conn := must[*pgxgate.Conn](t)(db.Acquire(ctx, tidegate.Causal))
		if d := conn.Decision(); d.Role != tidegate.RolePrimary || d.Queued > 0 {
			t.Errorf("%v", d)
		}
		conns = append(conns, conn)
	}
	if _, err := db.Acquire(ctx, tidegate.Causal); !errors.Is(err, tidegate.ErrOverloaded) || db.Stats().Queued != queued+1 {
		t.Errorf("one more than there is room for: %v", err)
	}
	for _, conn := range conns {
		conn.Release()
	}
	db.Close()
	restored()
	for _, s := range c.Servers() {
		eventually(t, "the connections to "+s.Name+" to end", func() bool { return connections(t, s, name) == 0 })
	}
}
