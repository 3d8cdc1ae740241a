package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
	"github.com/tidegatedb/tidegate/internal/ledger"
)

// waterline is where a test finds what cancelled reads have left behind.
type waterline struct {
	t        *testing.T
	cluster  *fake.Cluster
	gate     *fake.Gate
	slots    int // that there are
	queueing time.Duration
	sessions []*tidegate.Session
}

// restored fails the test unless nothing of any read is left: none is in flight on a
// node or in a session, and the limit of reads that fall back admits its whole number
// at once, and no more.
func (w *waterline) restored() {
	w.t.Helper()
	core := w.gate.Core()
	head := core.Status()
	for _, n := range head.Nodes {
		if n.Flying != 0 {
			w.t.Errorf("%d reads are in flight on %s", n.Flying, n.Node)
		}
	}
	if head.FallbacksNow != 0 || head.FallbacksQueued != 0 {
		w.t.Errorf("%d reads hold slots, %d queue", head.FallbacksNow, head.FallbacksQueued)
	}
	for i, s := range w.sessions {
		l, ok := s.Ledger("fake", nil).(*ledger.Ledger)
		if !ok {
			w.t.Fatalf("session %d has no ledger", i)
		}
		l.Lock()
		if l.Busy() {
			w.t.Errorf("reads of session %d are in flight", i)
		}
		l.Unlock()
	}
	for _, n := range w.cluster.Nodes()[1:] {
		n.Pause()
	}
	w.cluster.Commit(1)
	_, applied, _ := w.cluster.Nodes()[0].Counts()
	need := tidegate.Mark{Cluster: "fake", Epoch: head.Epoch, Position: tidegate.At(10 * uint64(applied))}
	impatient := tidegate.NewCausal("impatient", "wants its slot now", tidegate.Wait(0))
	var held []*engine.Read
	for i := range w.slots {
		rd, began := &engine.Read{}, time.Now()
		ctx := tidegate.WithToken(w.t.Context(), tidegate.NewToken(need))
		if err := core.Begin(ctx, impatient, rd); err != nil || !rd.Primary() || time.Since(began) > 0 {
			w.t.Fatalf("slot %d of %d: %v after %v, %v", i+1, w.slots, err, time.Since(began), core.Decision(rd))
		}
		held = append(held, rd)
	}
	began := time.Now()
	err := core.Begin(tidegate.WithToken(w.t.Context(), tidegate.NewToken(need)), impatient, &engine.Read{})
	if !errors.Is(err, tidegate.ErrOverloaded) || time.Since(began) != w.queueing {
		w.t.Errorf("one more than there are slots: %v after %v", err, time.Since(began))
	}
	for _, rd := range held {
		core.End(rd)
	}
}

// A thousand reads are cancelled at any moment: waiting for proof, in the queue for the
// primary, connecting, with their statement under way. Replicas fall behind, hang, crash
// and go down meanwhile. Nothing of the reads is left, whether the limit of those that fall
// back is fixed or follows the work that belongs on the primary.
func TestCancelledReadsLeaveNothing(t *testing.T) {
	for name, fixed := range map[string]bool{"a fixed limit": true, "a limit that follows": false} {
		t.Run(name, func(t *testing.T) { cancelReads(t, fixed) })
	}
}

