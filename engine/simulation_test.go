package engine_test

import (
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"
	"time"
)

// The simulation runs the real core on a cluster in memory, in seeded runs, and
// checks every read against what its session had been shown and acknowledged.
//
//	TIDEGATE_SIM_SEED=7 go test -run 'TestSimulation$' -v ./engine
//
// repeats one run until it fails, at most 20 times, and tells its whole story;
// without the race detector nearly every run is repeated exactly.
// TIDEGATE_SIM_READS sets how many reads TestSimulation makes.

// planOf returns the run of a seed.
func planOf(seed uint64) plan {
	return plan{seed: seed, steps: 4000, stormy: seed%3 == 1, doubtful: seed%3 == 2, rough: seed%5 == 4, async: seed%7 == 6}
}

// sequential lets one goroutine run at a time, so that a run follows from its
// seed as far as Go allows.
func sequential(t *testing.T) {
	procs, percent, limit := runtime.GOMAXPROCS(1), debug.SetGCPercent(-1), debug.SetMemoryLimit(256<<20)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(procs)
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
}

// repeating reports whether one seed is looked into.
func repeating() bool { return os.Getenv("TIDEGATE_SIM_SEED") != "" }

func envInt(t *testing.T, name string, otherwise int) int {
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// seeds calls f with the seed to repeat, up to 20 times, or with 0, 1, 2 and so
// on while more holds. f reports whether it has found something.
func seeds(t *testing.T, more func() bool, f func(seed uint64) bool) {
	if seed := envInt(t, "TIDEGATE_SIM_SEED", -1); seed >= 0 {
		for range 20 {
			if f(uint64(seed)) {
				return
			}
		}
		t.Logf("seed %d did not fail in 20 runs", seed)
		return
	}
	for seed := uint64(0); more(); seed++ {
		if f(seed) {
			return
		}
	}
}

// simulate runs seeds until so many reads have been checked.
func simulate(t *testing.T, reads int, planOf func(uint64) plan) (n counts) {
	sequential(t)
	if raceEnabled {
		reads /= 4
	}
	reads = envInt(t, "TIDEGATE_SIM_READS", reads)
	runs, began := 0, time.Now()
	seeds(t, func() bool { return n.reads < reads }, func(seed uint64) bool {
		w := run(t, planOf(seed))
		n.add(w.n)
		runs++
		if w.wrong != nil {
			t.Errorf("%s\nto repeat: TIDEGATE_SIM_SEED=%d go test -run '%s$' -v ./engine", w.wrong, seed, t.Name())
		}
		return w.wrong != nil
	})
	t.Logf("%d runs, %v: %v", runs, time.Since(began).Round(time.Millisecond), &n)
	return n
}

func TestSimulation(t *testing.T) {
	n := simulate(t, 100_000, planOf)
	if t.Failed() || repeating() {
		return
	}
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"reads made while a live replica lacked what they needed", n.share(n.opportunities), .2},
		{"reads answered by replicas", n.share(n.replica), .5},
		{"reads that were proven, of those with time for it", 1 - n.share(n.unproven-n.hurried), .99},
		{"crashes for each 1000 reads", 1000 * n.share(n.crashes), 10},
	} {
		if c.got < c.want {
			t.Errorf("%s: %.3f, want at least %.3f", c.what, c.got, c.want)
		}
	}
}

func TestSimulationRepeatsItself(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector shuffles goroutines")
	}
	sequential(t)
	const runs = 10
	same := 0
	for seed := range uint64(runs) {
		a, b := run(t, planOf(seed)), run(t, planOf(seed))
		if slices.EqualFunc(a.trace.events, b.trace.events, func(x, y event) bool { return x.String() == y.String() }) {
			same++
		}
	}
	// Two timers can be due in the same nanosecond; then it is not ours to say
	// which comes first.
	if t.Logf("%d of %d runs were repeated exactly", same, runs); same < runs/2 {
		t.Error("a failing seed could not be looked into")
	}
}
