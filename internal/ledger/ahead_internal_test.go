package ledger

import (
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// A position that the history does not have is refused, judged only by a look at the
// primary that was sent after it arrived.
func TestPositionAheadOfThePrimary(t *testing.T) {
	t.Parallel()
	token := func(pos tidegate.Position) *Ledger {
		return New("main", 1, []tidegate.Mark{{Cluster: "main", Epoch: first, Position: pos}})
	}
	now := func(head uint64) *freshness.Table {
		p := primaryNode(100, mono.Now())
		p.head = at(head)
		return table(p, replicaNode(idA, 100, mono.Now()))
	}
	for name, c := range map[string]struct {
		l        *Ledger
		in       func() *freshness.Table
		want     Status
		doubtful bool // afterwards
	}{
		"by a look from before":          {token(at(500)), func() *freshness.Table { return usual(1) }, Settled, true},
		"by a look from after":           {token(at(500)), func() *freshness.Table { return now(100) }, Changed, true},
		"one that is there":              {token(at(100)), func() *freshness.Table { return now(100) }, Settled, false},
		"not flushed, but handed out":    {token(at(120)), func() *freshness.Table { return now(120) }, Settled, false},
		"beyond the newest there is":     {token(beyond(100)), func() *freshness.Table { return now(100) }, Settled, false},
		"the primary cannot tell":        {token(at(500)), func() *freshness.Table { return now(0) }, Settled, false},
		"the primary does not answer":    {token(at(500)), func() *freshness.Table { return table(replicaNode(idA, 100, mono.Now())) }, Settled, true},
		"what the session itself wrote":  {marked(500), func() *freshness.Table { return now(100) }, Settled, false},
		"of another history, as before":  {New("main", 1, []tidegate.Mark{{Cluster: "main", Epoch: second, Position: at(50)}}), func() *freshness.Table { return now(100) }, Changed, true},
		"a token that requires no place": {New("main", 1, []tidegate.Mark{{Cluster: "main", Epoch: first, Seen: []tidegate.Incarnation{idA}}}), func() *freshness.Table { return now(100) }, Settled, false},
	} {
		if s, _ := settle(c.l, c.in()); s != c.want || c.l.Doubtful() != c.doubtful {
			t.Errorf("%s: status %d, doubtful %v", name, s, c.l.Doubtful())
		}
	}
}

// Once it is known to be there, what the session writes itself does not make it
// doubtful; another token does.
func TestClaimIsJudgedOnce(t *testing.T) {
	t.Parallel()
	l := New("main", 1, []tidegate.Mark{{Cluster: "main", Epoch: first, Position: at(90)}})
	settle(l, usual(mono.Now()))
	l.Reached(first, at(300))
	if s, _ := settle(l, usual(mono.Now())); s != Settled || l.Doubtful() {
		t.Errorf("status %d, doubtful %v", s, l.Doubtful())
	}
	l.Merge([]tidegate.Mark{{Cluster: "main", Epoch: first, Position: at(400)}})
	if s, _ := settle(l, usual(mono.Now())); s != Changed {
		t.Errorf("status %d", s)
	}
	l.Restart(first, idPrimary, l.news)
	if s, _ := settle(l, usual(mono.Now())); s != Settled || l.Doubtful() || l.mark != at(100) {
		t.Errorf("after the report: status %d, doubtful %v, mark %v", s, l.Doubtful(), l.mark)
	}
}
