package freshness

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// stage is a cluster whose primary can be older than its replicas. Node 0 is the
// primary; the methods of all nodes leave a note of who was asked what.
type stage struct {
	nodes []*source
	w     *Watcher

	mu     sync.Mutex
	calls  []string // "snapshot 0", "committed 1", ...
	times  []int64
	flying int
	most   int
	// What the nodes say: the list that the replica has and the primary lacks,
	// how often the primary denies, and what is open there.
	missing, open Transactions
	denials       int
	errs          map[string]error
	// at, if not nil, is called in each call.
	at func(call string)
}

// actor is one node of a stage.
type actor struct {
	*source
	s *stage
	i int
}

func (a actor) call(what string) error {
	s := a.s
	call := what + " " + string(rune('0'+a.i))
	s.mu.Lock()
	s.calls, s.times = append(s.calls, call), append(s.times, mono.Now())
	s.flying++
	s.most = max(s.most, s.flying)
	at := s.at
	s.mu.Unlock()
	if at != nil {
		at(call)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flying--
	return s.errs[call]
}

func (a actor) denied() bool {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.s.denials--
	return a.s.denials >= 0
}

func (a actor) applied() tidegate.Position {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answer.Applied
}

func (a actor) Snapshot(context.Context) (Snapshot, error) { return "snapshot", a.call("snapshot") }

func (a actor) Committed(_ context.Context, s Snapshot) (tidegate.Position, Transactions, error) {
	if err := a.call("committed"); err != nil || s != "snapshot" {
		return tidegate.Position{}, nil, err
	}
	return a.applied(), a.s.missing, nil
}

func (a actor) Shows(_ context.Context, t Transactions) (bool, error) {
	return !a.denied() && t == a.s.missing, a.call("shows")
}

func (a actor) Open(context.Context) (tidegate.Position, Transactions, error) {
	return a.applied(), a.s.open, a.call("open")
}

func (a actor) Ended(_ context.Context, t Transactions) (bool, error) {
	return !a.denied() && t == a.s.open, a.call("ended")
}

// played runs a test over a stage whose node i has applied at[i].
func played(t *testing.T, at []uint64, test func(s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{errs: map[string]error{}}
		var sources []Source
		for i, p := range at {
			n := &source{answer: says(i, p)}
			s.nodes = append(s.nodes, n)
			sources = append(sources, actor{n, s, i})
		}
		s.w = running(t, calm(sources...))
		test(s)
	})
}

// said returns the calls since the last time.
func (s *stage) said() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls, s.times = nil, nil
	return calls
}

func (s *stage) apply(node int, at uint64) {
	s.nodes[node].set(func(n *source) { n.answer.Applied = tidegate.At(at) })
}

func expect(t *testing.T, s *stage, shown tidegate.Position, calls ...string) {
	t.Helper()
	if got := s.w.Table().Shown; got != shown {
		t.Errorf("proven to be shown: %v, want %v", got, shown)
	}
	if got := s.said(); calls != nil && !slices.Equal(got, calls) {
		t.Errorf("asked %q, want %q", got, calls)
	}
}

func TestShownByReplica(t *testing.T) {
	t.Parallel()
	played(t, []uint64{100, 90, 95}, func(s *stage) {
		s.w.WantShown(tidegate.At(80))
		synctest.Wait()
		// The newest replica says most, and all that it says counts.
		expect(t, s, tidegate.At(95), "snapshot 0", "committed 2")
		s.w.WantShown(tidegate.At(95))
		time.Sleep(2 * time.Second)
		expect(t, s, tidegate.At(95), []string{}...)
		if got := s.said(); len(got) != 0 {
			t.Errorf("what is proven is asked again: %q", got)
		}
	})
}

