package promgate_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
	"github.com/tidegatedb/tidegate/promgate"
)

func TestSuspects(t *testing.T) {
	t.Parallel()
	c := promgate.New(promgate.Config{})
	for _, site := range []string{"shop.Pay (pay.go:12)", "shop.Pay (pay.go:12)", "shop.Ship (ship.go:7)", "", "b\xff"} {
		c.Hook().Suspected(t.Context(), tidegate.Suspect{Cluster: "main", Read: "shop.Look (look.go:1)", Write: site})
	}
	same(t, c, `
		suspect_writes_total{call_site="b`+"\uFFFD"+`ff",cluster="main"} 1
		suspect_writes_total{call_site="shop.Pay (pay.go:12)",cluster="main"} 2
		suspect_writes_total{call_site="shop.Ship (ship.go:7)",cluster="main"} 1
		suspect_writes_total{call_site="unknown",cluster="main"} 1
	`, "suspect_writes_total")
}

func TestCallSitesAreBounded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ limit, own int }{{0, 100}, {3, 3}, {-1, 0}} {
		c := promgate.New(promgate.Config{MaxCallSites: tt.limit})
		for range 2 {
			for i := range 150 {
				c.Hook().Suspected(t.Context(), tidegate.Suspect{Cluster: "main", Write: fmt.Sprintf("f (f.go:%d)", i)})
			}
		}
		if n := testutil.CollectAndCount(c, "tidegate_suspect_writes_total"); n != tt.own+1 {
			t.Errorf("limit %d: %d series, want %d and the others'", tt.limit, n, tt.own)
		}
		if got := value(t, c, "suspect_writes_total", "call_site=other"); got != float64(2*(150-tt.own)) {
			t.Errorf("limit %d: %v of others", tt.limit, got)
		}
	}
}

// A cluster that is told to look for suspects has them counted where they write.
func TestSuspectsOfACluster(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := promgate.New(promgate.Config{})
		g, err := fake.New(fake.Config{Replicas: 1}).Open(t.Context(), fake.Options{Core: engine.Config{Cluster: "main", Suspects: true, Hooks: []tidegate.Hook{c.Hook()}}})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		ctx := tidegate.WithSession(t.Context(), tidegate.NewSession())
		if _, err := g.Read(ctx, tidegate.Causal, 1); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Write(ctx, 1); err != nil {
			t.Fatal(err)
		}
		m := find(t, c, "suspect_writes_total", "cluster=main")
		if m == nil || m.Counter.GetValue() != 1 {
			t.Fatalf("%v, want one", m)
		}
		for _, l := range m.Label {
			if l.GetName() == "call_site" && !strings.Contains(l.GetValue(), "promgate_test.TestSuspectsOfACluster") {
				t.Errorf("counted at %q", l.GetValue())
			}
		}
	})
}
