package freshness

import (
	"testing"

	"github.com/tidegatedb/tidegate"
)

// lineages is a table that is told what nodes say, one after another.
type lineages struct {
	t    *Table
	h    histories
	sent int64
}

func newLineages(nodes int) *lineages {
	return &lineages{t: &Table{Nodes: make([]Node, nodes), Primary: NoNode}}
}

// says takes in what a node said.
func (l *lineages) says(node int, o Observation) {
	l.sent += 10
	o.Sent, o.Received = l.sent, l.sent+1
	if o.Server == 0 {
		o.Server = uint64(node + 1)
	}
	if o.Incarnation == 0 {
		o.Incarnation = tidegate.Incarnation(100 + node)
	}
	o.Started = uint64(o.Incarnation)
	n := &l.t.Nodes[node]
	l.h.learn(l.t, n, &o)
	n.Err, n.Obs, n.Applied, n.Incarnation, n.Sent = nil, &o, o.Applied, o.Incarnation, o.Sent
	l.t.settle(&l.h)
}

func (l *lineages) fails(node int) {
	l.t.Nodes[node].Err = errDown
	l.t.settle(&l.h)
}

func standby(e tidegate.Epoch, applied, streamed uint64) Observation {
	return Observation{Role: tidegate.RoleReplica, Epoch: e, Applied: tidegate.At(applied), Bound: tidegate.At(applied), Streamed: tidegate.At(streamed)}
}

func writer(e tidegate.Epoch, applied uint64) Observation {
	return Observation{Role: tidegate.RolePrimary, Epoch: e, Applied: tidegate.At(applied), Bound: tidegate.At(applied)}
}

// promotedAt is a server that was promoted in the life that it is in.
func promotedAt(e tidegate.Epoch, fork, applied uint64) Observation {
	o := writer(e, applied)
	o.Replayed = tidegate.At(fork)
	return o
}

func (l *lineages) wants(t *testing.T, what string, node int, usable bool, fence tidegate.Fence) {
	t.Helper()
	if n := &l.t.Nodes[node]; n.Usable != usable || n.Fence != fence {
		t.Errorf("%s: node %d is usable %v, fence %v of %v; want %v, %v", what, node, n.Usable, n.Fence, n.Epoch, usable, fence)
	}
}

var unknownLine = tidegate.Epoch{System: 1}

// Whoever sees the promotion knows where the line began, without any privilege.
func TestPromotionThatWasSeen(t *testing.T) {
	t.Parallel()
	l := newLineages(3)
	l.says(0, writer(first, 100))
	l.says(1, standby(unknownLine, 90, 90))
	l.says(2, standby(unknownLine, 95, 95))
	l.fails(0)
	l.says(1, promotedAt(second, 90, 92))
	want := tidegate.Epoch{System: 1, Line: 2, Fork: 90, Origin: 101}
	if l.t.Epoch != want || !l.t.Lineage.Complete || l.t.Shown != tidegate.At(90) {
		t.Fatalf("the history is %+v by %+v, shown %v", l.t.Epoch, l.t.Lineage, l.t.Shown)
	}
	l.wants(t, "it has been sent more than the history contains", 2, false, tidegate.FenceDiverged)
	// A later life of the server is on the same line.
	l.says(1, Observation{Role: tidegate.RolePrimary, Epoch: second, Incarnation: 777, Applied: tidegate.At(99), Replayed: tidegate.At(98)})
	if l.t.Epoch != want {
		t.Errorf("after a restart: %+v", l.t.Epoch)
	}
	// Another server that was promoted to a line of that number began another one.
	l.fails(1)
	l.says(2, promotedAt(second, 95, 96))
	if l.t.Epoch.Fork != 95 || l.t.Judge(want, tidegate.At(92)) != tidegate.VerdictLost || l.t.Judge(first, tidegate.At(95)) != tidegate.VerdictSurvived {
		t.Errorf("the history is %+v", l.t.Epoch)
	}
}

