package engine_test

import (
	"testing"
	"testing/synctest"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// What an adapter says of an attempt that has failed is in the decision that follows, and
// in the counters.
func TestRetriesHaveTheirCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r := primaryStub(1, 100), replicaStub(2, 100)
		c := core(t, engine.Config{}, p, r)
		before := c.Stats()
		ctx, seen := tidegate.Observe(t.Context())
		ctx, _ = sessionAt(ctx)
		rd := &engine.Read{}
		for _, failed := range []func(){
			func() { c.Retry(rd, tidegate.RetryStalePlan, true) },
			func() { c.Fail(rd, tidegate.RetryRecoveryConflict, true) },
			func() { c.FailToPrimary(rd, tidegate.RetryUnsupported) }, // by whatever node
			func() { c.End(rd) },
		} {
			if err := c.Begin(ctx, tidegate.Causal, rd); err != nil {
				t.Fatal(err)
			}
			if !c.Admit(ctx, rd, []*stub{p, r}[rd.Node()].born()) {
				t.Fatal("refused")
			}
			failed()
		}
		want := []tidegate.RetryCause{tidegate.RetryNone, tidegate.RetryStalePlan, tidegate.RetryRecoveryConflict, tidegate.RetryUnsupported}
		for i, d := range seen.All() {
			if d.Retries != i || d.RetryCause != want[i] {
				t.Errorf("decision %d: %v, want the cause %v", i, d, want[i])
			}
		}
		st := c.Stats()
		if st == before || st.Retries.Total() != 3 || rd.Attempts() != 3 {
			t.Errorf("counted %v", st.Retries)
		}
		for _, cause := range want[1:] {
			if st.Retries[cause] != 1 {
				t.Errorf("%v was counted %d times", cause, st.Retries[cause])
			}
		}
	})
}

// Another replica is offered to an adapter that would have to wait on this one.
func TestAlternative(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, a, b := primaryStub(1, 100), replicaStub(2, 100), replicaStub(3, 100)
		c := core(t, engine.Config{}, p, a, b)
		ctx, _ := sessionAt(t.Context())
		first, other := begin(ctx, t, c, tidegate.Causal), begin(ctx, t, c, relaxedAny)
		if c.Flying(first) < 1 {
			t.Errorf("%d in flight", c.Flying(first))
		}
		var offered engine.Source
		if !c.Alternative(first, func(s engine.Source, flying int64) bool { offered = s; return flying <= 1 }) || offered == first.Source() || offered == engine.Source(p) {
			t.Errorf("offered %v", offered)
		}
		if c.Alternative(other, func(engine.Source, int64) bool { return false }) {
			t.Error("an alternative that the adapter does not want")
		}
		c.Cancel(first)
		c.Cancel(other)
	})
}
