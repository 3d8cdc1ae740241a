package lab_test

import (
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/carrier"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/report"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// run runs the lab and looks at what every run over HTTP has.
func run(t *testing.T, cfg lab.Config) *report.Result {
	t.Helper()
	result, err := lab.Run(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range result.Strategies {
		f := &result.Strategies[i]
		if f.Carried == nil {
			t.Fatalf("%s: nothing is said of the way", f.Name)
		}
		t.Logf("%+v, %+v", *f, *f.Carried)
		if f.Errors != 0 || f.UnrealReads != 0 || f.Reads < 100 || f.Writes == 0 || f.Carried.Overlapping == 0 || f.Carried.Late != 0 {
			t.Errorf("%s: %d reads, %d writes, %d errors (%s), %d unreal reads, %+v", f.Name, f.Reads, f.Writes, f.Errors, f.FirstError, f.UnrealReads, *f.Carried)
		}
	}
	return result
}

// over is a short run over HTTP while a replica lags.
func over(by string) lab.Config {
	cfg := usual()
	cfg.Scenario, cfg.Carrier, cfg.Strategies = "lag-spike", by, []string{"round-robin", report.Ours}
	cfg.Duration, cfg.Rate, cfg.Sessions = 3*time.Second, 150, 16
	return cfg
}

// Every carrier keeps the promises that an application without one breaks over the
// same HTTP. The runs follow one another, because each has three servers to feed.
func TestCarriers(t *testing.T) {
	pgcluster.InstallForTest(t)
	for _, c := range carrier.All() {
		t.Run(c.Name, func(t *testing.T) {
			result := run(t, over(c.Name))
			roundRobin, ours := &result.Strategies[0], &result.Strategies[1]
			if v := report.Judge(result, report.Terms{Danger: true}); v.Status != report.StatusKept {
				t.Error(v.Line)
			}
			if roundRobin.StaleReads == 0 || roundRobin.BackwardsReads == 0 || ours.Opportunities < 50 {
				t.Errorf("round-robin: %d stale and %d backward; ours: %d in danger", roundRobin.StaleReads, roundRobin.BackwardsReads, ours.Opportunities)
			}
			if result.Carrier != c.Name || result.Missing != "catch-up" {
				t.Errorf("carried by %q, missing %q", result.Carrier, result.Missing)
			}
			// Each session begins by catching up, and loses nothing on the way.
			if s := ours.Carried; s.Emitted == 0 && !c.CatchesUp || s.CatchUps < 16 || s.CatchUps > 16+100 || s.Fresh+s.Refused != 0 || s.Dropped != 0 {
				t.Errorf("%+v", *s)
			}
			if s := roundRobin.Carried; s.Emitted+s.CatchUps+s.Fresh+s.Refused != 0 {
				t.Errorf("round-robin has no sessions, and %+v", *s)
			}
			for _, f := range result.Strategies {
				if (f.Carried.Rereads > 0) != c.Events {
					t.Errorf("%s: %d rereads", f.Name, f.Carried.Rereads)
				}
			}
			if c.Events && roundRobin.Carried.StaleRereads == 0 {
				t.Error("no event was dangerous")
			}
		})
	}
}

// Who has lost a token sees everything, unless the policy takes it for somebody
// new: then it misses what it knew, and the run says that this is what it shows.
func TestLostTokens(t *testing.T) {
	pgcluster.InstallForTest(t)
	cfg := over("")
	cfg.Scenario, cfg.Strategies, cfg.Rate = "lost-token", []string{report.Ours}, 300
	result := run(t, cfg)
	ours := &result.Strategies[0]
	if v := report.Judge(result, report.Terms{Danger: true}); v.Status != report.StatusKept || result.Carrier != "header" {
		t.Errorf("%s, carried by %q", v.Line, result.Carrier)
	}
	if s := ours.Carried; s.Dropped < 3 || s.Tokens < s.Dropped || s.CatchUps < uint64(16+s.Dropped) || s.Fresh != 0 {
		t.Errorf("%+v", *s)
	}

	cfg.Missing = "fresh"
	result = run(t, cfg)
	ours = &result.Strategies[0]
	if v := report.Judge(result, report.Terms{Danger: true, Forgets: true}); v.Status != report.StatusKept {
		t.Error(v.Line)
	}
	if v := report.Judge(result, report.Terms{Danger: true}); v.Status != report.StatusBroken {
		t.Errorf("where it is not expected: %s", v.Line)
	}
	if s := ours.Carried; s.Dropped < 3 || s.Fresh < uint64(16+s.Dropped) || s.CatchUps != 0 || s.Unexcused != 0 || ours.StaleReads+ours.BackwardsReads == 0 {
		t.Errorf("%d stale and %d backward reads, %+v", ours.StaleReads, ours.BackwardsReads, *s)
	}
}
