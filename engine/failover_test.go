package engine_test

import (
	"errors"
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
		w.trace.add(w, event{kind: evPromote, node: n, err: errors.New("follows " + newest.Name())})
	case w.dice.chance(.3):
		n.Rebuild(newest)
		w.trace.add(w, event{kind: evPromote, node: n, life: n.Incarnation(), err: errors.New("begins a new life as a copy of " + newest.Name())})
	}
}

func (w *world) promote() {
	old, n := w.cluster.Primary(), w.cluster.Nodes()[w.dice.n(4)]
	if n.Role() != tidegate.RoleReplica || !n.Up() {
		return
	}
	n.Promote()
	w.n.promotions++
	what := "is promoted, the old primary lives on"
	if old != nil && w.dice.chance(.6) {
		old.Stop()
		what = "is promoted, the old primary is stopped"
	}
	w.trace.add(w, event{kind: evPromote, node: n, err: errors.New(what)})
}

// renew ends a client's session; somebody else begins one, perhaps with a write
// that gets lost: then the session knows of no history yet.
func (w *world) renew() {
	c := w.someone()
	w.mu.Lock()
	idle := c.flying == 0 && !c.writing
	if idle {
		c.forget()
	}
	w.mu.Unlock()
	if idle && w.dice.chance(.5) {
		c.doubt()
	}
}

// failoverPlanOf returns the run of a seed.
func failoverPlanOf(seed uint64) plan {
	return plan{seed: seed, steps: 3000, failover: true, stormy: seed%3 == 1, doubtful: seed%3 == 2}
}

// After a promotion no session silently misses what it was told: it sees it, or
// a decision has said that history has changed.
func TestFailoverSimulation(t *testing.T) {
	n := simulate(t, 60_000, failoverPlanOf)
	if t.Failed() || repeating() {
		return
	}
	if n.share(n.opportunities) < .2 || n.promotions*300 < n.reads {
		t.Errorf("too little happened: %v", &n)
	}
}
