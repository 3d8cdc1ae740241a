package promgate_test

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
	"github.com/tidegatedb/tidegate/promgate"
)

func Example() {
	metrics := promgate.New(promgate.Config{})
	registry := prometheus.NewRegistry() // an application often uses the default one
	registry.MustRegister(metrics)

	// In an application this is pgxgate.Open with pgxgate.Config.Hooks.
	ctx := context.Background()
	db, err := fake.New(fake.Config{Replicas: 2}).Open(ctx, fake.Options{
		Core: engine.Config{Cluster: "main", Hooks: []tidegate.Hook{metrics.Hook()}},
	})
	if err != nil {
		panic(err)
	}
	defer db.Close()
	defer metrics.Watch(db.Core())()

	ctx = tidegate.WithSession(ctx, tidegate.NewSession())
	for range 3 {
		if _, err := db.Read(ctx, tidegate.Causal, 1); err != nil {
			panic(err)
		}
	}

	families, err := registry.Gather()
	if err != nil {
		panic(err)
	}
	for _, f := range families {
		if f.GetName() == "tidegate_reads_total" {
			reads := 0.0
			for _, m := range f.Metric {
				reads += m.Counter.GetValue()
			}
			fmt.Println(f.GetName(), reads)
		}
	}
	// Output: tidegate_reads_total 3
}
