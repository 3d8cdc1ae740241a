package engine_test

import (
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

// failover promotes replicas, with or without loss, and brings nodes that were
// left behind to the new history.
func (w *world) failover() {
	if w.dice.chance(.2) {
		w.promote()
		return
	}
	newest := w.cluster.Primary()
	n := w.cluster.Nodes()[w.dice.n(4)]
	switch {
	case newest == nil || n == newest:
	case n.Follow(newest):
		w.trace.add(w, event{kind: evNode, node: n, what: "follows " + newest.Name()})
	case w.dice.chance(.3):
		n.Rebuild(newest)
		w.trace.add(w, event{kind: evLife, node: n, what: "is rebuilt from " + newest.Name() + " and begins", view: n.View(), life: n.Incarnation()})
	}
}

func (w *world) promote() {
	old, n := w.cluster.Primary(), w.cluster.Nodes()[w.dice.n(4)]
	if n.Role() != tidegate.RoleReplica || !n.Up() {
		return
	}
	line := n.Line()
	received, _, _ := n.Counts()
	if received == 0 {
		return // where there is nothing no line can begin
	}
	// Who is told nothing of how lines came about cannot tell two of one number apart.
	apart := !w.untold && w.dice.chance(w.plan.apart)
	w.promoted(n, apart)
	if old != nil && w.dice.chance(.6) {
		old.Stop()
		w.trace.add(w, event{kind: evNode, node: old, what: "is stopped"})
	}
	if !apart || w.nameless || w.dice.chance(.5) {
		return
	}
	for _, twin := range w.cluster.Nodes() {
		r, _, _ := twin.Counts()
		if twin.Role() == tidegate.RoleReplica && twin.Up() && twin.Line() == line && r == received {
			time.Sleep(w.dice.upTo(50 * time.Millisecond))
			n.Stop()
			w.trace.add(w, event{kind: evNode, node: n, what: "is stopped"})
			w.promoted(twin, true)
			return
		}
	}
}

// promoted promotes a replica.
func (w *world) promoted(n *fake.Node, apart bool) {
	what := "is promoted"
	if apart {
		n.PromoteApart()
		what = "is promoted by somebody who knows of no other promotion"
	} else {
		n.Promote()
	}
	w.count(&w.n.Promotions)
	w.trace.add(w, event{kind: evNode, node: n, what: what})
}

// failoverPlanOf returns the run of a seed.
func failoverPlanOf(seed uint64) plan {
	return plan{seed: seed, steps: 3000, failover: true, apart: .2, stormy: seed%3 == 1, doubtful: seed%3 == 2, async: seed%5 == 4}
}

// After a promotion no session silently misses what it was told: it sees it, or
// a decision has said that history has changed.
func TestFailoverSimulation(t *testing.T) {
	n := simulate(t, .25, failoverPlanOf)
	if n.Runs == 0 {
		return
	}
	if n.share(n.Opportunities) < .2 || n.Promotions*400 < n.Reads {
		t.Errorf("too little happened: %v", &n)
	}
}
