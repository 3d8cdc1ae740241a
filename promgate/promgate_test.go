package promgate_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
	"github.com/tidegatedb/tidegate/promgate"
)

var (
	claim     = tidegate.Strong("claim", "two workers must not both win")
	dashboard = tidegate.Relaxed("dashboard", "rollups for humans", tidegate.AnyStaleness())
)

// inBubble runs test on a cluster of a primary and two replicas with a watching
// collector.
func inBubble(t *testing.T, core engine.Config, test func(t *testing.T, c *promgate.Collector, cluster *fake.Cluster, g *fake.Gate)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := promgate.New(promgate.Config{})
		cluster := fake.New(fake.Config{Replicas: 2})
		core.Cluster, core.Hooks = "main", []tidegate.Hook{c.Hook()}
		g, err := cluster.Open(t.Context(), fake.Options{Core: core})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		defer c.Watch(g.Core())()
		test(t, c, cluster, g)
	})
}

// same compares the series of some metrics, given without HELP and TYPE.
func same(t *testing.T, c prometheus.Collector, want string, names ...string) {
	t.Helper()
	for i, n := range names {
		names[i] = "tidegate_" + n
	}
	got, err := testutil.CollectAndFormat(c, expfmt.TypeTextPlain, names...)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(got)) {
		if !strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	var w strings.Builder
	for line := range strings.Lines(want) {
		if line = strings.TrimSpace(line); line != "" {
			w.WriteString("tidegate_" + line + "\n")
		}
	}
	if b.String() != w.String() {
		t.Errorf("series:\n%swant:\n%s", b.String(), w.String())
	}
}

// value returns what the series with these labels ("name=value") counts: a
// counter's or a gauge's value, or the number of a histogram's observations.
// There must be one.
func value(t *testing.T, c prometheus.Collector, name string, labels ...string) float64 {
	t.Helper()
	m := find(t, c, name, labels...)
	if m == nil {
		t.Errorf("no series %s%v", name, labels)
		return -1
	}
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	}
	return float64(m.Histogram.GetSampleCount())
}

// find returns the series with these labels, or nil.
func find(t *testing.T, c prometheus.Collector, name string, labels ...string) *dto.Metric {
	t.Helper()
	for _, f := range gather(t, c) {
		if f.GetName() != "tidegate_"+name {
			continue
		}
	next:
		for _, m := range f.Metric {
			for _, l := range labels {
				k, v, _ := strings.Cut(l, "=")
				if !has(m, k, v) {
					continue next
				}
			}
			return m
		}
	}
	return nil
}

func has(m *dto.Metric, name, value string) bool {
	for _, l := range m.Label {
		if l.GetName() == name && l.GetValue() == value {
			return true
		}
	}
	return false
}

func gather(t *testing.T, c prometheus.Collector) []*dto.MetricFamily {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(c); err != nil {
		t.Fatal(err)
	}
	all, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return all
}
