package ledger

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// promoted is a cluster after a failover to node 1; A is node 2.
func promoted(sent int64) *freshness.Table {
	old, p, a := primaryNode(100, 1), primaryNode(100, sent), replicaNode(idA, 100, sent)
	old.down, p.id, p.epoch, a.epoch = true, idB, second, second
	return table(old, p, a)
}

// Only a look at the primary that was sent after a mark arrived may call its
// history foreign: this process can be the one that learns late.
func TestForeignHistory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		l    func() *Ledger
		// in is the history that the table is in.
		in func(sent int64) *freshness.Table
	}{
		{"a token of the later one", func() *Ledger {
			return New("main", 1, []tidegate.Mark{{Cluster: "main", Epoch: second, Position: at(50)}})
		}, usual},
		{"a token of the earlier one", func() *Ledger {
			return New("main", 1, []tidegate.Mark{{Cluster: "main", Epoch: first, Position: at(50)}})
		}, promoted},
		{"only what was seen", func() *Ledger {
			return New("main", 1, []tidegate.Mark{{Cluster: "main", Epoch: first, Seen: []tidegate.Incarnation{idGone}}})
		}, promoted},
		{"a session's own mark", func() *Ledger { return marked(50) }, promoted},
		{"two tokens", func() *Ledger {
			l := marked(50)
			l.Merge([]tidegate.Mark{{Cluster: "main", Epoch: second, Position: at(50)}})
			return l
		}, usual},
		{"a duty", func() *Ledger {
			return New("main", 1, []tidegate.Mark{{Cluster: "main", Epoch: first, CatchUp: true}})
		}, promoted},
	} {
		early := mono.Now()
		l := c.l()
		nobody := c.in(early)
		nobody.Primary = none
		if status, asks := settle(l, nobody); status != Open || asks.Nodes != 0b111 {
			t.Errorf("%s, nobody is the primary: status %d, asks %03b", c.name, status, asks.Nodes)
		}
		in := c.in(early)
		if status, asks := settle(l, in); status != Open || asks.Nodes != 1<<in.Primary {
			t.Errorf("%s, an early look: status %d, asks %03b", c.name, status, asks.Nodes)
		}
		if status, _ := settle(l, c.in(l.arrived)); status != Open {
			t.Errorf("%s, a look sent as it arrived: status %d", c.name, status)
		}
		if status, _ := settle(l, c.in(after())); status != Changed {
			t.Errorf("%s, a later look: status %d, want changed", c.name, status)
		}
		l.Lock()
		if l.Stay(c.in(after()), 0) != none {
			t.Errorf("%s: stays where it has not been judged", c.name)
		}
		l.Unlock()
	}
}

// A session that requires nothing goes along with any history.
func TestEmptySessionHasNoHistory(t *testing.T) {
	t.Parallel()
	l := New("main", 1, nil)
	for _, in := range []*freshness.Table{usual(1), promoted(1), usual(1)} {
		wants(t, l, in, Settled, 0)
		if l.epoch != in.Epoch {
			t.Errorf("its history is %+v", l.epoch)
		}
	}
	l.Merge([]tidegate.Mark{{Cluster: "main", Epoch: second, Position: at(50)}})
	if l.epoch != second || len(l.others) != 0 {
		t.Errorf("a token's history is set aside: %+v", l)
	}
}

// Each mark that arrives is judged by a look that was sent after it.
func TestMarkThatArrivesLater(t *testing.T) {
	t.Parallel()
	l := marked(50)
	between := after()
	for mono.Now() <= between {
	}
	l.Merge([]tidegate.Mark{{Cluster: "main", Epoch: second, Position: at(50)}})
	wants(t, l, usual(between), Open, 0b001)
	wants(t, l, usual(after()), Changed, 0)
}

func TestRestart(t *testing.T) {
	t.Parallel()
	l := marked(80)
	read(l, usual(1), 1, 50)
	read(l, usual(1), 2, 50)
	dispatch(l, usual(1), 2) // is in flight all the time
	l.Owe(idPrimary, []uint64{7})
	l.Merge([]tidegate.Mark{{Cluster: "main", Epoch: second, Position: at(50)}})
	in := promoted(after())
	wants(t, l, in, Changed, 0)
	l.Restart(second, idB, l.news)
	needs(t, l, tidegate.Position{}, tidegate.Position{})
	if l.epoch != second || len(l.others) != 0 || !slices.Equal(ids(l), []tidegate.Incarnation{idB}) {
		t.Errorf("after the restart: %+v", l)
	}
	if e := l.seen[0]; e.since != 0 || l.catch.primary != idB {
		t.Errorf("what was told of is still to be bounded, or the duty has another birth: %+v", l)
	}
	// Elsewhere, too, what is in flight is still judged.
	marks := l.Marks()
	if i := slices.IndexFunc(marks, func(m tidegate.Mark) bool { return m.Epoch == first }); i < 0 || !slices.Equal(marks[i].Seen, []tidegate.Incarnation{idB}) {
		t.Errorf("the read in flight is not in the token: %+v", marks)
	}
	// It goes on from the primary's position after now, when the old outcome is
	// known; what is in flight is still judged when it ends.
	wants(t, l, in, Open, 0b010)
	later := promoted(after())
	later.Nodes[1].Obs.Ceiling, later.Nodes[1].Obs.Applied = at(140), at(140)
	wants(t, l, later, Open, 0b010)
	later.Nodes[1].Obs.Asked = []uint64{7}
	wants(t, l, later, Settled, 0)
	needs(t, l, at(140), at(140))
	l.Done(idB, mono.Now())
	later = promoted(after())
	later.Nodes[1].Incarnation, later.Nodes[1].Obs.Incarnation = idGone, idGone
	wants(t, l, later, Changed, 0)
}

