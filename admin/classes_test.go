package admin_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/admin"
	"github.com/tidegatedb/tidegate/engine"
)

func TestClasses(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, nil, func(t *testing.T, w *world) {
		all := w.get("/classes", 200)["classes"]
		has(t, item(t, all, "name", "causal"), map[string]any{"need": "causal", "budget_ms": nil, "wait_ms": nil, "owner": nil, "declared": 1.0, "error": nil, "warning": nil})
		has(t, item(t, all, "name", claim.Name()), map[string]any{"need": "strong", "owner": "jobs", "why": "two workers must not both win", "wait_ms": nil})
		// No wait is not the cluster's wait.
		has(t, item(t, all, "name", dashboard.Name()), map[string]any{"need": "relaxed", "budget_ms": 1500.0, "any_staleness": false, "wait_ms": 0.0})
		has(t, item(t, all, "name", archive.Name()), map[string]any{"budget_ms": nil, "any_staleness": true, "requires": []any{}, "prefers": []any{}, "min_serving": 0.0})
		has(t, item(t, all, "name", tagged.Name()), map[string]any{"declared": 1.0, "requires": []any{"reporting"}, "prefers": []any{"big"}, "min_serving": 2.0})
		if warning, _ := item(t, all, "name", tags1.Name())["warning"].(string); !strings.Contains(warning, "2 different classes") {
			t.Errorf("classes that differ by their tags: warning %q", warning)
		}
		has(t, item(t, all, "name", same1.Name()), map[string]any{"declared": 2.0, "warning": nil})
		for _, why := range []string{twice1.Why(), twice2.Why()} {
			k := item(t, all, "why", why)
			has(t, k, map[string]any{"name": "admin-test-twice", "declared": 1.0})
			if warning, _ := k["warning"].(string); !strings.Contains(warning, "2 different classes") {
				t.Errorf("warning %v", k["warning"])
			}
		}
		if err, _ := item(t, all, "name", unusable.Name())["error"].(string); !strings.Contains(err, "says no reason") {
			t.Errorf("error %q", err)
		}
	})
}

// What is used of a budget is beside it: in milliseconds, for each cluster.
func TestBoundsOfAClass(t *testing.T) {
	t.Parallel()
	other := frozen{Cluster: "other", Classes: []engine.ClassStatus{
		{Class: dashboard.Name(), Reads: 7, Unknown: 2, StalenessP50: 51199 * time.Microsecond, StalenessP99: time.Second, StalenessMax: 1250 * time.Millisecond},
		{Class: archive.Name(), Unknown: 3},
		{Class: claim.Name(), Reads: 1}, // of a strong class that has the name of a relaxed one
	}}
	inBubble(t, func(cfg *admin.Config) { cfg.Sources = append(cfg.Sources, other) }, nil, func(t *testing.T, w *world) {
		var ages []time.Duration
		for range 30 {
			time.Sleep(17 * time.Millisecond)
			r, err := w.gate.Look(t.Context(), dashboard)
			if err != nil || r.Decision.Role != tidegate.RoleReplica {
				t.Fatal(r.Decision, err)
			}
			ages = append(ages, r.Decision.Staleness)
		}
		slices.Sort(ages)
		all := w.get("/classes", 200)["classes"]
		k := item(t, all, "name", dashboard.Name())
		has(t, k, map[string]any{"budget_ms": 1500.0})
		has(t, item(t, k["bounds"], "cluster", "other"), map[string]any{
			"reads_total": 7.0, "reads_unknown_total": 2.0, "bound_p50_ms": 51.199, "bound_p99_ms": 1000.0, "bound_max_ms": 1250.0,
		})
		own := item(t, k["bounds"], "cluster", "main")
		has(t, own, map[string]any{"reads_total": 30.0, "reads_unknown_total": 0.0, "bound_max_ms": float64(ages[29].Microseconds()) / 1000})
		if got, want := keys(own), "bound_max_ms bound_p50_ms bound_p99_ms cluster reads_total reads_unknown_total"; got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		for name, want := range map[string]time.Duration{"bound_p50_ms": ages[14], "bound_p99_ms": ages[29]} {
			ms := float64(want.Microseconds()) / 1000
			if got, ok := own[name].(float64); !ok || got < ms || got > math.Ceil(ms*17/16) || ms == 0 {
				t.Errorf("%s is %v, want %v to a sixteenth more", name, own[name], ms)
			}
		}
		has(t, item(t, item(t, all, "name", archive.Name())["bounds"], "cluster", "other"), map[string]any{
			"reads_total": 0.0, "reads_unknown_total": 3.0, "bound_p50_ms": nil, "bound_p99_ms": nil, "bound_max_ms": nil,
		})
		for _, name := range []string{claim.Name(), "causal"} {
			if b, ok := item(t, all, "name", name)["bounds"].([]any); !ok || len(b) != 0 {
				t.Errorf("%s has bounds %v", name, b)
			}
		}
	})
}
