package admin_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/admin"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

// What tools read stays what it is called.
func TestFieldNames(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, nil, func(t *testing.T, w *world) {
		c := item(t, w.get("/table", 200)["clusters"], "cluster", "main")
		e := w.get("/explain?class=causal", 200)
		for _, tt := range []struct {
			of   string
			x    map[string]any
			want string
		}{
			{"cluster", c, "cluster conflict epoch fallback_limit fallback_share_ratio fallbacks_high fallbacks_in_flight fallbacks_queued floor nodes primary rollout shown stats"},
			{"node", item(t, c["nodes"], "node", "p"), "applied apply_delay_ms dedicated demand_probes_total ejected_for_ms ejection epoch error failed_for_ms fence incarnation interval_probes_total lag_engine_units node probe_age_ms read_ms reads_in_flight role share_ratio slow staleness_ms tags usable zone"},
			{"stats", c["stats"].(map[string]any), "demand_probes_total fallbacks_total history_changed_total interval_probes_total predicted_total queued_total refused_total retries_total sessionless_reads_total sessionless_writes_total shadow_replica_total shadowed_total shed_total stale_total suspects_total unproven_total verdicts_total waits_total"},
			{"epoch", c["epoch"].(map[string]any), "fork line system"},
			{"explanation", e, "class cluster need nodes required session"},
			{"verdict", item(t, e["nodes"], "node", "p"), "applied eligible node probe_age_ms reads_in_flight role staleness_ms why"},
			{"class", item(t, w.get("/classes", 200)["classes"], "name", "causal"), "any_staleness bounds budget_ms declared error min_serving name need owner prefers requires wait_ms warning why"},
			{"rollout", item(t, w.get("/rollout", 200)["clusters"], "cluster", "main"), "changeable cluster rollout shadow share_ratio"},
		} {
			if got := keys(tt.x); got != tt.want {
				t.Errorf("%s: %s\nwant %s", tt.of, got, tt.want)
			}
		}
	})
}

func TestTable(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(c *fake.Cluster) { c.Nodes()[2].Stop() }, func(t *testing.T, w *world) {
		for range 5 {
			w.cluster.Commit(1)
		}
		w.cluster.Nodes()[1].Pause()
		w.cluster.Commit(1)
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		c := item(t, w.get("/table?cluster=main", 200)["clusters"], "cluster", "main")
		has(t, c, map[string]any{"primary": "p", "conflict": false, "shown": nil, "floor": nil, "rollout": "on"})
		has(t, c["epoch"].(map[string]any), map[string]any{"system": "77", "line": "1"})
		p := item(t, c["nodes"], "node", "p")
		has(t, p, map[string]any{"role": "primary", "usable": false, "applied": "60", "lag_engine_units": nil, "staleness_ms": nil, "error": nil, "failed_for_ms": nil, "zone": nil, "tags": []any{}, "dedicated": false})
		r := item(t, c["nodes"], "node", "r1")
		has(t, r, map[string]any{"role": "replica", "usable": true, "applied": "50", "lag_engine_units": 10.0, "reads_in_flight": 0.0})
		if age, ok := r["probe_age_ms"].(float64); !ok || age < 0 || age > 111 {
			t.Errorf("probe age %v ms, want less than an interval", r["probe_age_ms"])
		}
		if old, ok := r["staleness_ms"].(float64); !ok || old < 200 || old > 300 {
			t.Errorf("staleness %v ms, want the 250 since it was last current", r["staleness_ms"])
		}
		// Nothing is known of the one that never answered.
		gone := item(t, c["nodes"], "node", "r2")
		has(t, gone, map[string]any{
			"role": nil, "usable": false, "applied": nil, "epoch": nil, "incarnation": nil, "lag_engine_units": nil, "staleness_ms": nil,
			"probe_age_ms": nil, "apply_delay_ms": nil, "error": fake.ErrRefused.Error(),
		})
		if ms, ok := gone["failed_for_ms"].(float64); !ok || ms < 250 {
			t.Errorf("failed for %v ms", gone["failed_for_ms"])
		}
	})
}

