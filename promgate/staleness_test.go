package promgate_test

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
	"github.com/tidegatedb/tidegate/promgate"
)

// of returns a decision on a read of the class by a replica whose answer is at most so
// old.
func of(class tidegate.Class, age time.Duration) tidegate.Decision {
	return tidegate.Decision{
		Cluster: "main", Node: "r1", Role: tidegate.RoleReplica, Class: class, Reason: tidegate.ReasonWithinBudget, Staleness: age, StalenessKnown: true,
	}
}

func TestStalenessOfReads(t *testing.T) {
	t.Parallel()
	report := tidegate.Relaxed("report", "a test", tidegate.Within(1500*time.Millisecond))
	c := promgate.New(promgate.Config{})
	told := func(d tidegate.Decision) { c.Hook().Decided(t.Context(), d) }
	for _, age := range []time.Duration{0, time.Millisecond, 80 * time.Millisecond, 80 * time.Millisecond, 120 * time.Millisecond, 2 * time.Hour} {
		told(of(report, age))
	}
	unknown := of(report, 0)
	unknown.StalenessKnown, unknown.Reason, unknown.Stale = false, tidegate.ReasonStale, true
	told(unknown)
	told(of(tidegate.Causal, time.Second))
	onPrimary := of(report, 0)
	onPrimary.Node, onPrimary.Role, onPrimary.Reason = "p", tidegate.RolePrimary, tidegate.ReasonBehind
	told(onPrimary)
	refused := tidegate.Decision{Cluster: "main", Class: dashboard, Reason: tidegate.ReasonShed}
	told(refused)
	same(t, c, `
		class_budget_seconds{class="report",cluster="main"} 1.5
		read_staleness_max_seconds{class="report",cluster="main"} 7200
		read_staleness_seconds_bucket{class="dashboard",cluster="main",le="0.001"} 0
	`+zeros("dashboard")+`
		read_staleness_seconds_bucket{class="report",cluster="main",le="0.001"} 2
		read_staleness_seconds_bucket{class="report",cluster="main",le="0.0025"} 2
		read_staleness_seconds_bucket{class="report",cluster="main",le="0.005"} 2
		read_staleness_seconds_bucket{class="report",cluster="main",le="0.01"} 2
		read_staleness_seconds_bucket{class="report",cluster="main",le="0.025"} 2
		read_staleness_seconds_bucket{class="report",cluster="main",le="0.05"} 2
		read_staleness_seconds_bucket{class="report",cluster="main",le="0.1"} 4
		read_staleness_seconds_bucket{class="report",cluster="main",le="0.15"} 5
		read_staleness_seconds_bucket{class="report",cluster="main",le="0.25"} 5
		read_staleness_seconds_bucket{class="report",cluster="main",le="0.5"} 5
		read_staleness_seconds_bucket{class="report",cluster="main",le="1"} 5
		read_staleness_seconds_bucket{class="report",cluster="main",le="2.5"} 5
		read_staleness_seconds_bucket{class="report",cluster="main",le="5"} 5
		read_staleness_seconds_bucket{class="report",cluster="main",le="10"} 5
		read_staleness_seconds_bucket{class="report",cluster="main",le="30"} 5
		read_staleness_seconds_bucket{class="report",cluster="main",le="60"} 5
		read_staleness_seconds_bucket{class="report",cluster="main",le="300"} 5
		read_staleness_seconds_bucket{class="report",cluster="main",le="900"} 5
		read_staleness_seconds_bucket{class="report",cluster="main",le="3600"} 5
		read_staleness_seconds_bucket{class="report",cluster="main",le="+Inf"} 6
		read_staleness_seconds_sum{class="report",cluster="main"} 7200.281
		read_staleness_seconds_count{class="report",cluster="main"} 6
		read_staleness_unknown_total{class="dashboard",cluster="main"} 0
		read_staleness_unknown_total{class="report",cluster="main"} 1
	`, "class_budget_seconds", "read_staleness_max_seconds", "read_staleness_seconds", "read_staleness_unknown_total")
	if h := find(t, c, "read_staleness_seconds", "class=report").Histogram; h.Schema == nil {
		t.Errorf("%v, want native buckets, too", h)
	}
}

// zeros are the other series of a histogram of the class that has counted nothing.
func zeros(class string) (s string) {
	for _, le := range []string{"0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.15", "0.25", "0.5", "1", "2.5", "5", "10", "30", "60", "300", "900", "3600", "+Inf"} {
		s += fmt.Sprintf("read_staleness_seconds_bucket{class=%q,cluster=\"main\",le=%q} 0\n", class, le)
	}
	return s + fmt.Sprintf("read_staleness_seconds_sum{class=%q,cluster=\"main\"} 0\nread_staleness_seconds_count{class=%[1]q,cluster=\"main\"} 0\n", class)
}

