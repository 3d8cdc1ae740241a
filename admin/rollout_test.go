package admin_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/admin"
)

func changing(c *admin.Config) { c.ChangeRollout = true }

func TestRollout(t *testing.T) {
	t.Parallel()
	inBubble(t, changing, nil, func(t *testing.T, w *world) {
		one := func(x map[string]any) map[string]any { return item(t, x["clusters"], "cluster", "main") }
		has(t, one(w.get("/rollout", 200)), map[string]any{"rollout": "on", "share_ratio": 1.0, "shadow": false, "changeable": true})
		for _, tt := range []struct {
			method, target, form string
			want                 tidegate.Rollout
		}{
			{http.MethodPut, "/rollout?rollout=shadow", "", tidegate.RolloutShadow},
			{http.MethodPost, "/rollout?cluster=main", "rollout=0.25", tidegate.RolloutShare(.25)},
			{http.MethodPut, "/rollout", "cluster=main&rollout=5%25", tidegate.RolloutShare(.05)},
			{http.MethodPut, "/rollout?rollout=on", "", tidegate.RolloutOn},
		} {
			x := one(decode(t, serve(w.h, tt.method, tt.target, tt.form), 200))
			has(t, x, map[string]any{"rollout": tt.want.String(), "share_ratio": tt.want.Share(), "shadow": tt.want.Shadow()})
			if got := w.gate.Core().Rollout(); got != tt.want {
				t.Errorf("%s %s: the rollout is %v, want %v", tt.method, tt.target, got, tt.want)
			}
		}
	})
}

func TestRolloutRefuses(t *testing.T) {
	t.Parallel()
	inBubble(t, changing, nil, func(t *testing.T, w *world) {
		for _, tt := range []struct {
			target, form, field string
			status              int
		}{
			{"/rollout", "", "rollout", 400},
			{"/rollout?rollout=", "", "rollout", 400},
			{"/rollout?rollout=most", "", "rollout", 400},
			{"/rollout?rollout=1.5", "", "rollout", 400},
			{"/rollout", "rollout=5%", "", 400},
			{"/rollout?rollout=off", "rollout=on", "rollout", 400},
			{"/rollout?rollout=off&cluster=other", "", "cluster", 404},
		} {
			refused(t, decode(t, serve(w.h, http.MethodPut, tt.target, tt.form), tt.status), tt.status, tt.field)
		}
		r := httptest.NewRequest(http.MethodPost, "/rollout?rollout=off", nil)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		rec := httptest.NewRecorder()
		w.h.ServeHTTP(rec, r)
		refused(t, decode(t, rec, 403), 403, "")
		if got := w.gate.Core().Rollout(); got != tidegate.RolloutOn {
			t.Errorf("the rollout is %v", got)
		}
	})
}

// A source without SetRollout shows its rollout.
func TestRolloutThatCannotBeChanged(t *testing.T) {
	t.Parallel()
	fixed := func(c *admin.Config) {
		c.ChangeRollout = true
		c.Sources[0] = struct{ admin.Source }{c.Sources[0]}
	}
	inBubble(t, fixed, nil, func(t *testing.T, w *world) {
		has(t, item(t, w.get("/rollout", 200)["clusters"], "cluster", "main"), map[string]any{"changeable": false, "rollout": "on"})
		refused(t, decode(t, serve(w.h, http.MethodPut, "/rollout?rollout=off", ""), 409), 409, "cluster")
	})
}
