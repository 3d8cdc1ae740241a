package ledger

import (
	"slices"
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
)

// One read on replica A, which ended at 50, and what a table says of it.
func TestReadIsBounded(t *testing.T) {
	t.Parallel()
	strict := replicaNode(idA, 90, 60)
	strict.bound = beyond(90)
	loose := strict
	loose.loose = true
	for _, c := range []struct {
		name string
		in   *freshness.Table
		want tidegate.Position // of the mark; 80 as long as nothing is known
		asks uint64
	}{
		{"by itself", table(primaryNode(100, 40), replicaNode(idA, 90, 60)), at(90), 0},
		{"by itself, in the midst of a record", table(primaryNode(100, 40), strict), beyond(90), 0},
		{"by itself, no primary", table(replicaNode(idA, 90, 60)), at(90), 0},
		{"by the primary", table(primaryNode(100, 60), replicaNode(idA, 90, 40)), at(100), 0},
		{"by the primary, it is gone", table(primaryNode(100, 60), replicaNode(idGone, 90, 60)), at(100), 0},
		{"by both, itself is less", table(primaryNode(100, 60), replicaNode(idA, 90, 60)), at(90), 0},
		{"by both, the primary is less", table(primaryNode(90, 55), replicaNode(idA, 95, 60)), at(90), 0},
		{"by both, the primary at the same number", table(primaryNode(90, 55), strict), at(90), 0},
		{"by itself although it does not answer now", table(primaryNode(100, 40), func() seenNode {
			n := replicaNode(idA, 90, 60)
			n.down = true
			return n
		}()), at(90), 0},
		{"by itself, nothing is known to follow, no primary", table(loose), beyond(90), 0},
		{"nothing is known to follow, and the primary can tell better", table(primaryNode(90, 40), loose), at(80), 0b11},
		{"nothing is known to follow, and the primary tells better", table(primaryNode(90, 60), loose), at(90), 0},
		{"both looks are earlier", table(primaryNode(100, 40), replicaNode(idA, 90, 40)), at(80), 0b11},
		{"both looks were sent just then", table(primaryNode(100, 50), replicaNode(idA, 90, 50)), at(80), 0b11},
		{"it is gone and the primary's look is earlier", table(primaryNode(100, 40), replicaNode(idGone, 90, 60)), at(80), 0b01},
		{"no primary and its look is earlier", table(replicaNode(idA, 90, 40), replicaNode(idB, 90, 60)), at(80), 0b11},
		{"the primary does not answer", table(func() seenNode {
			n := primaryNode(100, 60)
			n.down = true
			return n
		}(), replicaNode(idA, 90, 40), replicaNode(idB, 90, 60)), at(80), 0b111},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := marked(80)
			read(l, usual(1), 1, 50)
			status, shown := Settled, c.want
			if c.want == at(80) {
				status, shown = Open, tidegate.Position{}
			}
			wants(t, l, c.in, status, c.asks)
			needs(t, l, c.want, shown)
			if open := len(l.seen) == 1; open != (status == Open) {
				t.Errorf("seen is %v", ids(l))
			}
		})
	}
}

func TestBoundNeverLowersTheMark(t *testing.T) {
	t.Parallel()
	l := marked(95)
	read(l, usual(1), 1, 50)
	wants(t, l, table(primaryNode(100, 40), replicaNode(idA, 90, 60)), Settled, 0)
	needs(t, l, at(95), at(90))
}

func TestReadInFlightKeepsItsEntry(t *testing.T) {
	t.Parallel()
	l := marked(80)
	dispatch(l, usual(1), 1) // is going on all the time
	wants(t, l, usual(20), Settled, 0)
	needs(t, l, at(80), tidegate.Position{})
	read(l, usual(1), 1, 50)
	wants(t, l, table(primaryNode(100, 40), replicaNode(idA, 90, 60)), Settled, 0)
	needs(t, l, at(90), at(90))
	if !slices.Equal(ids(l), []tidegate.Incarnation{idA}) {
		t.Fatalf("seen is %v although a read is in flight", ids(l))
	}
	// It ends, and can have shown more than the look that was sent before said.
	l.Done(idA, 70)
	wants(t, l, table(primaryNode(100, 40), replicaNode(idA, 90, 60)), Open, 0b11)
	wants(t, l, table(primaryNode(100, 40), replicaNode(idA, 95, 80)), Settled, 0)
	needs(t, l, at(95), at(95))
	if len(l.seen) != 0 {
		t.Errorf("seen is %v", ids(l))
	}
}