// The largest is that of this minute and of the one before, whoever scrapes how often.
func TestLargestStaleness(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := promgate.New(promgate.Config{})
		begun := time.Now()
		at := func(after time.Duration, want float64) {
			t.Helper()
			time.Sleep(after - time.Since(begun))
			switch m := find(t, c, "read_staleness_max_seconds", "class=dashboard"); {
			case want < 0 && m != nil:
				t.Errorf("after %v: %v, want none", after, m)
			case want >= 0 && (m == nil || m.Gauge.GetValue() != want):
				t.Errorf("after %v: %v, want %v", after, m, want)
			}
		}
		read := func(age time.Duration) { c.Hook().Decided(t.Context(), of(dashboard, age)) }
		at(0, -1)
		read(3 * time.Second)
		read(2 * time.Second)
		at(59*time.Second, 3)
		at(time.Minute, 3)
		read(time.Second)
		at(119*time.Second, 3)
		at(2*time.Minute, 1)
		at(179*time.Second, 1)
		at(3*time.Minute, -1)
		read(500 * time.Millisecond)
		at(5*time.Minute, -1)
		read(1500*time.Microsecond + 1) // a bound is rounded up, to the microsecond
		read(-time.Second)              // which none is
		at(5*time.Minute, .001501)
		time.Sleep(700 * 24 * time.Hour)
		at(time.Since(begun), -1)
		read(365 * 24 * time.Hour) // counts as the longest that a slot holds
		at(time.Since(begun), float64(1<<40-1)/1e6)
	})
}

// Two classes of one name are one in metrics: the one that is asked for more is what
// has to be kept.
func TestBudgetOfAName(t *testing.T) {
	t.Parallel()
	c := promgate.New(promgate.Config{MaxClasses: 2})
	budget := func(name string) float64 {
		if m := find(t, c, "class_budget_seconds", "class="+name); m != nil {
			return m.Gauge.GetValue()
		}
		return math.NaN()
	}
	relaxed := func(name string, b tidegate.Budget) {
		c.Hook().Decided(t.Context(), of(tidegate.Relaxed(name, "a test", b), time.Second))
	}
	relaxed("a", tidegate.AnyStaleness())
	if !math.IsNaN(budget("a")) {
		t.Error("any staleness is a budget")
	}
	for _, tt := range []struct {
		within time.Duration
		want   float64
	}{{time.Minute, 60}, {time.Hour, 60}, {time.Second, 1}} {
		relaxed("a", tidegate.Within(tt.within))
		if got := budget("a"); got != tt.want {
			t.Errorf("with %v: %v, want %v", tt.within, got, tt.want)
		}
	}
	relaxed("a", tidegate.AnyStaleness())
	if got := budget("a"); got != 1 {
		t.Errorf("with one that takes any age: %v, want 1", got)
	}
	// Those that are beyond MaxClasses have nothing in common, and whose name is theirs
	// is one of them.
	for _, name := range []string{"other", "c", "d"} {
		relaxed(name, tidegate.Within(time.Second))
	}
	if !math.IsNaN(budget("other")) {
		t.Error("all others have a budget")
	}
	if got := value(t, c, "read_staleness_seconds", "class=other"); got != 3 {
		t.Errorf("%v reads of others", got)
	}
	if n := testutil.CollectAndCount(c, "tidegate_read_staleness_max_seconds"); n != 2 {
		t.Errorf("%d largest, want that of a and of others", n)
	}
}

// What is measured of a cluster is what its decisions say.
func TestStalenessInACluster(t *testing.T) {
	t.Parallel()
	inBubble(t, engine.Config{}, func(t *testing.T, c *promgate.Collector, _ *fake.Cluster, g *fake.Gate) {
		report := tidegate.Relaxed("report", "a test", tidegate.Within(time.Minute))
		var sum, longest time.Duration
		for i := range 20 {
			time.Sleep(time.Duration(i*7) * time.Millisecond)
			r, err := g.Look(t.Context(), report)
			if err != nil || r.Decision.Role != tidegate.RoleReplica {
				t.Fatal(r.Decision, err)
			}
			sum += r.Decision.Staleness
			longest = max(longest, r.Decision.Staleness)
		}
		if longest == 0 {
			t.Error("no answer had an age")
		}
		h := find(t, c, "read_staleness_seconds", "class=report", "cluster=main").Histogram
		if h.GetSampleCount() != 20 || math.Abs(h.GetSampleSum()-sum.Seconds()) > 1e-9 {
			t.Errorf("%d reads of %v s, want 20 of %v", h.GetSampleCount(), h.GetSampleSum(), sum)
		}
		if got := value(t, c, "read_staleness_max_seconds", "class=report"); math.Abs(got-longest.Seconds()) > 1e-6 {
			t.Errorf("largest %v s, want %v", got, longest)
		}
	})
}
