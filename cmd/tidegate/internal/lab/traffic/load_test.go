package traffic_test

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/traffic"
)

var usual = traffic.Load{Sessions: 32, Instances: 2, Rate: 1000, Writes: 0.2, Duration: 20 * time.Second, Seed: 1}

// plan returns the steps of all sessions.
func plan(l traffic.Load) [][]traffic.Step {
	steps := make([][]traffic.Step, l.Sessions)
	for id := range steps {
		steps[id] = slices.Collect(l.Steps(id))
	}
	return steps
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*want {
		t.Errorf("%s: got %.4g, want %.4g within %.0f %%", what, got, want, 100*tolerance)
	}
}

func TestRatesAreKept(t *testing.T) {
	t.Parallel()
	for _, writes := range []float64{0, 0.05, 0.2, 0.5} {
		l := usual
		l.Writes = writes
		reads, written, atOnce, later := 0.0, 0.0, 0.0, 0.0
		for _, steps := range plan(l) {
			for _, s := range steps {
				switch {
				case s.Write:
					written++
				case s.Pace == traffic.AtOnce:
					atOnce++
				case s.Pace == traffic.Later:
					later++
				}
				if !s.Write {
					reads++
				}
			}
		}
		near(t, "reads per second", reads/20, 1000, 0.03)
		near(t, "part of writes", written/(reads+written), writes, 0.06)
		near(t, "reads at once per write", atOnce, written/2, 0.1)
		near(t, "later reads per write", later, written/2, 0.1)
	}
}

// Reads that may be old are a part of those that read no write back, each budget gets
// its share, and nothing else changes with them.
func TestRelaxedReads(t *testing.T) {
	t.Parallel()
	l := usual
	l.Relaxed, l.Budgets = 0.5, record.Budgets(time.Second)
	free, relaxed, by := 0.0, 0.0, map[record.Breach]float64{}
	for _, steps := range plan(l) {
		for _, s := range steps {
			if s.Budget != nil {
				relaxed++
				by[s.Budget.OnBreach]++
				if s.Write || s.Pace != traffic.Scheduled || s.Strong {
					t.Fatalf("%+v may be old", s)
				}
			}
			if !s.Write && s.Pace == traffic.Scheduled {
				free++
			}
		}
	}
	near(t, "relaxed reads", relaxed, free/2, 0.03)
	for _, b := range l.Budgets {
		near(t, string(b.OnBreach), by[b.OnBreach], relaxed/4, 0.1)
	}
	for _, steps := range plan(usual) {
		for _, s := range steps {
			if s.Budget != nil {
				t.Fatal("a read may be old, and nobody asked for that")
			}
		}
	}
}

// The gaps between the arrivals of a session are exponential: their mean is
// their deviation.
func TestArrivalsAreRandom(t *testing.T) {
	t.Parallel()
	l := usual
	l.Sessions, l.Rate = 1, 1000
	var gaps []float64
	last := time.Duration(0)
	for s := range l.Steps(0) {
		if s.Pace == traffic.AtOnce {
			continue
		}
		if s.Due < last || s.Due >= l.Duration {
			t.Fatalf("due %v after %v", s.Due, last)
		}
		gaps = append(gaps, (s.Due - last).Seconds())
		last = s.Due
	}
	sum, squares := 0.0, 0.0
	for _, g := range gaps {
		sum += g
		squares += g * g
	}
	mean := sum / float64(len(gaps))
	near(t, "deviation of the gaps", math.Sqrt(squares/float64(len(gaps))-mean*mean), mean, 0.05)
}

func TestEveryWriteIsReadBack(t *testing.T) {
	t.Parallel()
	for id, steps := range plan(usual) {
		for i, s := range steps {
			follows := i > 0 && steps[i-1].Write
			if s.Write && follows {
				t.Fatalf("session %d: step %d writes after a write", id, i)
			}
			if follows != (s.Pace != traffic.Scheduled) {
				t.Fatalf("session %d: step %d has pace %d; after a write: %v", id, i, s.Pace, follows)
			}
			if s.Pace == traffic.AtOnce && s.Due != steps[i-1].Due {
				t.Fatalf("session %d: step %d at once is due %v after its write", id, i, s.Due-steps[i-1].Due)
			}
		}
	}
}

