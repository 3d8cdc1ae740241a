package enginetest

import (
	"strings"
	"testing"
	"testing/synctest"
)

// Run runs the whole suite.
func Run(t *testing.T, h Harness) {
	missing := map[string][]string{}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, ok := h.(Bubbler); !ok {
				c.run(&bench{T: t, h: h, name: c.name, missing: missing})
				return
			}
			var b *bench
			synctest.Test(t, func(t *testing.T) {
				b = &bench{T: t, h: h, name: c.name, missing: missing}
				c.run(b)
			})
			if b.skipped { // a bubble does not tell its test
				t.SkipNow()
			}
		})
	}
	for ability, names := range missing {
		t.Logf("enginetest: NOT RUN, because the harness's cluster is no %s: %s", ability, strings.Join(names, ", "))
	}
}

var cases = []struct {
	name string
	run  func(*bench)
}{
	{"ReadYourWrites", readYourWrites},
	{"TokenHop", tokenHop},
	{"ToldOfWrite", toldOfWrite},
	{"OutcomeUnknown", outcomeUnknown},
	{"MonotonicReads", monotonicReads},
	{"MonotonicReadsOverCrashes", monotonicReadsOverCrashes},
	{"ParallelSessions", parallelSessions},
	{"ConnectionChurn", connectionChurn},
	{"NoSession", noSession},
	{"Strong", strongRead},
	{"RelaxedWithinBudget", relaxedWithinBudget},
	{"RelaxedBeyondBudget", relaxedBeyondBudget},
	{"SingleNode", singleNode},
	{"StartWithReplicaDown", startWithReplicaDown},
	{"StartWithoutPrimary", startWithoutPrimary},
	{"PrimaryGone", primaryGone},
	{"Reasons", reasons},
	{"Explain", explain},
	{"CancelledWait", cancelledWait},
	{"Close", closes},
	{"FailedStart", failedStart},
}
