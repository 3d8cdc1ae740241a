package engine_test

import (
	"testing"

	"github.com/tidegatedb/tidegate"
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
	n.Promote()
	w.count(&w.n.Promotions)
	what := "is promoted, the old primary lives on"
	if old != nil && w.dice.chance(.6) {
		old.Stop()
		what = "is promoted, the old primary is stopped"
	}
	w.trace.add(w, event{kind: evNode, node: n, what: what})
}

// failoverPlanOf returns the run of a seed.
func failoverPlanOf(seed uint64) plan {
	return plan{seed: seed, steps: 3000, failover: true, stormy: seed%3 == 1, doubtful: seed%3 == 2}
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