// A replica that nobody leads shows a part of the new history as long as it has not been
// sent more than that contains.
func TestReplicaBeforeTheFork(t *testing.T) {
	t.Parallel()
	l := newLineages(3)
	l.says(0, writer(first, 100))
	l.says(1, standby(first, 100, 100))
	l.says(2, standby(first, 80, 80))
	l.fails(0)
	l.says(1, promotedAt(second, 100, 100))
	l.wants(t, "it is before the fork", 2, true, tidegate.FenceNone)
	cut := standby(unknownLine, 80, 80)
	l.says(2, cut)
	l.wants(t, "its receiver has ended, and it was sent nothing since", 2, true, tidegate.FenceNone)
	cut.Streamed = tidegate.At(90)
	l.says(2, cut)
	l.wants(t, "it was sent something by nobody knows whom", 2, false, tidegate.FenceUnknownLine)
	cut.LeastLine = 2
	l.says(2, cut)
	l.wants(t, "it has reached the new line", 2, true, tidegate.FenceNone)
	l.says(2, standby(first, 101, 101))
	l.wants(t, "it is past the fork", 2, false, tidegate.FenceDiverged)
	l.says(2, standby(second, 101, 101))
	l.says(0, writer(first, 130))
	l.wants(t, "the old primary", 0, false, tidegate.FenceDeposed)
	if l.t.Primary != 1 {
		t.Errorf("the primary is %d", l.t.Primary)
	}
}

// What a replica had and the primary lacked later was not the primary's.
func TestReplicaThatOvertakes(t *testing.T) {
	t.Parallel()
	l := newLineages(2)
	l.says(0, writer(first, 100))
	l.says(1, standby(first, 120, 120))
	l.wants(t, "the look at the primary can be older", 1, true, tidegate.FenceNone)
	l.says(0, writer(first, 110))
	l.wants(t, "it is not", 1, false, tidegate.FenceDiverged)
	l.says(0, writer(first, 500))
	l.wants(t, "numbers alone do not make it well", 1, false, tidegate.FenceDiverged)
	again := standby(first, 500, 500)
	again.Incarnation = 9
	l.says(1, again)
	l.wants(t, "a new life does", 1, true, tidegate.FenceNone)
}

// Of two lines of one number nobody knows whose a replica is that cannot tell more than that.
func TestTwoLinesOfOneNumber(t *testing.T) {
	t.Parallel()
	l := newLineages(4)
	l.says(0, writer(first, 100))
	for i := 1; i < 4; i++ {
		l.says(i, standby(first, 90, 90))
	}
	l.fails(0)
	told := promotedAt(second, 90, 95)
	told.Lineage = &Lineage{Branches: []Branch{{Epoch: first, End: tidegate.At(90)}}, Complete: true}
	l.says(1, told)
	l.says(3, standby(second, 95, 95))
	l.wants(t, "there is one", 3, true, tidegate.FenceNone)
	l.fails(1)
	other := promotedAt(second, 92, 96)
	other.Lineage = &Lineage{Branches: []Branch{{Epoch: first, End: tidegate.At(92)}}, Complete: true}
	l.says(2, other)
	l.wants(t, "there are two", 3, false, tidegate.FenceConflict)
	of := second
	of.Fork = 92
	l.says(3, standby(of, 96, 96))
	l.wants(t, "it tells whose it is", 3, true, tidegate.FenceNone)
	of.Fork = 90
	l.says(3, standby(of, 95, 95))
	l.wants(t, "it is the other one's", 3, false, tidegate.FenceDiverged)
}

// One look can be of the life before: only what both say again is a dispute.
func TestDisputeNeedsASecondLook(t *testing.T) {
	t.Parallel()
	l := newLineages(3)
	l.says(2, standby(second, 50, 50))
	l.says(0, writer(second, 60))
	l.says(1, writer(second, 61))
	l.wants(t, "as long as both are there", 2, false, tidegate.FenceConflict)
	l.fails(1)
	l.wants(t, "one was seen once", 2, true, tidegate.FenceNone)
	l.says(1, writer(second, 61))
	l.says(0, writer(second, 62))
	l.fails(1)
	l.wants(t, "both said so twice", 2, false, tidegate.FenceConflict)
}
