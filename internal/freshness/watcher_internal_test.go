package freshness

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/mono"
)

func TestProbeIsPublished(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := healthy(2)
		nodes[1].takes = 3 * time.Millisecond
		w := New(calm(asSources(nodes)...))
		before := w.Table()
		if before.Primary != NoNode || before.Epoch.Known() || len(before.Nodes) != 2 {
			t.Fatalf("before the start: %+v", before)
		}
		sent := mono.Now()
		w.Start(t.Context())
		defer w.Close()
		<-before.Next()
		<-w.First()
		n := &w.Table().Nodes[1]
		if n.Obs == nil || n.Sent != sent || n.Obs.Sent != sent || n.Obs.Received != sent+int64(3*time.Millisecond) {
			t.Errorf("sent at %d: %+v", sent, n.Obs)
		}
		if n.Applied != tidegate.At(100) || n.Incarnation != 11 || !n.Usable || n.Err != nil {
			t.Errorf("%+v", n)
		}
		if before.Nodes[1].Obs != nil {
			t.Error("a published table has changed")
		}
		select {
		case <-w.Table().Next():
			t.Error("the newest table counts as replaced")
		default:
		}
	})
}

func TestFirstIsClosedWhenAllWereProbed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := healthy(3)
		nodes[1].err = errDown
		nodes[2].takes = time.Minute // more than the timeout
		cfg := calm(asSources(nodes)...)
		cfg.Interval = 10 * time.Millisecond
		w := New(cfg)
		w.Start(t.Context())
		defer w.Close()
		time.Sleep(cfg.Timeout - time.Nanosecond)
		synctest.Wait()
		select {
		case <-w.First():
			t.Error("closed though one node has not been probed")
		default:
		}
		time.Sleep(time.Nanosecond)
		<-w.First()
		if err := w.Table().Nodes[2].Err; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after the timeout: %v", err)
		}
	})
}

func TestFailedProbeKeepsTheLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := healthy(2)
		cfg := calm(asSources(nodes)...)
		cfg.Interval = 100 * time.Millisecond
		w := running(t, cfg)
		was := w.Table().Nodes[1].Obs
		nodes[1].set(func(s *source) { s.err = errDown })
		nodes[1].probes()
		time.Sleep(5 * time.Second)
		since := nodes[1].probes()[0]
		n := w.Table().Nodes[1]
		if n.Usable || n.Current != 0 || !errors.Is(n.Err, errDown) || n.FailedSince != since {
			t.Errorf("usable %v, current at %d, error %v, failed since %d, want %d", n.Usable, n.Current, n.Err, n.FailedSince, since)
		}
		if n.Obs == nil || n.Obs.Sent < was.Sent || n.Sent != n.Obs.Sent || n.Sent >= since || n.Applied != tidegate.At(100) || n.Incarnation != 11 {
			t.Errorf("the last good look is lost: %+v", n)
		}
		nodes[1].set(func(s *source) { s.err, s.answer.Incarnation = nil, 77 })
		time.Sleep(2 * time.Second)
		n = w.Table().Nodes[1]
		if !n.Usable || n.Err != nil || n.FailedSince != 0 || n.Incarnation != 77 || n.Sent <= since {
			t.Errorf("after its return: %+v", n)
		}
	})
}

func TestIncompleteAnswerIsAnError(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*Observation){
		"no role":             func(o *Observation) { o.Role = tidegate.RoleUnknown },
		"no incarnation":      func(o *Observation) { o.Incarnation = 0 },
		"no system":           func(o *Observation) { o.Epoch.System = 0 },
		"a primary's no line": func(o *Observation) { o.Role, o.Epoch.Line = tidegate.RolePrimary, 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				nodes := healthy(2)
				spoil(&nodes[1].answer)
				w := running(t, calm(asSources(nodes)...))
				if n := w.Table().Nodes[1]; n.Obs != nil || !errors.Is(n.Err, errIncomplete) || n.Usable {
					t.Errorf("taken for a look: %+v", n)
				}
			})
		})
	}
	o := says(1, 100)
	if o.Epoch.Line = 0; o.check() != nil {
		t.Error("a replica that cannot tell its line is refused")
	}
}

