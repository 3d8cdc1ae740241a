package ledger

import (
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// carried sends marks through a token's wire form.
func carried(t *testing.T, marks []tidegate.Mark) []tidegate.Mark {
	t.Helper()
	b, err := tidegate.NewToken(marks...).AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := tidegate.ParseBinary(b)
	if err != nil {
		t.Fatal(err)
	}
	return token.Marks()
}

func TestMarksGoFromLedgerToLedger(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(l *Ledger){
		"nothing":       func(*Ledger) {},
		"a write":       func(l *Ledger) { l.Reached(first, at(80)) },
		"a strict mark": func(l *Ledger) { l.Reached(first, beyond(80)) },
		"reads":         func(l *Ledger) { read(l, usual(1), 1, 50); read(l, usual(1), 2, 60) },
		"a read in flight": func(l *Ledger) {
			l.Reached(first, at(80))
			dispatch(l, usual(1), 1)
		},
		"a bounded read": func(l *Ledger) { read(l, usual(1), 1, 50); settle(l, usual(60)) },
		"a duty":         func(l *Ledger) { l.CatchUp() },
		"a duty and more": func(l *Ledger) {
			l.Reached(first, at(80))
			l.Owe(idPrimary, []uint64{7, 8})
			read(l, usual(1), 1, 50)
		},
		"two histories": func(l *Ledger) {
			l.Reached(first, at(80))
			dispatch(l, usual(1), 1)
			l.Reached(second, at(90))
			read(l, usual(1), 2, 50)
		},
	} {
		l := New("main", 1, nil)
		do(l)
		marks := carried(t, l.Marks())
		if got := New("main", 2, marks).Marks(); !reflect.DeepEqual(carried(t, got), marks) {
			t.Errorf("%s:\n sent %+v\n kept %+v", name, marks, got)
		}
		// Twice is as good as once.
		m := New("main", 2, marks)
		m.Merge(marks)
		l.Merge(marks)
		for _, again := range []*Ledger{l, m} {
			if got := carried(t, again.Marks()); !reflect.DeepEqual(got, marks) {
				t.Errorf("%s, merged again:\n sent %+v\n kept %+v", name, marks, got)
			}
		}
	}
}

func TestMarksShareNothing(t *testing.T) {
	t.Parallel()
	l := marked(80)
	read(l, usual(1), 1, 50)
	l.Owe(idPrimary, []uint64{7})
	for _, m := range l.Marks() {
		m.Seen[0], m.Pending[0] = 1, 1
	}
	if got := l.Marks()[0]; got.Seen[0] != idA || got.Pending[0] != 7 {
		t.Errorf("a caller has changed the books: %+v", got)
	}
	arrived := []tidegate.Mark{{Cluster: "main", Epoch: first, CatchUp: true, Pending: []uint64{9}, Seen: []tidegate.Incarnation{idB}}}
	m := New("main", 1, arrived)
	arrived[0].Pending[0], arrived[0].Seen[0] = 1, 1
	if got := m.Marks()[0]; got.Seen[0] != idB || got.Pending[0] != 9 {
		t.Errorf("a caller has changed the books: %+v", got)
	}
}

// What a token names was read at any time up to its arrival.
func TestArrivalCountsAsRead(t *testing.T) {
	t.Parallel()
	early := mono.Now()
	l := New("main", 1, []tidegate.Mark{{Cluster: "main", Epoch: first, Position: at(80), Shown: at(70), Seen: []tidegate.Incarnation{idA}}})
	needs(t, l, at(80), at(70))
	wants(t, l, usual(early), Open, 0b011)
	// Once more, before it was bounded: it can have been read again.
	between := after()
	for mono.Now() <= between {
	}
	l.Merge([]tidegate.Mark{{Cluster: "main", Epoch: first, Seen: []tidegate.Incarnation{idA}}})
	wants(t, l, usual(between), Open, 0b011)
	wants(t, l, usual(after()), Settled, 0)
	needs(t, l, at(100), at(100))
	if got := l.Marks()[0]; len(got.Seen) != 0 || got.Position != at(100) || got.Shown != at(100) {
		t.Errorf("%+v", got)
	}
}

// A node that was left must not be lost when an older token comes in again, and
// one that was bounded may come back: it is bounded again.
func TestMergingAnOldTokenAgain(t *testing.T) {
	t.Parallel()
	l := marked(80)
	read(l, usual(1), 1, mono.Now())
	old := l.Marks()
	wants(t, l, usual(after()), Settled, 0) // left A
	read(l, usual(1), 2, mono.Now())
	left := after()
	for mono.Now() <= left {
	}
	l.Merge(old)
	seen := ids(l)
	if slices.Sort(seen); !slices.Equal(seen, []tidegate.Incarnation{idA, idB}) {
		t.Fatalf("seen is %v, want both", seen)
	}
	needs(t, l, at(100), at(100))
	// A look that was sent before the token came bounds B alone.
	wants(t, l, usual(left), Open, 0b011)
	if !slices.Equal(ids(l), []tidegate.Incarnation{idA}) {
		t.Errorf("seen is %v", ids(l))
	}
	wants(t, l, usual(after()), Settled, 0)
}

func TestTokenOfTooManyIncarnations(t *testing.T) {
	t.Parallel()
	l := marked(80)
	in := usual(1)
	for id := range tidegate.Incarnation(tidegate.MaxSeen + 1) {
		in.Nodes[1].Incarnation = 1000 + id
		read(l, in, 1, 50)
	}
	there := New("main", 1, carried(t, l.Marks()))
	if !there.catch.open || len(there.seen) != 0 || there.mark != at(80) {
		t.Errorf("%+v", there)
	}
	wants(t, there, ahead(after()), Settled, 0)
	needs(t, there, at(130), at(130))
	if l.catch.open || len(l.seen) != tidegate.MaxSeen+1 {
		t.Error("the sender had to forget what fits in memory")
	}
}

func TestParallelUse(t *testing.T) {
	t.Parallel()
	l := marked(80)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 300 {
				in := usual(mono.Now() + 1)
				in.Nodes[0].Obs.Head = at(400)
				switch node := 1 + i%2; (i + g) % 7 {
				case 0:
					l.Reached(first, at(uint64(80+i)))
				case 1:
					l.Merge(l.Marks())
				case 2:
					l.Owe(idPrimary, []uint64{uint64(i % 3)})
				case 3:
					dispatch(l, in, node)
					l.Undo(in.Nodes[node].Incarnation)
				default:
					dispatch(l, in, node)
					settle(l, in)
					l.Done(in.Nodes[node].Incarnation, mono.Now())
				}
			}
		})
	}
	all.Wait()
	for _, e := range l.seen {
		if e.fly != 0 {
			t.Errorf("a read counts as in flight for ever: %+v", e)
		}
	}
	in := usual(after())
	in.Nodes[0].Obs.Asked, in.Nodes[0].Obs.Head = []uint64{0, 1, 2}, at(400)
	wants(t, l, in, Settled, 0)
	if len(l.seen) != 0 || !l.mark.Covers(at(379)) {
		t.Errorf("%+v", l)
	}
}
