package ledger

import (
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
)

// branched is the cluster after a failover from the first history, which it left at a
// position.
func branched(end uint64, sent int64) *freshness.Table {
	t := promoted(sent)
	t.Epoch = tidegate.Epoch{System: 1, Line: 2, Fork: end, Origin: 7}
	t.Lineage = freshness.Lineage{Branches: []freshness.Branch{{Epoch: first, End: at(end)}}, Complete: true}
	for i := range t.Nodes {
		if t.Nodes[i].Epoch == second {
			t.Nodes[i].Epoch = t.Epoch
		}
	}
	return t
}

func mark(e tidegate.Epoch, pos tidegate.Position) tidegate.Mark {
	return tidegate.Mark{Cluster: "main", Epoch: e, Position: pos}
}

// What is required is judged to the position: what the history contains survives silently.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	rival := tidegate.Epoch{System: 1, Line: 2, Fork: 60}
	volatile := mark(first, at(50))
	volatile.Volatile = idPrimary
	duty := mark(first, at(50))
	duty.CatchUp = true
	for _, c := range []struct {
		name  string
		marks []tidegate.Mark
		want  tidegate.Verdict
		needs tidegate.Position
	}{
		{"before the fork", []tidegate.Mark{mark(first, at(79))}, tidegate.VerdictSurvived, at(79)},
		{"at the fork", []tidegate.Mark{mark(first, at(80))}, tidegate.VerdictSurvived, at(80)},
		{"strictly before it", []tidegate.Mark{mark(first, beyond(79))}, tidegate.VerdictSurvived, beyond(79)},
		{"beyond it, perhaps", []tidegate.Mark{mark(first, beyond(80))}, tidegate.VerdictUnknown, tidegate.Position{}},
		{"beyond it", []tidegate.Mark{mark(first, at(81))}, tidegate.VerdictLost, tidegate.Position{}},
		{"the same, less well known", []tidegate.Mark{mark(second, at(90))}, tidegate.VerdictNone, at(90)},
		{"another line of that number", []tidegate.Mark{mark(rival, at(90))}, tidegate.VerdictLost, tidegate.Position{}},
		{"a line that nobody has heard of", []tidegate.Mark{mark(tidegate.Epoch{System: 1, Line: 9}, at(1))}, tidegate.VerdictUnknown, tidegate.Position{}},
		{"another system", []tidegate.Mark{mark(tidegate.Epoch{System: 9, Line: 2}, at(1))}, tidegate.VerdictForeign, tidegate.Position{}},
		{"both sides of it", []tidegate.Mark{mark(first, at(70)), mark(second, at(90))}, tidegate.VerdictSurvived, at(90)},
		{"one of two is lost", []tidegate.Mark{mark(first, at(81)), mark(second, at(90))}, tidegate.VerdictLost, tidegate.Position{}},
		{"never durable", []tidegate.Mark{volatile}, tidegate.VerdictUnknown, tidegate.Position{}},
		{"a duty to catch up with who is gone", []tidegate.Mark{duty}, tidegate.VerdictUnknown, tidegate.Position{}},
		{"ahead of all", []tidegate.Mark{mark(second, at(5000))}, tidegate.VerdictAhead, tidegate.Position{}},
	} {
		l := New("main", 1, c.marks)
		in := branched(80, after())
		status, _ := settle(l, in)
		got := l.Verdict()
		if reported := c.want > tidegate.VerdictSurvived; got != c.want || (status == Changed) != reported {
			t.Errorf("%s: status %d, verdict %v; want %v", c.name, status, got, c.want)
		} else if !reported && (l.mark != c.needs || l.epoch != in.Epoch || len(l.others) != 0) {
			t.Errorf("%s: goes on with %v of %v, %d set aside; want %v", c.name, l.mark, l.epoch, len(l.others), c.needs)
		}
		if l.Verdict() != tidegate.VerdictNone {
			t.Errorf("%s: the verdict is told twice", c.name)
		}
	}
}

