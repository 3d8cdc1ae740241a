package engine_test

import (
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
	plan     func(seed uint64) plan
	within   uint64
}

func without(r rules.Rule, plan func(uint64) plan, within uint64) broken {
	return broken{name: r.String(), rule: func(t *testing.T) { rules.Break(t, r) }, plan: plan, within: within}
}

func mistake(name string, m fake.Mistakes, plan func(uint64) plan, within uint64) broken {
	return broken{name: name, rule: func(*testing.T) {}, mistakes: m, plan: plan, within: within}
}

func calm(seed uint64) plan     { return plan{seed: seed, steps: 4000} }
func stormy(seed uint64) plan   { return plan{seed: seed, steps: 4000, stormy: true} }
func doubtful(seed uint64) plan { return plan{seed: seed, steps: 4000, doubtful: true} }
func async(seed uint64) plan    { return plan{seed: seed, steps: 4000, async: true} }

// Each number is what leaves a chance of about one in ten thousand that the runs
// of other seeds would not notice. The comments say in how many of 60 they do.
var breakable = []broken{
	without(rules.ConnOlderThanProbe, stormy, 12),                                                // 38
	without(rules.BoundProbeAfterRead, stormy, 30),                                               // 19
	without(rules.IncarnationInSeen, stormy, 80),                                                 // 8
	without(rules.SeenIsASet, calm, 12),                                                          // 39
	without(rules.SeenKept, planOf, 6),                                                           // 57
	without(rules.EveryClassLeavesSeen, planOf, 20),                                              // 26
	without(rules.PrimaryReadBoundsItself, planOf, 6),                                            // 56
	without(rules.PrimaryMustHaveShown, planOf, 6),                                               // 54
	without(rules.CatchUpBirth, failoverPlanOf, 120),                                             // 5
	without(rules.EpochInMark, failoverPlanOf, 6),                                                // 51
	mistake("capture-after-commit", fake.Mistakes{CaptureBeforeCommit: true}, planOf, 10),        // 40
	mistake("bound-covers-in-flight", fake.Mistakes{BoundIsApplied: true}, calm, 80),             // 8
	mistake("pending-before-position", fake.Mistakes{PendingAfterPosition: true}, doubtful, 150), // 4
	mistake("ceiling-covers-unflushed", fake.Mistakes{CeilingIsFlushed: true}, async, 4),         // 60
}

func TestSimulationCatchesBrokenRules(t *testing.T) {
	sequential(t)
	for _, b := range breakable {
		t.Run(b.name, func(t *testing.T) {
			if raceEnabled && b.within > 30 {
				t.Skip("takes long under the race detector")
			}
			b.rule(t)
			n := uint64(0)
			var wrong *violation
			seeds(t, func() bool { return n < b.within }, func(seed uint64) bool {
				p := b.plan(seed)
				p.mistakes = b.mistakes
				n++
				wrong = run(t, p).wrong
				return wrong != nil
			})
			if wrong == nil {
				t.Fatalf("no promise was broken in %d runs", n)
			}
			t.Logf("run %d of at most %d: %s", n, b.within, wrong.what)
			if testing.Verbose() {
				t.Log(wrong)
			}
		})
	}
}
