package freshness

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
)

// promote makes node 1 the primary of a new history at the position, followed by
// the other replicas; node 0 does not answer any more.
func (s *stage) promote(at uint64) {
	s.nodes[0].set(func(n *source) { n.err = errDown })
	for i, n := range s.nodes[1:] {
		n.set(func(n *source) {
			n.answer.Epoch, n.answer.Applied = second, tidegate.At(at)
			if i == 0 {
				n.answer.Role, n.answer.Ceiling = tidegate.RolePrimary, tidegate.At(at)
			}
		})
	}
	for i := range s.nodes {
		s.w.Demand(i, 1)
	}
}

func TestWishIsSharedAndLooksComeOneAtATime(t *testing.T) {
	t.Parallel()
	played(t, []uint64{100, 90}, func(s *stage) {
		s.missing, s.denials = "a list", 5
		s.at = func(string) { time.Sleep(time.Millisecond) }
		for i := range 100 {
			go s.w.WantShown(tidegate.At(uint64(i % 90)))
		}
		time.Sleep(2 * time.Millisecond)
		for range 100 {
			go s.w.WantShown(tidegate.At(90))
		}
		time.Sleep(100 * time.Millisecond)
		calls := s.said()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.most != 1 {
			t.Errorf("%d looks at a time", s.most)
		}
		snapshots := len(slices.DeleteFunc(slices.Clone(calls), func(c string) bool { return c != "snapshot 0" }))
		if got := s.w.Table().Shown; got != tidegate.At(90) || snapshots != 1 {
			t.Errorf("200 wishes took %d looks to prove %v: %q", snapshots, got, calls)
		}
	})
}

func TestWishEnds(t *testing.T) {
	t.Parallel()
	played(t, []uint64{100, 90}, func(s *stage) {
		s.w.WantShown(tidegate.At(500)) // nobody ever has it
		time.Sleep(900 * time.Millisecond)
		if got := s.said(); len(got) == 0 {
			t.Fatal("nobody was asked")
		}
		s.w.WantShown(tidegate.At(400)) // the wish lives on
		time.Sleep(900 * time.Millisecond)
		if got := s.said(); len(got) == 0 || len(got) > 300 {
			t.Fatalf("asked %d times", len(got))
		}
		time.Sleep(200 * time.Millisecond)
		s.said()
		for _, n := range s.nodes {
			n.probes()
		}
		time.Sleep(time.Minute)
		if got := s.said(); len(got) != 0 {
			t.Errorf("after the wish has ended: %q", got)
		}
		for i, n := range s.nodes {
			if got := len(n.probes()); got != 0 {
				t.Errorf("after the wish has ended node %d was probed %d times", i, got)
			}
		}
		// What nobody could prove is forgotten: a new wish stands alone.
		s.w.WantShown(tidegate.At(90))
		time.Sleep(10 * time.Millisecond)
		s.said()
		time.Sleep(time.Second)
		expect(t, s, tidegate.At(90), []string{}...)
	})
}

// The wish is shared: one session that wants what nothing has must not cost the
// others their proof.
func TestGreedyWishDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	for name, greedy := range map[string]tidegate.Position{
		"far ahead": tidegate.At(500), "beyond an idle history's end": tidegate.Beyond(100),
	} {
		for what, at := range map[string][]uint64{"with a replica": {100, 100}, "without": {100}} {
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()
				played(t, at, func(s *stage) {
					s.w.WantShown(greedy)
					s.w.WantShown(tidegate.At(100))
					time.Sleep(100 * time.Millisecond)
					expect(t, s, tidegate.At(100))
				})
			})
		}
	}
}

func TestSmallerWishDoesNotReplaceAGreater(t *testing.T) {
	t.Parallel()
	played(t, []uint64{100, 50}, func(s *stage) {
		s.w.WantShown(tidegate.At(90))
		s.w.WantShown(tidegate.At(10))
		time.Sleep(100 * time.Millisecond)
		expect(t, s, tidegate.At(100))
	})
}

func TestProofOfAFormerHistoryIsNotPublished(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		during  string // the call under which the history changes
		denials int
	}{{"snapshot 0", 0}, {"committed 2", 0}, {"shows 0", 0}, {"shows 0", 1 << 30}} {
		t.Run(c.during, func(t *testing.T) {
			t.Parallel()
			played(t, []uint64{100, 90, 95}, func(s *stage) {
				s.missing, s.denials = "a list", c.denials
				promoted := false
				s.at = func(call string) {
					switch {
					case call == c.during && !promoted:
						promoted = true
						s.promote(70)
						time.Sleep(time.Millisecond) // the watcher learns of it
					case call == "shows 0" && promoted:
						t.Error("the former primary is asked")
					}
				}
				s.w.WantShown(tidegate.At(80))
				time.Sleep(500 * time.Millisecond)
				table := s.w.Table()
				if !promoted || table.Epoch != second || table.Primary != 1 {
					t.Fatalf("no promotion: %+v", table)
				}
				expect(t, s, tidegate.Position{})
			})
		})
	}
}

// A wish of the former history can carry a higher number than the new one has.
func TestWishOfAFormerHistoryIsDropped(t *testing.T) {
	t.Parallel()
	played(t, []uint64{100, 90, 95}, func(s *stage) {
		s.w.WantShown(tidegate.At(99))
		s.promote(70)
		synctest.Wait()
		if s.w.Table().Epoch != second {
			t.Fatal("no promotion")
		}
		time.Sleep(30 * time.Millisecond)
		s.said()
		time.Sleep(300 * time.Millisecond)
		expect(t, s, tidegate.Position{}, []string{}...)
		s.w.WantShown(tidegate.At(60))
		time.Sleep(100 * time.Millisecond)
		expect(t, s, tidegate.At(70), "snapshot 1", "committed 2")
	})
}

func TestWishWaitsForAPrimary(t *testing.T) {
	t.Parallel()
	played(t, []uint64{100, 90}, func(s *stage) {
		s.nodes[0].set(func(n *source) { n.err = errDown })
		look(s.w, 0)
		s.w.WantShown(tidegate.At(80))
		time.Sleep(500 * time.Millisecond)
		expect(t, s, tidegate.Position{}, []string{}...)
	})
}

// Engines whose primary never is older than its replicas have no Prover.
func TestWishWithoutProvers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := healthy(2)
		w := running(t, calm(asSources(nodes)...))
		w.WantShown(tidegate.At(80))
		time.Sleep(5 * time.Second)
		if got := w.Table().Shown; !got.IsZero() {
			t.Errorf("proven by nobody: %v", got)
		}
	})
}
