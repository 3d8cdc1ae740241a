package lab_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// A replica that lags shows the past to an application that does not mind, and
// the lab sees it: without that, a run without violations would mean nothing.
// The same load on the same cluster is safe with tidegate.
func TestLagSpike(t *testing.T) {
	t.Parallel()
	pgcluster.InstallForTest(t)
	cfg := usual()
	cfg.Scenario, cfg.Duration, cfg.KeepLogs = "lag-spike", 4*time.Second, t.TempDir()
	cfg.Strategies = []string{"round-robin", "tidegate"}
	cfg.Rate = 200 // little, so that a busy machine with the race detector keeps up
	result, err := lab.Run(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range result.Strategies {
		f := &result.Strategies[i]
		t.Logf("%+v", *f)
		if f.Opportunities < f.StaleReads || f.Opportunities < 50 || f.Opportunities > f.Reads {
			t.Errorf("%s: %d of %d reads were in danger", f.Name, f.Opportunities, f.Reads)
		}
		if f.Errors != 0 || f.UnrealReads != 0 {
			t.Errorf("%s: %d errors (%s), %d unreal reads (%s)", f.Name, f.Errors, f.FirstError, f.UnrealReads, f.FirstViolation)
		}
		if f.Reads+f.Unsent < 600 || f.Writes == 0 || f.ReplicaReads+f.Fallbacks != f.Reads {
			t.Errorf("%s: %d reads, %d on replicas, %d fell back, %d writes", f.Name, f.Reads, f.ReplicaReads, f.Fallbacks, f.Writes)
		}
		if f.ReadP50us <= 0 || f.ReadP99us < f.ReadP50us || f.WriteP50us <= 0 || f.ReadAfterWriteP50us <= 0 || f.ReadAfterWriteNowP50us <= 0 {
			t.Errorf("%s: a latency is missing", f.Name)
		}
	}
	roundRobin, ours := &result.Strategies[0], &result.Strategies[1]
	if roundRobin.StaleReads == 0 || roundRobin.BackwardsReads == 0 {
		t.Errorf("round-robin: %d stale and %d backward reads", roundRobin.StaleReads, roundRobin.BackwardsReads)
	}
	if ours.StaleReads != 0 || ours.BackwardsReads != 0 {
		t.Errorf("tidegate: %d stale and %d backward reads, first: %s", ours.StaleReads, ours.BackwardsReads, ours.FirstViolation)
	}
	if result.ServerVersion == "" || result.Scenario != "lag-spike" {
		t.Errorf("%+v", result)
	}
	for _, name := range []string{"primary", "replica1", "replica2"} {
		if _, err := os.Stat(filepath.Join(cfg.KeepLogs, name+".log")); err != nil {
			t.Error(err)
		}
	}
}

func TestRunNeedsServerPrograms(t *testing.T) {
	t.Parallel()
	cfg := usual()
	cfg.PGBin = t.TempDir()
	if _, err := lab.Run(t.Context(), cfg, nil); !errors.Is(err, lab.ErrNoServer) {
		t.Errorf("got %v", err)
	}
}

func TestRunEndsBeforeItBegins(t *testing.T) {
	t.Parallel()
	pgcluster.InstallForTest(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	result, err := lab.Run(ctx, usual(), nil)
	if !errors.Is(err, context.Canceled) || result == nil || len(result.Strategies) != 0 {
		t.Errorf("got %v, %v", result, err)
	}
}