func TestStaleness(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := healthy(3)
		cfg := calm(asSources(nodes)...)
		cfg.Interval = 100 * time.Millisecond
		w := running(t, cfg)
		old := func(node int) time.Duration {
			current := w.Table().Nodes[node].Current
			if current == 0 {
				return -1
			}
			return time.Duration(mono.Now() - current)
		}
		time.Sleep(10 * time.Minute)
		for _, i := range []int{1, 2} {
			if age := old(i); age < 0 || age > 110*time.Millisecond {
				t.Errorf("after ten minutes without writes node %d may be %v old", i, age)
			}
		}
		if old(0) != -1 {
			t.Error("the primary has an age")
		}
		// The link of node 1 is cut: what it received it has applied.
		nodes[0].set(func(s *source) { s.answer.Applied, s.answer.Ceiling = tidegate.At(200), tidegate.At(200) })
		nodes[2].set(func(s *source) { s.answer.Applied = tidegate.At(200) })
		time.Sleep(time.Minute)
		if age := old(1); age < time.Minute || age > time.Minute+110*time.Millisecond {
			t.Errorf("a minute after the first write that it misses it may be %v old", age)
		}
		if age := old(2); age < 0 || age > 110*time.Millisecond {
			t.Errorf("one that has the write may be %v old", age)
		}
		// It is ahead of the newest look at the primary: as old as that look.
		nodes[0].set(func(s *source) { s.err = errDown })
		nodes[1].set(func(s *source) { s.answer.Applied = tidegate.At(999) })
		time.Sleep(time.Minute)
		for _, i := range []int{1, 2} {
			if age := old(i); age < 59*time.Second || age > 61*time.Second {
				t.Errorf("a minute without the primary node %d may be %v old", i, age)
			}
		}
		// A promotion: of the looks at the former primary those still count that the new
		// history contains.
		nodes[2].set(func(s *source) {
			s.answer.Role, s.answer.Epoch, s.answer.Applied, s.answer.Ceiling = tidegate.RolePrimary, second, tidegate.At(300), tidegate.At(300)
			s.answer.Lineage = &Lineage{Branches: []Branch{{Epoch: first, End: tidegate.At(150)}}, Complete: true}
		})
		nodes[1].set(func(s *source) { s.answer.Epoch, s.answer.Applied = second, tidegate.At(250) })
		time.Sleep(time.Second)
		if n, age := w.Table().Nodes[1], old(1); !n.Usable || age < 2*time.Minute || age > 3*time.Minute {
			t.Errorf("usable %v, %v old: the last look within the common history was two minutes ago", n.Usable, age)
		}
		nodes[1].set(func(s *source) { s.answer.Applied = tidegate.At(300) })
		time.Sleep(time.Second)
		if age := old(1); age < 0 || age > 110*time.Millisecond {
			t.Errorf("one that has all of the new history may be %v old", age)
		}
	})
}

// The primary may have committed more while its answer was on the way.
func TestStalenessCountsFromTheSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := healthy(2)
		nodes[0].takes = 30 * time.Millisecond
		w := running(t, calm(asSources(nodes)...))
		table := w.Table()
		if got, want := table.Nodes[1].Current, table.Nodes[0].Obs.Sent; got != want {
			t.Errorf("current at %d, the primary was asked at %d", got, want)
		}
	})
}

func TestResultsAreTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := healthy(2)
		told := map[int]int{}
		cfg := calm(asSources(nodes)...)
		var w *Watcher
		cfg.Probed = func(r Result) {
			if told[r.Node]++; r.Table.Nodes[r.Node].Obs == nil || r.Table != w.Table() {
				t.Errorf("node %d: told before the table says so", r.Node)
			}
			if took := r.Received - r.Sent; took != int64(nodes[r.Node].takes) || r.Err != nil {
				t.Errorf("node %d: took %d ns, %v", r.Node, took, r.Err)
			}
		}
		nodes[1].takes = time.Microsecond
		w = New(cfg)
		w.Start(t.Context())
		<-w.First()
		look(w, 1)
		time.Sleep(time.Millisecond)
		w.Close()
		if told[0] != 1 || told[1] != 2 {
			t.Errorf("told %v, want once of node 0 and twice of node 1", told)
		}
	})
}

// The bubble itself fails when a goroutine is left.
func TestCloseLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *Watcher, cancel func()){
		"close":                   func(w *Watcher, _ func()) { w.Close() },
		"close twice":             func(w *Watcher, _ func()) { w.Close(); w.Close() },
		"the context, then close": func(w *Watcher, cancel func()) { cancel(); w.Close() },
		"the context alone":       func(_ *Watcher, cancel func()) { cancel(); synctest.Wait() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				nodes := healthy(3)
				nodes[2].takes = 500 * time.Millisecond // is under way at the end
				cfg := calm(asSources(nodes)...)
				cfg.Interval = 10 * time.Millisecond
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				w := New(cfg)
				w.Start(ctx)
				time.Sleep(100 * time.Millisecond)
				w.WantShown(tidegate.At(500))
				end(w, cancel)
				for i, n := range nodes {
					n.probes()
					n.set(func(s *source) {
						if s.flying != 0 {
							t.Errorf("node %d is being probed after the end", i)
						}
					})
				}
				time.Sleep(time.Minute)
				for i, n := range nodes {
					if got := len(n.probes()); got != 0 {
						t.Errorf("%d probes of node %d after the end", got, i)
					}
				}
				if n := w.Table().Nodes[2]; n.Obs != nil || n.Err != nil {
					t.Errorf("the probe that was broken off was published: %+v", n)
				}
			})
		})
	}
	New(calm()).Close() // one that has not started
}