func TestStatsCount(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, nil, func(t *testing.T, w *world) {
		if _, err := w.gate.Read(t.Context(), tidegate.Causal, 1); err != nil {
			t.Fatal(err)
		}
		if _, err := w.gate.Write(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		c := item(t, w.get("/table", 200)["clusters"], "cluster", "main")
		has(t, c["stats"].(map[string]any), map[string]any{"sessionless_reads_total": 1.0, "sessionless_writes_total": 1.0, "waits_total": 0.0})
		has(t, c, map[string]any{"fallback_limit": nil, "fallbacks_in_flight": 0.0, "fallbacks_queued": 0.0, "fallback_share_ratio": 0.0, "fallbacks_high": false})
		has(t, item(t, c["nodes"], "node", "r1"), map[string]any{"ejection": nil, "ejected_for_ms": nil, "share_ratio": 1.0, "read_ms": nil, "slow": false})
	})
}

// frozen is a source that says what it is told to.
type frozen engine.Status

func (f frozen) Status() engine.Status { return engine.Status(f) }

func (frozen) Explain(context.Context, tidegate.Class) engine.Explanation {
	return engine.Explanation{}
}

// Numbers are in the unit of their name, and what fits no number is a string.
func TestUnits(t *testing.T) {
	t.Parallel()
	s := frozen{Cluster: "main", Conflict: true, Floor: tidegate.At(1 << 61), FallbackLimit: .25, FallbacksNow: 1, FallbacksQueued: 2, FallbackShare: .5, FallbacksHigh: true, Stats: engine.Stats{Retries: engine.Retries{tidegate.RetryPool: 3}}, Shown: tidegate.Beyond(1 << 60), Nodes: []engine.NodeStatus{{
		Node: "r1", Zone: "a", Tags: []string{"big"}, Dedicated: true, Role: tidegate.RoleReplica, Incarnation: 1<<63 + 1, Applied: tidegate.Beyond(7), Lag: 0, LagKnown: true,
		Staleness: 0, StalenessKnown: true, ProbeAge: 1234567 * time.Nanosecond, Delay: 12 * time.Millisecond, Flying: 3, Probes: 4, DemandProbes: 5,
		Ejection: tidegate.EjectionLag, Ejected: 2 * time.Second, Share: .5, Took: 30 * time.Millisecond, Slow: true,
	}}}
	h := admin.Handler(admin.Config{Sources: []admin.Source{s}})
	c := item(t, decode(t, serve(h, http.MethodGet, "/table", ""), 200)["clusters"], "cluster", "main")
	has(t, c, map[string]any{"conflict": true, "primary": nil, "epoch": nil, "shown": ">1152921504606846976", "floor": "2305843009213693952",
		"fallback_limit": .25, "fallbacks_in_flight": 1.0, "fallbacks_queued": 2.0, "fallback_share_ratio": .5, "fallbacks_high": true})
	retries := c["stats"].(map[string]any)["retries_total"].(map[string]any)
	has(t, retries, map[string]any{"pool": 3.0, "connection": 0.0, "recovery-conflict": 0.0})
	if len(retries) != tidegate.RetryCauses-1 {
		t.Errorf("%d causes: %v", len(retries), retries)
	}
	// A zero that is known is a zero.
	has(t, item(t, c["nodes"], "node", "r1"), map[string]any{
		"zone": "a", "tags": []any{"big"}, "dedicated": true, "incarnation": "8000000000000001", "applied": ">7", "lag_engine_units": 0.0, "staleness_ms": 0.0, "probe_age_ms": 1.234,
		"apply_delay_ms": 12.0, "reads_in_flight": 3.0, "interval_probes_total": 4.0, "demand_probes_total": 5.0,
		"ejection": "lag", "ejected_for_ms": 2000.0, "share_ratio": .5, "read_ms": 30.0, "slow": true,
	})
}
