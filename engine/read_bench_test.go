package engine_test

import (
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// BenchmarkRead is all that the core costs a read: Begin, Admit and End, with a session
// in its context and five nodes; a causal one that stays where the session reads, and a
// relaxed one, whose age is counted.
func BenchmarkRead(b *testing.B) {
	cfg := engine.Config{Cluster: "main"}
	stubs := []*stub{primaryStub(1, 100), replicaStub(2, 100), replicaStub(3, 100), replicaStub(4, 100), replicaStub(5, 100)}
	for i, s := range stubs {
		cfg.Nodes = append(cfg.Nodes, engine.Node{Name: string(rune('a' + i)), Source: s})
	}
	c, err := engine.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if err := c.Ready(b.Context()); err != nil {
		b.Fatal(err)
	}
	ctx, _ := sessionAt(b.Context(), needs(50))
	var born [5]*engine.Observation
	for i, s := range stubs {
		born[i] = s.born()
	}
	for _, class := range []tidegate.Class{tidegate.Causal, tidegate.Relaxed("bench", "a benchmark", tidegate.AnyStaleness())} {
		b.Run(class.Name(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var rd engine.Read
				if err := c.Begin(ctx, class, &rd); err != nil {
					b.Fatal(err)
				}
				if !c.Admit(ctx, &rd, born[rd.Node()]) {
					b.Fatal("refused")
				}
				c.End(&rd)
			}
		})
	}
}