// Ends of parallel reads are noted in any order: the latest counts.
func TestEndsOutOfOrder(t *testing.T) {
	t.Parallel()
	l := marked(80)
	dispatch(l, usual(1), 1)
	dispatch(l, usual(1), 1)
	l.Done(idA, 60)
	l.Done(idA, 50)
	wants(t, l, table(primaryNode(100, 40), replicaNode(idA, 90, 55)), Open, 0b11)
	wants(t, l, table(primaryNode(100, 40), replicaNode(idA, 90, 61)), Settled, 0)
}

func TestEntriesAreBoundedOneByOne(t *testing.T) {
	t.Parallel()
	l := marked(80)
	read(l, usual(1), 1, 50)
	read(l, usual(1), 2, 70)
	in := table(primaryNode(100, 40), replicaNode(idA, 90, 60), replicaNode(idB, 95, 60))
	wants(t, l, in, Open, 0b101)
	needs(t, l, at(90), at(90))
	if !slices.Equal(ids(l), []tidegate.Incarnation{idB}) {
		t.Errorf("seen is %v, want B alone", ids(l))
	}
}

func TestDispatchDoneUndo(t *testing.T) {
	t.Parallel()
	in := usual(1)
	l := New("main", 1, nil)
	if !l.Fresh() {
		t.Error("a new session is not fresh")
	}
	dispatch(l, in, 1)
	if l.Fresh() || l.epoch != first {
		t.Errorf("after a dispatch: fresh %v, epoch %+v", l.Fresh(), l.epoch)
	}
	l.Undo(idA) // never sent: nothing was seen
	if !l.Fresh() || len(l.seen) != 0 {
		t.Errorf("after its undoing seen is %v", ids(l))
	}
	dispatch(l, in, 1)
	dispatch(l, in, 1)
	l.Undo(idA)
	if len(l.seen) != 1 || l.seen[0].fly != 1 || l.seen[0].since != 0 {
		t.Errorf("one of two was undone: %+v", l.seen)
	}
	l.Done(idA, 50)
	dispatch(l, in, 1)
	l.Undo(idA)
	if len(l.seen) != 1 || l.seen[0].fly != 0 || l.seen[0].since != 50 {
		t.Errorf("a read that was seen is lost with one that was not sent: %+v", l.seen)
	}
	l.Done(idForeign, 60) // nobody knows it
	l.Undo(idForeign)
	if len(l.seen) != 1 {
		t.Errorf("%+v", l.seen)
	}
}

func TestMoreThanFitsBecomesCatchUp(t *testing.T) {
	t.Parallel()
	l := marked(80)
	in := usual(1)
	for id := range tidegate.Incarnation(maxEntries) {
		in.Nodes[1].Incarnation = 1000 + id
		read(l, in, 1, 50)
	}
	if l.catch.open || len(l.seen) != maxEntries {
		t.Fatalf("%d entries fit, and there are %d; catch-up %v", maxEntries, len(l.seen), l.catch.open)
	}
	in.Nodes[1].Incarnation = 2000
	dispatch(l, in, 1) // this one is in flight
	if !l.catch.open || !slices.Equal(ids(l), []tidegate.Incarnation{2000}) {
		t.Fatalf("one too many: catch-up %v, seen %v", l.catch.open, ids(l))
	}
	for id := range tidegate.Incarnation(maxEntries) {
		in.Nodes[1].Incarnation = 3000 + id
		dispatch(l, in, 1)
	}
	if len(l.seen) != maxEntries+1 {
		t.Errorf("reads in flight are dropped: %v", ids(l))
	}
	l.Done(2000, 60)
	l.Done(3000, 60)
}