// What is read on one incarnation in two histories belongs to the later: a
// replica can follow its primary to a new line, and goes back in none.
func TestBoundHasTheLaterHistory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		follow bool
		want   Status
		mark   tidegate.Position
	}{
		{"it follows", true, Settled, at(150)},
		{"it stays behind on the old line", false, Changed, at(120)},
	} {
		l := marked(80)
		dispatch(l, usual(1), 1)
		l.Restart(second, idB, l.news) // while the read is in flight
		l.Reached(second, at(120))
		l.Done(idA, mono.Now())
		l.catch = catchUp{}
		then := promoted(after())
		a := &then.Nodes[2]
		a.Obs.Bound = at(150)
		if !c.follow {
			a.Epoch, a.Obs.Epoch, a.Usable = first, first, false
		}
		if got, _ := settle(l, then); got != c.want || l.mark != c.mark {
			t.Errorf("%s: status %d, mark %v; want %d, %v", c.name, got, l.mark, c.want, c.mark)
		}
	}
}

// The list of what was seen must survive a verdict in the midst of it.
func TestChangedKeepsTheBooksInOrder(t *testing.T) {
	t.Parallel()
	in := table(primaryNode(100, 55), replicaNode(idA, 90, 60), replicaNode(idB, 95, 40))
	l := marked(80)
	read(l, usual(1), 1, 50) // is bounded
	read(l, usual(1), 2, 58) // is open
	dispatch(l, usual(1), 2) // and in flight
	lost := usual(1)
	lost.Nodes[1].Incarnation, lost.Nodes[1].Epoch = idGone, second
	read(l, lost, 1, 50) // belongs to a history that nobody has
	wants(t, l, in, Changed, 0b101)
	if want := []tidegate.Incarnation{idB, idGone}; !slices.Equal(ids(l), want) {
		t.Errorf("seen is %v, want %v", ids(l), want)
	}
	l.Done(idB, 59)
	l.dropIdle()
	if len(l.seen) != 0 {
		t.Errorf("a read counts as in flight for ever: %+v", l.seen)
	}
}

func TestReachedInAnotherHistory(t *testing.T) {
	t.Parallel()
	l := marked(80)
	read(l, usual(1), 1, 50)
	dispatch(l, usual(1), 2)
	l.Owe(idPrimary, []uint64{7})
	l.Reached(second, at(30))
	needs(t, l, at(30), tidegate.Position{})
	if l.epoch != second || l.catch.open || !slices.Equal(ids(l), []tidegate.Incarnation{idB}) {
		t.Errorf("%+v", l)
	}
	marks := l.Marks()
	if len(marks) != 2 {
		t.Fatalf("%d marks, want one for each history: %+v", len(marks), marks)
	}
	for _, m := range marks {
		slices.Sort(m.Seen)
		switch m.Epoch {
		case first:
			if m.Position != at(80) || !m.CatchUp || m.Primary != idPrimary || !slices.Equal(m.Pending, []uint64{7}) || !slices.Equal(m.Seen, []tidegate.Incarnation{idA, idB}) {
				t.Errorf("what was required before: %+v", m)
			}
		case second:
			if m.Position != at(30) || m.CatchUp || len(m.Seen) != 0 {
				t.Errorf("what is required now: %+v", m)
			}
		}
	}
	wants(t, l, promoted(after()), Changed, 0)
}

func TestReachedJoins(t *testing.T) {
	t.Parallel()
	l := New("main", 1, nil)
	for _, c := range []struct{ pos, want tidegate.Position }{
		{at(10), at(10)}, {at(30), at(30)}, {at(20), at(30)}, {beyond(30), beyond(30)}, {at(30), beyond(30)}, {at(31), at(31)},
	} {
		l.Reached(first, c.pos)
		needs(t, l, c.want, tidegate.Position{})
	}
	if l.epoch != first || l.Fresh() || len(l.Marks()) != 1 {
		t.Errorf("%+v", l)
	}
}

