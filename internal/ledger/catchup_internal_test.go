package ledger

import (
	"slices"
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// after is a time that a look is sent after all that the test has done so far.
func after() int64 { return mono.Now() + 1 }

// ahead is a cluster whose primary has committed more than it has made durable.
func ahead(sent int64) *freshness.Table {
	t := usual(sent)
	t.Nodes[0].Obs.Ceiling, t.Nodes[0].Obs.Asked = at(130), []uint64{7}
	return t
}

func TestCatchUp(t *testing.T) {
	t.Parallel()
	for name, owe := range map[string]func(l *Ledger){
		"nobody knows where":        func(l *Ledger) { l.CatchUp() },
		"on this primary":           func(l *Ledger) { l.Owe(idPrimary, nil) },
		"twice on this primary":     func(l *Ledger) { l.Owe(idPrimary, nil); l.Owe(idPrimary, nil) },
		"on this, and nobody knows": func(l *Ledger) { l.Owe(idPrimary, nil); l.CatchUp() },
		"nobody knows, and on this": func(l *Ledger) { l.CatchUp(); l.Owe(idPrimary, nil) },
		"a token without an epoch":  func(l *Ledger) { l.Merge([]tidegate.Mark{{Cluster: "main", CatchUp: true}}) },
		"a token with an open outcome": func(l *Ledger) {
			l.Merge([]tidegate.Mark{{Cluster: "main", Epoch: first, Pending: []uint64{7}}})
		},
		"a token of a known history": func(l *Ledger) { l.Merge([]tidegate.Mark{{Cluster: "main", Epoch: first, CatchUp: true}}) },
	} {
		for _, before := range []uint64{0, 80} {
			l := New("main", 1, nil)
			if before != 0 {
				l = marked(before)
			}
			early := mono.Now()
			owe(l)
			if l.Fresh() {
				t.Errorf("%s: counts as a session that requires nothing", name)
			}
			wants(t, l, ahead(early), Open, 0b001)
			wants(t, l, ahead(l.catch.since), Open, 0b001)
			needs(t, l, at(before), tidegate.Position{})
			wants(t, l, table(replicaNode(idA, 100, after())), Open, 0b1)
			wants(t, l, ahead(after()), Settled, 0)
			needs(t, l, at(130), at(130))
			if l.catch.open || l.epoch != first {
				t.Errorf("%s: still open, or in the wrong history: %+v", name, l)
			}
		}
	}
}

func TestCatchUpIsNotSettledByAnotherLifeOfThePrimary(t *testing.T) {
	t.Parallel()
	reborn := func() *freshness.Table {
		in := ahead(after())
		in.Nodes[0].Obs.Incarnation = idGone
		return in
	}
	for name, owe := range map[string]func(l *Ledger){
		"born on another":  func(l *Ledger) { l.Owe(idPrimary, nil) },
		"born on two":      func(l *Ledger) { l.Owe(idPrimary, nil); l.Owe(idGone, nil) },
		"one is not known": func(l *Ledger) { l.CatchUp(); l.Owe(idPrimary, nil) },
	} {
		l := marked(80)
		owe(l)
		if status, _ := settle(l, reborn()); status != Changed {
			t.Errorf("%s: status %d", name, status)
		}
		needs(t, l, at(80), tidegate.Position{})
	}
	// A duty of unknown birth that is held up belongs to the first primary it meets.
	l := marked(80)
	l.Owe(0, []uint64{8})
	wants(t, l, ahead(after()), Open, 0b001)
	wants(t, l, reborn(), Changed, 0)
}

func TestPendingOutcomeHoldsCatchUpOpen(t *testing.T) {
	t.Parallel()
	l := marked(80)
	l.Owe(idPrimary, []uint64{7})
	l.Owe(idPrimary, []uint64{8, 7})
	in := func(asked, running []uint64) *freshness.Table {
		n := primaryNode(100, after())
		n.asked, n.running, n.ceiling = asked, running, at(130)
		return table(n, replicaNode(idA, 100, 1))
	}
	for _, c := range []struct {
		name string
		in   *freshness.Table
		open bool
	}{
		{"an earlier look", usual(1), true},
		{"not asked", in(nil, nil), true},
		{"not all asked", in([]uint64{7}, nil), true},
		{"one is running", in([]uint64{7, 8}, []uint64{8}), true},
		{"all are gone", in([]uint64{7, 8, 9}, []uint64{9}), false},
	} {
		status, asks := settle(l, c.in)
		if open := status == Open; open != c.open {
			t.Errorf("%s: status %d", c.name, status)
		}
		if c.open && (asks.Nodes != 0b001 || !slices.Equal(asks.Pending, []uint64{7, 8})) {
			t.Errorf("%s: asks %+v", c.name, asks)
		}
	}
	needs(t, l, at(130), at(130))
}

func TestCatchUpRenewsItsTime(t *testing.T) {
	t.Parallel()
	l := marked(80)
	l.CatchUp()
	between := after()
	for mono.Now() <= between {
	}
	l.CatchUp()
	wants(t, l, usual(between), Open, 0b001)
	wants(t, l, usual(after()), Settled, 0)
}

// A duty that comes without a birth is born where this process sees the cluster.
func TestBirths(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		epoch tidegate.Epoch
		id    tidegate.Incarnation
		in    func() *freshness.Table
		want  Status
	}{
		"in the same life":       {first, idPrimary, func() *freshness.Table { return ahead(after()) }, Settled},
		"in another life":        {first, idGone, func() *freshness.Table { return ahead(after()) }, Changed},
		"in another history":     {second, idPrimary, func() *freshness.Table { return ahead(after()) }, Changed},
		"nothing was seen yet":   {tidegate.Epoch{}, 0, func() *freshness.Table { return ahead(after()) }, Settled},
		"the primary is unknown": {first, 0, func() *freshness.Table { return ahead(after()) }, Settled},
	} {
		for _, before := range []uint64{0, 80} {
			l := New("main", 1, nil)
			l.Births(func() (tidegate.Epoch, tidegate.Incarnation) { return c.epoch, c.id })
			if before != 0 {
				l.Reached(first, at(before))
			}
			l.CatchUp()
			if status, _ := settle(l, c.in()); status != c.want {
				t.Errorf("%s, mark %d: status %d, want %d", name, before, status, c.want)
			}
		}
	}
	// One that has a birth keeps it.
	l := New("main", 1, nil)
	l.Births(func() (tidegate.Epoch, tidegate.Incarnation) { return second, idGone })
	l.Merge([]tidegate.Mark{{Cluster: "main", Epoch: first, CatchUp: true, Primary: idPrimary}})
	wants(t, l, ahead(after()), Settled, 0)
}

// A duty without a history joins the one that comes, in either order.
func TestDutyAndMarkInEitherOrder(t *testing.T) {
	t.Parallel()
	marks := []tidegate.Mark{{Cluster: "main", CatchUp: true}, {Cluster: "main", Epoch: first, Position: at(80)}}
	for range 2 {
		l := New("main", 1, marks)
		needs(t, l, at(80), tidegate.Position{})
		if l.epoch != first || !l.catch.open || len(l.others) != 0 {
			t.Errorf("%+v", l)
		}
		slices.Reverse(marks)
	}
}

// A duty does not keep what else can be bounded from being bounded.
func TestCatchUpAndReads(t *testing.T) {
	t.Parallel()
	l := marked(80)
	read(l, usual(1), 1, 50)
	l.CatchUp()
	wants(t, l, table(primaryNode(100, 40), replicaNode(idA, 90, 60)), Open, 0b01)
	needs(t, l, at(90), at(90))
	if len(l.seen) != 0 {
		t.Errorf("seen is %v", ids(l))
	}
}
