package promgate_test

import (
	"context"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
	"github.com/tidegatedb/tidegate/promgate"
)

// router is a core on which a session reads without a server.
type router struct {
	core *engine.Core
	born engine.Observation
	took time.Duration
}

func newRouter(ctx context.Context, b *testing.B, hooks ...tidegate.Hook) *router {
	b.Helper()
	g, err := fake.New(fake.Config{Replicas: 4}).Open(ctx, fake.Options{Core: engine.Config{Cluster: "main", ProbeInterval: time.Hour, Hooks: hooks}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(g.Close)
	r := &router{core: g.Core()}
	var rd engine.Read
	if err := r.core.Begin(ctx, tidegate.Causal, &rd); err != nil {
		b.Fatal(err)
	}
	if r.born, err = rd.Source().Probe(ctx, nil); err != nil {
		b.Fatal(err)
	}
	r.core.End(&rd)
	return r
}

// read routes so many reads, and takes their time.
func (r *router) read(ctx context.Context, b *testing.B, n int) {
	begun := time.Now()
	for range n {
		var rd engine.Read
		if r.core.Begin(ctx, tidegate.Causal, &rd) != nil || !r.core.Admit(ctx, &rd, &r.born) {
			b.Fatal("refused")
		}
		r.core.End(&rd)
	}
	r.took += time.Since(begun)
}

// BenchmarkHook compares what routing a read costs without a hook, with one that
// does nothing, and with the metrics, in turns. Nothing of a server's part is in
// it, so the ratios are the worst case.
func BenchmarkHook(b *testing.B) {
	session := func() context.Context { return tidegate.WithSession(b.Context(), tidegate.NewSession()) }
	idle := tidegate.Hook{Decided: func(context.Context, tidegate.Decision) {}}
	ctxs := []context.Context{session(), session(), session()}
	none := newRouter(ctxs[0], b)
	nothing := newRouter(ctxs[1], b, idle)
	metrics := newRouter(ctxs[2], b, promgate.New(promgate.Config{}).Hook())
	const batch = 200
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		none.read(ctxs[0], b, batch)
		nothing.read(ctxs[1], b, batch)
		metrics.read(ctxs[2], b, batch)
		metrics.read(ctxs[2], b, batch)
		nothing.read(ctxs[1], b, batch)
		none.read(ctxs[0], b, batch)
		n += 2 * batch
	}
	per := func(r *router) float64 { return float64(r.took.Nanoseconds()) / float64(n) }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(per(none), "ns/none")
	b.ReportMetric(per(nothing), "ns/idle")
	b.ReportMetric(per(metrics), "ns/metrics")
	b.ReportMetric(per(metrics)/per(none), "metrics/none")
	b.ReportMetric(per(metrics)/per(nothing), "metrics/idle")
}

// BenchmarkDecided is the hook alone: for a causal read, and for a relaxed one, of
// which it takes in how old the answer can be.
func BenchmarkDecided(b *testing.B) {
	for name, d := range map[string]tidegate.Decision{
		"causal":  {Cluster: "main", Node: "r1", Role: tidegate.RoleReplica, Class: tidegate.Causal, Reason: tidegate.ReasonCovered, Staleness: 80 * time.Millisecond, StalenessKnown: true},
		"relaxed": {Cluster: "main", Node: "r1", Role: tidegate.RoleReplica, Class: dashboard, Reason: tidegate.ReasonWithinBudget, Staleness: 80 * time.Millisecond, StalenessKnown: true},
	} {
		b.Run(name, func(b *testing.B) {
			decided := promgate.New(promgate.Config{}).Hook().Decided
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				decided(ctx, d)
			}
		})
	}
}
