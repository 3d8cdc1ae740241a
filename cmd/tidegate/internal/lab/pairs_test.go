package lab_test

import (
	"math"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/report"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// A slow replica is seen beside steady runs on the same servers, whose replicas take
// what the scenario's take when nothing is wrong.
func TestPairs(t *testing.T) {
	pgcluster.InstallForTest(t)
	cfg := usual()
	cfg.Scenario, cfg.Beside, cfg.Pairs = "slow-replica", "steady", 2
	cfg.Strategies, cfg.Duration = []string{"round-robin"}, time.Second
	cfg.Rate, cfg.Sessions = 150, 16
	p, err := lab.RunPairs(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for i := range p.Runs {
		r := &p.Runs[i]
		order = append(order, r.Part[:1]+r.Scenario[:2])
		f := &r.Strategies[0]
		if r.Seed != cfg.Seed+uint64(r.Round-1) || f.Name != "round-robin" || f.Reads == 0 || f.ReadP50us < 1000 {
			t.Errorf("run %d: seed %d, %+v", i, r.Seed, f)
		}
	}
	want := []string{"ssl", "bst", "cst", "cst", "bst", "ssl"}
	if len(order) != len(want) {
		t.Fatalf("ran %v, want %v", order, want)
	}
	for i := range want {
		if order[i] != want[i] {
			t.Errorf("ran %v, want %v", order, want)
			break
		}
	}
	c := p.Strategies[0]
	f := func(i int) float64 { return float64(p.Runs[i].Strategies[0].ReadP95us) }
	if got, want := c.ReadP95.Ratio.Rounds, []float64{f(0) / f(1), f(5) / f(4)}; c.Rounds != 2 || len(got) != 2 ||
		math.Abs(got[0]-want[0]) > 1e-3 || math.Abs(got[1]-want[1]) > 1e-3 {
		t.Errorf("the ratios are %v, want %v", got, want)
	}
	if c.ReadP95.Ratio.Median < 1 {
		t.Errorf("reads of a slow replica take %v of what they take", c.ReadP95.Ratio)
	}
	if v := report.JudgePairs(p, report.Terms{}, report.Terms{}); v.Status != report.StatusKept {
		t.Error(v.Line)
	}
}
