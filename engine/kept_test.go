package engine_test

import "testing"

// keptPlanOf returns the run of a seed.
func keptPlanOf(seed uint64) plan {
	return plan{seed: seed, steps: 4000, kept: true, stormy: seed%3 == 1, doubtful: seed%3 == 2, rough: seed%5 == 4, mortal: seed%4 == 3}
}

func restless(seed uint64) plan { return plan{seed: seed, steps: 4000, kept: true, restless: true} }

func mortal(seed uint64) plan { return plan{seed: seed, steps: 4000, kept: true, mortal: true} }

// Sessions that a store keeps are as good as those that travel, whatever happens to
// the store and to the instances.
func TestStoreSimulation(t *testing.T) {
	n := simulate(t, .25, keptPlanOf)
	if n.Runs == 0 {
		return
	}
	if n.share(n.Opportunities) < .4 || n.share(n.Replica) < .4 || n.Kept < n.Reads/3 || n.Ended < n.Runs || n.Evicted < n.Runs || n.StoreFailovers*3 < n.Runs {
		t.Errorf("too little happened: %v", &n)
	}
}
