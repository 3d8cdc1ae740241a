package lab_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/fault"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/report"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// Whatever happens, tidegate keeps its promises and fails no read that it need
// not. The runs are short, with a little load: not all of them put many reads in
// danger. They follow one another, as all runs here do, because each has three servers to feed.
func TestScenarios(t *testing.T) {
	pgcluster.InstallForTest(t)
	special := map[string]func(*lab.Config){
		// Both ends of the load's settings in one run.
		"slow-standby-apply": func(c *lab.Config) { c.Strong, c.Wait, c.ApplyDelay = 0.1, 80*time.Millisecond, 50*time.Millisecond },
		"deploy":             func(c *lab.Config) { c.Strategies = append(c.Strategies, "tidegate-memory", "tidegate-amnesia") },
		"crash-backend":      func(c *lab.Config) { c.Duration = 4 * time.Second }, // it prepares for long
	}
	looks := map[string]func(*testing.T, *report.Result){
		"idle": func(t *testing.T, r *report.Result) {
			if f := r.Strategies[0]; f.ReplicaShare < 0.9 {
				t.Errorf("replicas with nothing new answered %v of the reads", f.ReplicaShare)
			}
		},
		"deploy": func(t *testing.T, r *report.Result) {
			if f := r.Strategies[2]; f.StaleReads+f.BackwardsReads == 0 {
				t.Error("sessions that were forgotten have lost nothing")
			}
		},
		"conflict": func(t *testing.T, r *report.Result) {
			if f := r.Strategies[0]; f.RecoveryConflicts == 0 || f.RetriedReads == 0 {
				t.Errorf("%d queries were canceled, %d reads went elsewhere", f.RecoveryConflicts, f.RetriedReads)
			}
		},
		"hang": func(t *testing.T, r *report.Result) {
			if f := r.Strategies[0]; f.ReturnMs == 0 || f.UnprovenReads > 0 || f.Errors != f.ReadsCutOff {
				t.Errorf("the replica is back after %d ms, %d unproven, %d errors and %d reads cut off", f.ReturnMs, f.UnprovenReads, f.Errors, f.ReadsCutOff)
			}
		},
		"slow-standby-apply": func(t *testing.T, r *report.Result) {
			if f := r.Strategies[0]; f.StrongReads == 0 || f.PrimaryReadsBy["strong"] != f.StrongReads || f.CausalReplicaShare <= f.ReplicaShare {
				t.Errorf("%d strong reads, on the primary %v; replicas answered %v, of the others %v", f.StrongReads, f.PrimaryReadsBy, f.ReplicaShare, f.CausalReplicaShare)
			}
		},
	}
	for _, s := range fault.All() {
		if slices.Contains([]string{"steady", "lag-spike", "kill-replica", "stampede", "budget", "backfill"}, s.Name) {
			continue // other tests run these
		}
		t.Run(s.Name, func(t *testing.T) {
			cfg := usual()
			cfg.Scenario, cfg.Strategies, cfg.Duration = s.Name, []string{report.Ours}, 2*time.Second
			cfg.Rate, cfg.Sessions = 150, 16
			if change := special[s.Name]; change != nil {
				change(&cfg)
			}
			var result *report.Result
			var v report.Verdict
			// A busy machine serves so little at times that a run says nothing, or so late that
			// a read is refused; in time and by a typed error that is no fault of anybody's.
			for tries := 1; tries <= 3; tries++ {
				var err error
				if result, err = lab.Run(t.Context(), cfg, nil); err != nil {
					t.Fatal(err)
				}
				for i := range result.Strategies {
					t.Logf("%+v", result.Strategies[i])
				}
				v = report.Judge(result, report.Terms{Errors: s.Errors, Hangs: s.Hangs, Sheds: true, Conflicts: s.Conflicts})
				if v.Status == report.StatusBroken || v.Status == report.StatusKept && result.Strategies[0].Reads >= 150 && (!s.Conflicts || result.Strategies[0].RetriedReads > 0) {
					break
				}
				cfg.Duration += cfg.Duration / 2
			}
			if v.Status != report.StatusKept {
				t.Error(v.Line)
			}
			if f := result.Strategies[0]; f.Reads < 150 || f.Writes == 0 {
				t.Errorf("%d reads, %d writes", f.Reads, f.Writes)
			}
			if look := looks[s.Name]; look != nil {
				look(t, result)
			}
		})
	}
}

// While a standby is dead, commits that every standby must have applied wait;
// ours do not.
func TestWritesStallForADeadStandby(t *testing.T) {
	pgcluster.InstallForTest(t)
	cfg := usual()
	cfg.Scenario, cfg.Duration = "kill-replica", 4*time.Second
	cfg.Strategies = []string{"remote-apply", "tidegate"}
	cfg.Rate, cfg.Sessions = 150, 16
	result, err := lab.Run(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	stalls := func(i int) time.Duration {
		return time.Duration(result.Strategies[i].WriteStallUs) * time.Microsecond
	}
	dead := cfg.Duration * 2 / 5
	if stalls(0) < dead/2 {
		t.Errorf("a standby was dead for %v, and remote-apply's writes stalled for %v", dead, stalls(0))
	}
	if stalls(1) >= stalls(0) {
		t.Errorf("tidegate's writes stalled for %v, remote-apply's for %v", stalls(1), stalls(0))
	}
	if v := report.Judge(result, report.Terms{Errors: true}); v.Status != report.StatusKept {
		t.Error(v.Line)
	}
	if f := &result.Strategies[1]; f.Ejections == 0 || f.ReturnMs == 0 {
		t.Errorf("a dead replica was left out %d times and was back after %d ms", f.Ejections, f.ReturnMs)
	}
	if !result.Strategies[0].Held || result.Strategies[1].Held {
		t.Error("which strategy holds writes back is not told")
	}
}