// Nobody is told that something is lost on the word of a look that may be older than it;
// what survives needs no look.
func TestVerdictsNeedANewLook(t *testing.T) {
	t.Parallel()
	early := after()
	for _, c := range []struct {
		pos  tidegate.Position
		want Status
	}{{at(79), Settled}, {at(81), Open}} {
		l := New("main", 1, []tidegate.Mark{mark(first, c.pos)})
		if got, _ := settle(l, branched(80, early)); got != c.want {
			t.Errorf("%v: status %d, want %d", c.pos, got, c.want)
		}
	}
}

// What was seen on a replica is judged by what a later look at that life of it says.
func TestSeenIsJudged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		bound tidegate.Position
		want  tidegate.Verdict
	}{
		{"it was not past the fork", at(80), tidegate.VerdictSurvived},
		{"it may have been", beyond(80), tidegate.VerdictUnknown},
		{"it was", at(95), tidegate.VerdictLost},
	} {
		l := New("main", 1, nil)
		read(l, usual(1), 2, 50)
		in := branched(80, after())
		a := &in.Nodes[2]
		a.Epoch, a.Obs.Epoch, a.Obs.Incarnation, a.Incarnation, a.Obs.Bound, a.Usable = first, first, idB, idB, c.bound, false
		in.Nodes[1].Incarnation, in.Nodes[1].Obs.Incarnation = 55, 55
		settle(l, in)
		if got := l.Verdict(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A mark that was not durable holds to the primary's life until it is.
func TestVolatileMark(t *testing.T) {
	t.Parallel()
	l := New("main", 1, nil)
	l.ReachedVolatile(first, at(120), idPrimary)
	stays := func(in *freshness.Table, status Status, tied bool) {
		t.Helper()
		got, asks := settle(l, in)
		if got != status || l.Tied() != tied || tied && asks.Nodes&1 == 0 {
			t.Errorf("status %d, tied %v, asks %b; want %d, %v", got, l.Tied(), asks.Nodes, status, tied)
		}
		if free := l.Need().Covers(at(1<<40)) == false && l.Need() == l.mark; free == tied {
			t.Errorf("replicas need %v", l.Need())
		}
	}
	stays(usual(after()), Settled, true) // it has 100
	later := usual(after())
	later.Lives[0] = freshness.Life{Incarnation: idPrimary, Durable: at(119)}
	stays(later, Settled, true)
	later.Lives[0].Durable = at(120)
	stays(later, Settled, false)

	l.ReachedVolatile(first, at(130), idPrimary)
	crashed := usual(after())
	crashed.Nodes[0].Incarnation, crashed.Nodes[0].Obs.Incarnation = 77, 77
	crashed.Nodes[0].Obs.Applied = at(500) // its log has grown past it again
	crashed.Lives[0], crashed.Lives[1] = freshness.Life{Incarnation: 77, Durable: at(500)}, freshness.Life{Incarnation: idPrimary, Durable: at(129)}
	if got, _ := settle(l, crashed); got != Changed || l.Verdict() != tidegate.VerdictUnknown {
		t.Errorf("the primary's life is over: status %d", got)
	}
}

// With that policy what is foreign is dropped, and nothing else.
func TestIgnoreForeign(t *testing.T) {
	t.Parallel()
	l := New("main", 1, nil)
	l.IgnoreForeign()
	l.Merge([]tidegate.Mark{mark(tidegate.Epoch{System: 9, Line: 1}, at(9999)), mark(first, at(70))})
	in := branched(80, after())
	if got, _ := settle(l, in); got != Settled || l.mark != at(70) || l.Verdict() == tidegate.VerdictNone {
		t.Errorf("status %d, mark %v of %v", got, l.mark, l.epoch)
	}
	l.Merge([]tidegate.Mark{mark(in.Epoch, at(9999))})
	if got, _ := settle(l, branched(80, after())); got != Settled || l.mark != at(100) || l.Verdict() != tidegate.VerdictAhead {
		t.Errorf("ahead: status %d, mark %v", got, l.mark)
	}
}
