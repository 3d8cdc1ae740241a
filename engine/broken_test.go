package engine_test

import (
	"math"
	"testing"

	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
	"github.com/tidegatedb/tidegate/internal/rules"
)

// broken is a rule that is left out, or a mistake of the adapter, and within how
// many runs the simulation has to notice.
type broken struct {
	name     string
	rule     func(t *testing.T)
	mistakes fake.Mistakes
	store    storeMistakes
	plan     func(seed uint64) plan
	within   uint64
}

func without(r rules.Rule, plan func(uint64) plan, within uint64) broken {
	return broken{name: r.String(), rule: func(t *testing.T) { rules.Break(t, r) }, plan: plan, within: within}
}

func mistake(name string, m fake.Mistakes, plan func(uint64) plan, within uint64) broken {
	return broken{name: name, rule: func(*testing.T) {}, mistakes: m, plan: plan, within: within}
}

func storeMistake(name string, m storeMistakes, within uint64) broken {
	return broken{name: name, rule: func(*testing.T) {}, store: m, plan: mortal, within: within}
}

func calm(seed uint64) plan     { return plan{seed: seed, steps: 4000} }
func stormy(seed uint64) plan   { return plan{seed: seed, steps: 4000, stormy: true} }
func doubtful(seed uint64) plan { return plan{seed: seed, steps: 4000, doubtful: true} }
func async(seed uint64) plan    { return plan{seed: seed, steps: 4000, async: true} }

// asyncPlanOf has a primary that crashes and loses what it had acknowledged.
func asyncPlanOf(seed uint64) plan { return plan{seed: seed, steps: 4000, async: true, rough: true} }

// zealous promotes often, and little else goes wrong.
func zealous(seed uint64) plan { return plan{seed: seed, steps: 3000, failover: true, apart: .2} }

// rivals are promoted by many who know nothing of each other.
func rivals(seed uint64) plan { return plan{seed: seed, steps: 3000, failover: true, apart: .9} }

// Each number is what leaves a chance of about one in ten thousand that the runs
// of other seeds would not notice. The comments say in how many of 60 they do:
//
//	TIDEGATE_SIM_COUNT=60 go test -run Broken -v ./engine
var breakable = []broken{
	without(rules.ConnOlderThanProbe, stormy, 8),      // 50
	without(rules.BoundProbeAfterRead, stormy, 16),    // 39
	without(rules.IncarnationInSeen, stormy, 24),      // 22
	without(rules.SeenIsASet, calm, 5),                // 56
	without(rules.SeenKept, planOf, 4),                // 60
	without(rules.EveryClassLeavesSeen, planOf, 10),   // 42
	without(rules.PrimaryReadBoundsItself, planOf, 4), // 60
	without(rules.PrimaryMustHaveShown, planOf, 6),    // 57
	without(rules.CatchUpBirth, failoverPlanOf, 32),   // 27
	without(rules.OpenCounts, planOf, 5),              // 58
	without(rules.EpochInMark, failoverPlanOf, 8),     // 56
	without(rules.ForkVerdict, failoverPlanOf, 8),
	without(rules.ForkInEpoch, rivals, 62),
	without(rules.OriginInEpoch, rivals, 470),
	without(rules.FenceDiverged, failoverPlanOf, 19),
	without(rules.HigherLineWins, zealous, 182),
	without(rules.SeenVerdict, zealous, 18),
	without(rules.VolatileLife, asyncPlanOf, 4),
	mistake("volatile-told", fake.Mistakes{SaysDurable: true}, asyncPlanOf, 4),
	mistake("capture-after-commit", fake.Mistakes{CaptureBeforeCommit: true}, planOf, 6),         // 56
	mistake("bound-covers-in-flight", fake.Mistakes{BoundIsApplied: true}, calm, 24),             // 21
	mistake("pending-before-position", fake.Mistakes{PendingAfterPosition: true}, doubtful, 120), // 9
	mistake("ceiling-covers-unflushed", fake.Mistakes{CeilingIsFlushed: true}, async, 4),         // 60
	mistake("unknown-outcome-told", fake.Mistakes{ForgetsUnknown: true}, planOf, 6),              // 56
	mistake("lost-position-told", fake.Mistakes{ForgetsLost: true}, planOf, 60),                  // 13
	storeMistake("store-marks-writes", storeMistakes{NoMarkers: true}, 20),
	storeMistake("store-clears-own-markers", storeMistakes{ClearsAll: true}, 60),
	storeMistake("store-forgets-what-was-loaded", storeMistakes{ForgetsAll: true}, 24),
	storeMistake("store-knows-births", storeMistakes{IgnoresBirth: true}, 320),
	storeMistake("store-knows-its-history", storeMistakes{IgnoresHistory: true}, 60),
	{name: "store-suspects-for-a-lifetime", rule: func(*testing.T) {}, store: storeMistakes{NoLifetime: true}, plan: restless, within: 120},
	storeMistake("store-failures-told", storeMistakes{HidesFailures: true}, 30),
	mistake("read-until-release", fake.Mistakes{EndsEarly: true}, planOf, 6), // 56
}

// catches runs seeds, at most n of them, until one notices; it returns how many
// runs that took.
func (b *broken) catches(t *testing.T, n uint64) (runs uint64, wrong *violation) {
	b.rule(t)
	seeds(t, func() bool { return runs < n }, func(seed uint64) bool {
		p := b.plan(seed)
		p.mistakes, p.store = b.mistakes, b.store
		runs++
		wrong = run(t, p).wrong
		if wrong != nil && testing.Verbose() {
			t.Logf("%v\n%s", wrong, toRepeat(t, seed))
		}
		return wrong != nil
	})
	return runs, wrong
}

func TestSimulationCatchesBrokenRules(t *testing.T) {
	sequential(t)
	count := envInt(t, "TIDEGATE_SIM_COUNT", 0)
	for _, b := range breakable {
		t.Run(b.name, func(t *testing.T) {
			if raceEnabled && b.within > 30 {
				t.Skip("takes long under the race detector")
			}
			if count > 0 {
				b.count(t, count)
				return
			}
			n, wrong := b.catches(t, b.within)
			if wrong == nil {
				t.Fatalf("no promise was broken in %d runs", n)
			}
			t.Logf("run %d of at most %d: %s", n, b.within, wrong.what)
		})
	}
}

// count tells in how many of n runs the mistake is noticed, and the number of
// runs that leaves a chance of one in ten thousand that none of them does.
func (b *broken) count(t *testing.T, n int) {
	b.rule(t)
	noticed := 0
	for seed := range uint64(n) {
		p := b.plan(seed)
		p.mistakes, p.store = b.mistakes, b.store
		if run(t, p).wrong != nil {
			noticed++
		}
	}
	within := math.Ceil(math.Log(1e-4) / math.Log1p(-float64(noticed)/float64(n+1)))
	t.Logf("%d of %d runs notice: within %.0f", noticed, n, within)
}

// TestEveryRuleIsBroken: no rule is left out above.
func TestEveryRuleIsBroken(t *testing.T) {
	names := map[string]bool{}
	for _, b := range breakable {
		if names[b.name] {
			t.Errorf("%s is there twice", b.name)
		}
		names[b.name] = true
	}
	for _, r := range rules.All() {
		if !names[r.String()] {
			t.Errorf("nothing shows that the simulation notices when %v is left out", r)
		}
	}
}
