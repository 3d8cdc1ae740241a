package engine_test

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
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

// simulate runs seeds until a part of TIDEGATE_SIM_READS reads has been checked,
// with the race detector or when one seed is looked into in this process, else
// on all cores. It returns what happened, nothing after a failure or when one
// seed is looked into.
func simulate(t *testing.T, part float64, planOf func(uint64) plan) (n counts) {
	reads := int(part * float64(envInt(t, "TIDEGATE_SIM_READS", defaultReads())))
	began := time.Now()
	switch shard := os.Getenv("TIDEGATE_SIM_SHARD"); {
	case shard != "":
		n = simulateShard(t, shard, reads, planOf)
		n.report(t)
		return counts{}
	case raceEnabled || repeating():
		n = simulateShard(t, "0/1", reads, planOf)
	default:
		n = simulateShards(t)
	}
	if t.Failed() || repeating() {
		return counts{}
	}
	t.Logf("%v: %v", time.Since(began).Round(time.Millisecond), &n)
	return n
}

func defaultReads() int {
	if raceEnabled {
		return 30_000
	}
	return 120_000
}

// simulateShard runs the seeds i, i + n, i + 2n and so on for the shard "i/n".
func simulateShard(t *testing.T, shard string, reads int, planOf func(uint64) plan) (n counts) {
	sequential(t)
	var first, step uint64
	if _, err := fmt.Sscanf(shard, "%d/%d", &first, &step); err != nil || first >= step {
		t.Fatalf("TIDEGATE_SIM_SHARD=%q: use 0/2 and 1/2, say", shard)
	}
	seeds(t, func() bool { return n.Reads < reads/int(step) }, func(i uint64) bool {
		seed := i
		if !repeating() {
			seed = first + i*step
		}
		w := run(t, planOf(seed))
		n.add(w.n)
		if w.wrong != nil {
			t.Errorf("%s\n%s", w.wrong, toRepeat(t, seed))
		}
		return w.wrong != nil
	})
	return n
}

// toRepeat is the command that repeats a seed.
func toRepeat(t *testing.T, seed uint64) string {
	return fmt.Sprintf("to repeat: TIDEGATE_SIM_SEED=%d go test -run '^%s$' -v ./engine", seed, strings.ReplaceAll(t.Name(), "/", "$/^"))
}

func TestSimulation(t *testing.T) {
	n := simulate(t, .75, planOf)
	if n.Runs == 0 {
		return
	}
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"reads made while a live replica lacked what they needed", n.share(n.Opportunities), .5},
		{"reads answered by replicas", n.share(n.Replica), .5},
		{"reads that were proven, of those with time for it and nothing to be told", 1 - n.share(n.Unproven-n.Hurried-n.Changed), .99},
		{"reads for each crash", 1 / n.share(n.Crashes), 10},
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
		if slices.Equal(run(t, planOf(seed)).trace.lines(), run(t, planOf(seed)).trace.lines()) {
			same++
		}
	}
	// Two timers can be due in the same nanosecond; then it is not ours to say
	// which comes first.
	if t.Logf("%d of %d runs were repeated exactly", same, runs); same < runs/4 {
		t.Error("a failing seed could not be looked into")
	}
}
