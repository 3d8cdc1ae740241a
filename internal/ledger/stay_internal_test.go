package ledger

import (
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
)

func TestStay(t *testing.T) {
	t.Parallel()
	behind := table(primaryNode(100, 5), replicaNode(idA, 79, 5), replicaNode(idB, 100, 5))
	fenced := table(primaryNode(100, 5), replicaNode(idA, 100, 5), replicaNode(idB, 100, 5))
	fenced.Nodes[1].Usable = false
	moved := table(primaryNode(100, 5), replicaNode(idB, 100, 5), replicaNode(idA, 100, 5))
	reborn := table(primaryNode(100, 5), replicaNode(idGone, 100, 5), replicaNode(idB, 100, 5))
	promoted := usual(5)
	promoted.Epoch = second

	for _, c := range []struct {
		name  string
		do    func(l *Ledger)
		in    *freshness.Table
		leave uint64
		want  int
	}{
		{"has not read", func(*Ledger) {}, usual(5), 0, none},
		{"has read from one that covers", func(l *Ledger) { read(l, usual(1), 1, 9) }, usual(5), 0, 1},
		{"is reading from one that covers", func(l *Ledger) { dispatch(l, usual(1), 1) }, usual(5), 0, 1},
		{"is told to leave it", func(l *Ledger) { read(l, usual(1), 1, 9) }, usual(5), 1 << 1, none},
		{"is told to leave another", func(l *Ledger) { read(l, usual(1), 1, 9) }, usual(5), 1 << 2, 1},
		{"it does not cover", func(l *Ledger) { read(l, usual(1), 1, 9) }, behind, 0, none},
		{"it is fenced", func(l *Ledger) { read(l, usual(1), 1, 9) }, fenced, 0, none},
		{"it has another place in the list", func(l *Ledger) { read(l, usual(1), 1, 9) }, moved, 0, 2},
		{"a new life of it", func(l *Ledger) { read(l, usual(1), 1, 9) }, reborn, 0, none},
		{"has read from two", func(l *Ledger) { read(l, usual(1), 1, 9); read(l, usual(1), 2, 9) }, usual(5), 0, none},
		{"must catch up", func(l *Ledger) { read(l, usual(1), 1, 9); l.CatchUp() }, usual(5), 0, none},
		{"the history changed", func(l *Ledger) { read(l, usual(1), 1, 9) }, promoted, 0, none},
		{"a token of another history arrived", func(l *Ledger) {
			read(l, usual(1), 1, 9)
			l.Merge([]tidegate.Mark{{Cluster: "main", Epoch: second, Position: at(1)}})
		}, usual(5), 0, none},
		{"a token says where it has read", func(l *Ledger) {
			l.Merge([]tidegate.Mark{{Cluster: "main", Epoch: first, Seen: []tidegate.Incarnation{idB}}})
		}, usual(5), 0, 2},
		{"a token names one that nobody knows", func(l *Ledger) {
			l.Merge([]tidegate.Mark{{Cluster: "main", Epoch: first, Seen: []tidegate.Incarnation{idForeign}}})
		}, usual(5), 0, none},
		{"nothing was required before", func(l *Ledger) {
			*l = *New("main", 1, nil)
			read(l, usual(1), 2, 9)
		}, usual(5), 0, 2},
	} {
		l := marked(80)
		c.do(l)
		for range 2 { // the second time with what the first has noted
			l.Lock()
			if got := l.Stay(c.in, c.leave); got != c.want {
				t.Errorf("%s: stays at %d, want %d", c.name, got, c.want)
			}
			l.Unlock()
		}
	}
}

func TestStayingLeavesTheBooksAlone(t *testing.T) {
	t.Parallel()
	l := marked(80)
	read(l, usual(1), 1, 9)
	before := tidegate.NewToken(l.Marks()...)
	for range 3 {
		l.Lock()
		if l.Stay(usual(100), 0) != 1 {
			t.Fatal("does not stay")
		}
		l.Unlock()
		read(l, usual(100), 1, 50)
	}
	b1, _ := before.AppendBinary(nil)
	b2, _ := tidegate.NewToken(l.Marks()...).AppendBinary(nil)
	if string(b1) != string(b2) {
		t.Errorf("the token changes while the session stays: %x, then %x", b1, b2)
	}
}