func TestShownWhenThePrimaryIsOlder(t *testing.T) {
	t.Parallel()
	played(t, []uint64{100, 90}, func(s *stage) {
		s.missing, s.denials = "a list", 8
		s.w.WantShown(tidegate.At(90))
		time.Sleep(20 * time.Millisecond)
		s.mu.Lock()
		pauses := gaps(s.times)
		s.mu.Unlock()
		shows := slices.Repeat([]string{"shows 0"}, 9)
		expect(t, s, tidegate.At(90), append([]string{"snapshot 0", "committed 1"}, shows...)...)
		// One list, then the primary alone: a few times at once, then patiently.
		us := func(n int) time.Duration { return time.Duration(n) * time.Microsecond }
		want := []time.Duration{0, 0, 0, 0, 0, us(500), us(1000), us(2000), us(4000), us(5000)}
		if !slices.Equal(pauses, want) {
			t.Errorf("paused for %v, want %v", pauses, want)
		}
	})
}

func TestShownByOpenTransactions(t *testing.T) {
	t.Parallel()
	for name, at := range map[string][]uint64{"all replicas are behind": {100, 50, 60}, "no replica": {100}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			played(t, at, func(s *stage) {
				s.open, s.denials = "a list", 3
				s.w.WantShown(tidegate.At(90))
				time.Sleep(100 * time.Millisecond)
				expect(t, s, tidegate.At(100))
			})
		})
	}
}

func TestShownByOpenTransactionsNeedsAPositionThatCovers(t *testing.T) {
	t.Parallel()
	played(t, []uint64{85, 50}, func(s *stage) {
		s.w.WantShown(tidegate.At(90))
		time.Sleep(500 * time.Millisecond)
		if got := s.said(); !slices.Contains(got, "open 0") || slices.Contains(got, "ended 0") {
			t.Errorf("asked %q", got)
		}
		expect(t, s, tidegate.At(50)) // what the replica could prove
	})
}

// One idle writer on the primary must not hold up what a replica can prove by
// now.
func TestShownSwitchesToAReplicaThatCaughtUp(t *testing.T) {
	t.Parallel()
	played(t, []uint64{100, 50}, func(s *stage) {
		s.open, s.denials = "an idle writer", 1<<30
		s.w.WantShown(tidegate.At(90))
		time.Sleep(100 * time.Millisecond)
		if got := s.said(); got[len(got)-1] != "ended 0" {
			t.Fatalf("does not wait for the open transaction: %q", got)
		}
		s.apply(1, 95)
		look(s.w, 1)
		time.Sleep(10 * time.Millisecond)
		expect(t, s, tidegate.At(95))
	})
}

func TestShownAfterErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		call string
		at   []uint64
	}{
		{"snapshot 0", []uint64{100, 90}},
		{"committed 1", []uint64{100, 90}},
		{"shows 0", []uint64{100, 90}},
		{"open 0", []uint64{100, 50}},
		{"ended 0", []uint64{100, 50}},
	} {
		t.Run(c.call, func(t *testing.T) {
			t.Parallel()
			played(t, c.at, func(s *stage) {
				s.missing, s.open = "a list", "a list"
				s.errs[c.call] = errDown
				s.w.WantShown(tidegate.At(80))
				time.Sleep(300 * time.Millisecond)
				if got := s.w.Table().Shown; got.Covers(tidegate.At(80)) {
					t.Errorf("proven by an error: %v", got)
				}
				calls := 0
				for _, call := range s.said() {
					if call == c.call {
						calls++
					}
				}
				if calls < 2 || calls > 300 {
					t.Errorf("asked %d times in 300ms", calls)
				}
				s.mu.Lock()
				delete(s.errs, c.call)
				s.mu.Unlock()
				time.Sleep(100 * time.Millisecond)
				if got := s.w.Table().Shown; !got.Covers(tidegate.At(80)) {
					t.Errorf("not proven after the error has gone: %v", got)
				}
			})
		})
	}
}

func TestShownGoesToAnotherReplicaAfterAnError(t *testing.T) {
	t.Parallel()
	played(t, []uint64{100, 90, 95}, func(s *stage) {
		s.errs["committed 2"] = errDown
		s.w.WantShown(tidegate.At(85))
		time.Sleep(100 * time.Millisecond)
		expect(t, s, tidegate.At(90), "snapshot 0", "committed 2", "snapshot 0", "committed 1")
	})
}