func TestReadsAskForDifferentRows(t *testing.T) {
	t.Parallel()
	for _, sessions := range []int{1, 3, 32} {
		l := usual
		l.Sessions, l.Duration = sessions, 10*time.Second
		asked := map[int64]bool{}
		for id, steps := range plan(l) {
			for _, s := range steps {
				if s.Write {
					continue
				}
				keys := slices.Clone(s.Keys)
				if len(keys) != traffic.KeysPerRead || keys[0] != int64(id) {
					t.Fatalf("session %d asks for %v", id, keys)
				}
				slices.Sort(keys)
				if len(slices.Compact(keys)) != traffic.KeysPerRead || keys[0] < 0 || keys[len(keys)-1] >= int64(l.Keys()) {
					t.Fatalf("session %d asks for %v of %d rows", id, s.Keys, l.Keys())
				}
				for _, k := range keys {
					asked[k] = true
				}
			}
		}
		if len(asked) != l.Keys() {
			t.Errorf("%d sessions: %d of %d rows are read", sessions, len(asked), l.Keys())
		}
	}
}

func TestSessionsHop(t *testing.T) {
	t.Parallel()
	l := usual
	l.Instances = 3
	hops, steps := 0.0, 0.0
	for _, plan := range plan(l) {
		for i, s := range plan {
			if s.Instance < 0 || s.Instance >= 3 {
				t.Fatalf("instance %d of 3", s.Instance)
			}
			if i > 0 {
				steps++
				if s.Instance != plan[i-1].Instance {
					hops++
				}
			}
		}
	}
	near(t, "part of the steps on another instance", hops/steps, 2.0/3, 0.02)
}

func TestSeedsMakeTheLoad(t *testing.T) {
	t.Parallel()
	other := usual
	other.Seed = 2
	if !reflect.DeepEqual(plan(usual), plan(usual)) {
		t.Error("the same seed made two loads")
	}
	if reflect.DeepEqual(plan(usual), plan(other)) {
		t.Error("two seeds made the same load")
	}
	if reflect.DeepEqual(slices.Collect(usual.Steps(0)), slices.Collect(usual.Steps(1))) {
		t.Error("two sessions do the same")
	}
}

// From when the writes end there are as many reads as before, and no write.
func TestWritesEnd(t *testing.T) {
	t.Parallel()
	l := usual
	l.WritesEnd = 5 * time.Second
	before, after, written := 0.0, 0.0, 0.0
	for _, steps := range plan(l) {
		for _, s := range steps {
			switch {
			case s.Write && s.Due >= l.WritesEnd:
				t.Fatalf("a write is due at %v", s.Due)
			case s.Write:
				written++
			case s.Due < l.WritesEnd:
				before++
			default:
				after++
			}
		}
	}
	near(t, "reads per second before", before/5, 1000, 0.05)
	near(t, "reads per second after", after/15, 1000, 0.03)
	near(t, "writes per second before", written/5, 250, 0.1)
}

func TestAffinity(t *testing.T) {
	t.Parallel()
	l := usual
	l.Affinity, l.Instances = true, 3
	used := map[int]bool{}
	for id, steps := range plan(l) {
		for _, s := range steps {
			if s.Instance != steps[0].Instance {
				t.Fatalf("session %d hops from %d to %d", id, steps[0].Instance, s.Instance)
			}
		}
		used[steps[0].Instance] = true
	}
	if len(used) != 3 {
		t.Errorf("instances %v are used", used)
	}
	// It is the same load in every other way.
	hopping := usual
	hopping.Instances = 3
	for id, steps := range plan(hopping) {
		for i, s := range slices.Collect(l.Steps(id)) {
			s.Instance = steps[i].Instance
			if !reflect.DeepEqual(s, steps[i]) {
				t.Fatalf("session %d, step %d: %+v, with hops %+v", id, i, s, steps[i])
			}
		}
	}
}

func TestEveryReadAsksForTheWitness(t *testing.T) {
	t.Parallel()
	for _, sessions := range []int{1, 32} {
		l := usual
		l.Sessions, l.Witness, l.Duration = sessions, true, 2*time.Second
		if l.WitnessKey() != int64(l.Keys()-1) || l.WitnessKey() < int64(sessions) {
			t.Errorf("%d sessions: the witness is row %d of %d", sessions, l.WitnessKey(), l.Keys())
		}
		for id, steps := range plan(l) {
			for _, s := range steps {
				keys := slices.Clone(s.Keys)
				slices.Sort(keys)
				if !s.Write && (len(slices.Compact(keys)) != traffic.KeysPerRead || s.Keys[0] != int64(id) || !slices.Contains(keys, l.WitnessKey())) {
					t.Fatalf("session %d asks for %v", id, s.Keys)
				}
			}
		}
	}
}
