package freshness

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestPendingIsAskedAndForgotten(t *testing.T) {
	t.Parallel()
	const s = int64(time.Second)
	var set pendingSet
	now := func(at int64, want ...uint64) {
		t.Helper()
		got := set.now(at)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("at %v the probe asks about %v, want %v", time.Duration(at), got, want)
		}
	}
	set.want(nil)
	now(1 * s)
	set.want([]uint64{7, 8})
	now(100*s, 7, 8) // a wish has no age before it was asked once
	now(105*s, 7, 8)
	set.want([]uint64{8})
	now(109*s, 7, 8)
	now(111*s, 8) // nobody has repeated the wish for 7
	now(119*s, 8)
	now(120 * s)
	set.want([]uint64{7})
	now(121*s, 7)
}

func TestPendingIsBounded(t *testing.T) {
	t.Parallel()
	var set pendingSet
	for p := range uint64(maxPendingAsked + 10) {
		set.want([]uint64{p + 1})
	}
	if got := len(set.now(1)); got != maxPendingAsked {
		t.Fatalf("%d asked in one probe, at most %d", got, maxPendingAsked)
	}
	// A full set still keeps those alive that somebody repeats.
	set.want([]uint64{1})
	if got := set.now(1 + pendingLife + 1); !slices.Equal(got, []uint64{1}) {
		t.Errorf("asked about %v, want 1 alone", got)
	}
	set.want([]uint64{maxPendingAsked + 5})
	if got := set.now(1 + pendingLife + 2); len(got) != 2 {
		t.Errorf("there is room again, and %v is asked", got)
	}
}

func TestSettledNeedsTheQuestion(t *testing.T) {
	t.Parallel()
	o := Observation{Asked: []uint64{1, 2}, Running: []uint64{2}}
	for process, want := range map[uint64]bool{1: true, 2: false, 3: false} {
		if got := o.Settled(process); got != want {
			t.Errorf("process %d settled: %v, want %v", process, got, want)
		}
	}
}

func TestPendingGoesOutWithTheNextProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := healthy(1)
		w := running(t, calm(asSources(nodes)...))
		w.WantSettled([]uint64{42})
		look(w, 0)
		nodes[0].set(func(s *source) {
			if last := s.pending[len(s.pending)-1]; !slices.Equal(last, []uint64{42}) {
				t.Errorf("the probe asked about %v, want 42", last)
			}
			if len(s.pending[0]) != 0 {
				t.Errorf("the first probe asked about %v", s.pending[0])
			}
		})
		if !w.Table().Nodes[0].Obs.Settled(42) {
			t.Error("the table does not say that it is gone")
		}
	})
}
