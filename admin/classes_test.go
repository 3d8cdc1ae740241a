package admin_test

import (
	"strings"
	"testing"
)

func TestClasses(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, nil, func(t *testing.T, w *world) {
		all := w.get("/classes", 200)["classes"]
		has(t, item(t, all, "name", "causal"), map[string]any{"need": "causal", "budget_ms": nil, "wait_ms": nil, "owner": nil, "declared": 1.0, "error": nil, "warning": nil})
		has(t, item(t, all, "name", claim.Name()), map[string]any{"need": "strong", "owner": "jobs", "why": "two workers must not both win", "wait_ms": nil})
		// No wait is not the cluster's wait.
		has(t, item(t, all, "name", dashboard.Name()), map[string]any{"need": "relaxed", "budget_ms": 1500.0, "any_staleness": false, "wait_ms": 0.0})
		has(t, item(t, all, "name", archive.Name()), map[string]any{"budget_ms": nil, "any_staleness": true})
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