func cancelReads(t *testing.T, fixed bool) {
	synctest.Test(t, func(t *testing.T) {
		const reads, slots, queueing = 1000, 3, 12 * time.Millisecond
		var mu sync.Mutex
		dice := rand.New(rand.NewPCG(1, 2))
		upTo := func(d time.Duration) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(dice.Int64N(int64(d)))
		}
		c := fake.New(fake.Config{Replicas: 2, Delay: 15 * time.Millisecond, Recovery: 20 * time.Millisecond})
		var connecting, sent, unsent atomic.Int64
		opts := fake.Options{
			Core: engine.Config{Fallbacks: slots, FixedFallbacks: fixed, FallbackWait: queueing, ProofWait: 100 * time.Millisecond,
				ProbeInterval: 20 * time.Millisecond, ProbeTimeout: 50 * time.Millisecond},
			Delay: func(_ *fake.Node, op fake.Op) time.Duration {
				switch op {
				case fake.OpConnect:
					connecting.Add(1)
					return upTo(5 * time.Millisecond)
				case fake.OpRead:
					return upTo(15 * time.Millisecond)
				}
				return upTo(500 * time.Microsecond)
			},
			Breaks: func(_ *fake.Node, op fake.Op) bool { return op == fake.OpRead && upTo(100) < 3 },
		}
		g, err := c.Open(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		c.Commit(1)
		w := &waterline{t: t, cluster: c, gate: g, slots: slots, queueing: queueing}
		for range 50 { // reads of one session overlap
			w.sessions = append(w.sessions, tidegate.NewSession())
		}
		classes := []tidegate.Class{tidegate.Causal, tidegate.Causal, tidegate.Causal, strong, relaxedAny,
			tidegate.Relaxed("shed", "takes what it gets", tidegate.Within(time.Millisecond), tidegate.StaleWhenShed())}

		over, stop := context.WithCancel(t.Context())
		var others, all sync.WaitGroup
		others.Go(func() { // somebody writes, and servers have their troubles
			for i := 0; over.Err() == nil; i++ {
				c.Commit(int64(i % 10))
				n := c.Nodes()[1+i%2]
				switch i % 40 {
				case 3:
					n.Pause()
				case 12:
					n.Resume()
				case 17:
					n.Hang(true)
				case 20:
					n.Crash(1)
				case 23:
					n.Hang(false)
				case 26:
					n.Stop()
				case 34:
					n.Start()
				}
				for _, n := range c.Nodes()[1:] {
					if i%40 == 39 { // whole again
						n.Resume()
						n.Hang(false)
						n.Start()
					}
				}
				time.Sleep(5 * time.Millisecond)
			}
			for _, n := range c.Nodes()[1:] {
				n.Resume()
				n.Hang(false)
				n.Start()
			}
		})
		for i := range reads {
			s, class, limit := w.sessions[i%len(w.sessions)], classes[i%len(classes)], upTo(60*time.Millisecond)
			if i%3 == 0 {
				limit /= 20 // before anything is known, too
			}
			all.Go(func() {
				ctx, cancel := context.WithCancel(tidegate.WithSession(t.Context(), s))
				ctx, seen := tidegate.Observe(ctx)
				defer cancel()
				time.AfterFunc(limit, cancel)
				if i%4 == 0 {
					tidegate.Wrote(ctx, "fake") // it has to see all there is
				}
				began := time.Now()
				_, err := g.Look(ctx, class)
				if took := time.Since(began) - limit; took > 10*time.Millisecond {
					t.Errorf("a read ended %v after it was cancelled: %v", took, err)
				}
				switch _, decided := seen.Last(); {
				case !errors.Is(err, context.Canceled):
				case decided:
					sent.Add(1)
				default:
					unsent.Add(1)
				}
			})
			time.Sleep(upTo(4 * time.Millisecond))
		}
		all.Wait()
		stop()
		others.Wait()
		st := g.Core().Stats()
		t.Logf("%d cancelled before they were sent, %d behind that; %d waited, %d queued, %d shed; %d ways of connecting; began again: %v",
			unsent.Load(), sent.Load(), st.Waits, st.Queued, st.Shed, connecting.Load(), st.Retries)
		if min(unsent.Load(), sent.Load()) < 100 || st.Waits < 100 || st.Queued < 20 || st.Shed == 0 || connecting.Load() < 100 {
			t.Error("too little happened to prove anything")
		}
		time.Sleep(10 * time.Second) // a slot of a limit below one may rest
		if !fixed {
			w.slots = 1
		}
		w.restored()
	})
}
