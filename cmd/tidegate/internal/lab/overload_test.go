package lab_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/report"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// judged runs the scenario and checks that ours keeps its promises.
func judged(t *testing.T, cfg *lab.Config) *report.Result {
	t.Helper()
	result, err := lab.Run(t.Context(), *cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range result.Strategies {
		t.Logf("%+v", result.Strategies[i])
	}
	if v := report.Judge(result, report.Terms{Sheds: true}); v.Status != report.StatusKept {
		t.Error(v.Line)
	}
	return result
}

// telling runs the scenario until a run says what is asked of it, at most three times and
// longer each time: a busy machine serves so little at times that one says nothing. What ours
// must never do fails the test at once.
func telling(t *testing.T, cfg *lab.Config, says func(*report.Result) bool) *report.Result {
	t.Helper()
	for tries := 1; ; tries++ {
		if r := judged(t, cfg); t.Failed() || says(r) || tries == 3 {
			return r
		}
		cfg.Duration += cfg.Duration / 2
	}
}

// More reads want the primary than it can take. With the limit some are refused, in
// time and with a typed error, and those that may be old get an old answer; without it
// none is, and all wait.
func TestStampede(t *testing.T) {
	pgcluster.InstallForTest(t)
	cfg := usual()
	cfg.Scenario, cfg.Strategies, cfg.Duration = "stampede", []string{"tidegate", "tidegate-unlimited"}, 4*time.Second
	// For a busy machine, with the race detector: a small load, and a primary that has
	// room for a third of it.
	cfg.Sessions, cfg.Rate, cfg.Writes = 96, 150, 0.1
	cfg.PrimarySlots, cfg.PrimaryCost, cfg.FallbackReads = 1, 20*time.Millisecond, 1
	r := telling(t, &cfg, func(r *report.Result) bool {
		f := &r.Strategies[0]
		return f.Shed > 0 && f.LimiterWaitP99us > 0 && f.StaleMarked > 0
	})
	ours, unlimited := &r.Strategies[0], &r.Strategies[1]
	if ours.Shed == 0 || ours.ShedLate+ours.ShedUntyped > 0 || ours.LimiterWaitP99us == 0 || ours.StaleMarked == 0 {
		t.Errorf("ours: %d shed, %d late, %d untyped, queued %d µs, %d marked stale", ours.Shed, ours.ShedLate, ours.ShedUntyped, ours.LimiterWaitP99us, ours.StaleMarked)
	}
	if unlimited.Shed > 0 || unlimited.LimiterWaitP99us > 0 {
		t.Errorf("without a limit: %d shed, queued %d µs", unlimited.Shed, unlimited.LimiterWaitP99us)
	}
	if r.PrimarySlots != 1 || r.PrimaryCostMs != 20 {
		t.Errorf("the primary is said to serve %d for %v ms", r.PrimarySlots, r.PrimaryCostMs)
	}
}

// The lab sees answers that are too old, where an application does not mind, and none
// with tidegate: what it could not answer in time it marked or refused.
func TestBudget(t *testing.T) {
	pgcluster.InstallForTest(t)
	cfg := usual()
	cfg.Scenario, cfg.Strategies, cfg.Duration = "budget", []string{"round-robin", "tidegate"}, 4*time.Second
	cfg.Sessions, cfg.Rate = 64, 250
	cfg.PrimarySlots, cfg.PrimaryCost = 4, 8*time.Millisecond
	r := telling(t, &cfg, func(r *report.Result) bool {
		f := &r.Strategies[1]
		return r.Strategies[0].BudgetBreaches > 0 && f.StaleMarked > 0 && !slices.ContainsFunc(f.Classes, func(c report.Class) bool {
			return c.Reads == 0 || c.BudgetMs == 100 && (c.OnBreach == "stale" && c.StaleMarked == 0 || c.OnBreach == "fail" && c.Failed == 0)
		})
	})
	roundRobin, ours := &r.Strategies[0], &r.Strategies[1]
	if roundRobin.BudgetBreaches == 0 || roundRobin.StaleMarked > 0 {
		t.Errorf("round-robin: %d answers too old, %d marked", roundRobin.BudgetBreaches, roundRobin.StaleMarked)
	}
	if ours.BudgetBreaches+ours.BoundBreaches > 0 || ours.StaleMarked == 0 || len(ours.Classes) != 12 {
		t.Errorf("ours: %d answers too old, %d older than said, %d marked, %d classes", ours.BudgetBreaches, ours.BoundBreaches, ours.StaleMarked, len(ours.Classes))
	}
	for _, c := range ours.Classes {
		marks, fails := c.OnBreach == "stale" || c.OnBreach == "stale-when-shed", c.OnBreach == "fail"
		if c.StaleMarked > 0 && !marks || c.Failed > 0 && !fails || c.Reads == 0 {
			t.Errorf("%+v", c)
		}
		// The budget counts from when the read began, and the bound is said when it has got
		// its connection.
		if float64(c.UnmarkedMaxUs) > 1000*c.BudgetMs+float64(ours.ReadP99us) {
			t.Errorf("an answer may be older than its budget, and is not marked: %+v", c)
		}
		if c.BudgetMs == 100 && (c.OnBreach == "stale" && c.StaleMarked == 0 || fails && c.Failed == 0) {
			t.Errorf("nothing was ever too old: %+v", c)
		}
	}
}

// A bulk job that waits for replicas writes as much, and spares the primary the reads of
// those who cannot wait for what the job has put before them.
func TestBackfill(t *testing.T) {
	pgcluster.InstallForTest(t)
	const enough = 10 // reads that fall back, to compare
	cfg := usual()
	cfg.Scenario, cfg.Strategies, cfg.Duration = "backfill", []string{"tidegate", "tidegate-throttled"}, 3*time.Second
	cfg.Sessions, cfg.Rate = 16, 150
	r := telling(t, &cfg, func(r *report.Result) bool { return r.Strategies[0].Fallbacks >= enough })
	free, held := &r.Strategies[0], &r.Strategies[1]
	if free.Backfill == nil || held.Backfill == nil {
		t.Fatal("there was no job")
	}
	if free.ThrottleWaits > 0 || held.ThrottleWaits == 0 || free.Rows != 100*free.Batches || held.Rows == 0 || held.Seconds < free.Seconds {
		t.Errorf("without a throttle %+v, with one %+v", free.Backfill, held.Backfill)
	}
	if free.Fallbacks < enough {
		// The machine was too slow for the job to get ahead of replicas.
		t.Logf("NOT SHOWN: only %d reads fell back without a throttle, so that there is nothing to spare", free.Fallbacks)
	} else if held.Fallbacks*2 > free.Fallbacks {
		t.Errorf("%d reads fell back without a throttle, %d with one", free.Fallbacks, held.Fallbacks)
	}
}