// The first position of a session that only had a duty of unknown birth says
// which history that was.
func TestReachedGivesADutyItsHistory(t *testing.T) {
	t.Parallel()
	l := New("main", 1, nil)
	l.CatchUp()
	l.Reached(first, at(10))
	if !l.catch.open || l.epoch != first || len(l.others) != 0 {
		t.Errorf("%+v", l)
	}
	wants(t, l, usual(after()), Settled, 0)
	needs(t, l, at(100), at(100))
}

// What a report that is under way does not cover makes a report of its own.
func TestRestartKeepsWhatCameAfterTheReport(t *testing.T) {
	t.Parallel()
	for name, news := range map[string]func(l *Ledger){
		"a token": func(l *Ledger) { l.Merge([]tidegate.Mark{{Cluster: "main", Epoch: first, Position: at(90)}}) },
		"a read of the old history that ends": func(l *Ledger) {
			l.Done(idA, mono.Now())
		},
	} {
		l := marked(80)
		dispatch(l, usual(1), 1)
		in := promoted(after())
		wants(t, l, in, Changed, 0)
		decided := l.news
		news(l)
		l.Restart(second, idB, decided)
		wants(t, l, promoted(after()), Changed, 0)
		l.Restart(second, idB, l.news)
		if s, _ := settle(l, promoted(after())); s == Changed {
			t.Errorf("%s: it is reported for ever", name)
		}
	}
}

// What was read in a history that ended meanwhile is reported, also when a session has
// read in too many lives to remember each.
func TestTooManyLivesOfAnotherHistory(t *testing.T) {
	t.Parallel()
	l := marked(80)
	in := usual(1)
	for i := range tidegate.Incarnation(maxEntries) {
		in.Nodes[1].Incarnation = 1000 + i
		dispatch(l, in, 1)
	}
	l.Reached(second, at(100)) // its write goes to the new primary while they are open
	for i := range tidegate.Incarnation(maxEntries) {
		l.Done(1000+i, mono.Now())
	}
	l.Lock()
	l.others = nil // what the write has set aside was reported
	l.Unlock()
	dispatch(l, promoted(1), 2)
	wants(t, l, promoted(after()), Changed, 0)
}

// Nothing is dated to before the lock was held: what happens while it is awaited
// must be older, or a look from that time would be taken for a later one.
func TestTimesAreOfTheMomentInside(t *testing.T) {
	t.Parallel()
	mark := []tidegate.Mark{{Cluster: "main", Epoch: first, Seen: []tidegate.Incarnation{idA}}}
	for name, c := range map[string]struct {
		waits func(l *Ledger) // begins before what happens inside
		since func(l *Ledger) int64
	}{
		"a token":           {func(l *Ledger) { l.Merge(mark) }, func(l *Ledger) int64 { return l.entry(idA).since }},
		"a token's arrival": {func(l *Ledger) { l.Merge(mark) }, func(l *Ledger) int64 { return l.arrived }},
		"a duty":            {func(l *Ledger) { l.CatchUp() }, func(l *Ledger) int64 { return l.catch.since }},
		"a lost outcome":    {func(l *Ledger) { l.Owe(idPrimary, nil) }, func(l *Ledger) int64 { return l.catch.since }},
	} {
		l := New("main", 1, mark)
		l.Lock()
		done := make(chan struct{})
		go func() { c.waits(l); close(done) }()
		for start := mono.Now(); mono.Now() < start+int64(5*time.Millisecond); {
			runtime.Gosched() // until it waits for the lock
		}
		inside := mono.Now()
		l.Unlock()
		<-done
		if at := c.since(l); at < inside {
			t.Errorf("%s: is dated %v before the lock was given up", name, time.Duration(inside-at))
		}
	}
}

// A statement that is open on a primary of the past is not bounded by the present
// one.
func TestStatementsOnTwoPrimaries(t *testing.T) {
	t.Parallel()
	l := marked(80)
	l.Enter(idPrimary)
	l.Lock()
	l.Touch(idPrimary) // a read on the same primary
	l.Unlock()
	if l.catch.open {
		t.Error("the primary shows its own")
	}
	l.Lock()
	l.Touch(idB) // a read on the next one
	l.Unlock()
	if !l.catch.open || l.catch.primary != idPrimary {
		t.Errorf("what is open on the old primary does not count: %+v", l.catch)
	}

	l = marked(80)
	l.Enter(idPrimary)
	l.Enter(idB)
	l.Leave() // of either
	l.Lock()
	l.Touch(idB)
	l.Unlock()
	if !l.catch.open || l.catch.primary == idB || l.catch.primary == 0 {
		t.Errorf("one primary answers for both: %+v", l.catch)
	}
}
