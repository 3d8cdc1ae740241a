package eventgate_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/eventgate"
)

func wrote(b *testing.B) context.Context {
	return tidegate.WithToken(b.Context(), tidegate.NewToken(tidegate.Mark{
		Cluster: "main", Epoch: tidegate.Epoch{System: 1, Line: 1}, Position: tidegate.At(1 << 30), Seen: []tidegate.Incarnation{7},
	}))
}

func BenchmarkInject(b *testing.B) {
	for name, change := range map[string]func(*eventgate.Config){
		"signed": func(*eventgate.Config) {}, "unsigned": func(c *eventgate.Config) { c.TrustedBroker = true },
	} {
		b.Run(name, func(b *testing.B) {
			g, ctx, text := gate(b, change), wrote(b), ""
			b.ReportAllocs()
			for b.Loop() {
				if err := g.Inject(ctx, eventgate.InString(&text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkExtract(b *testing.B) {
	for _, name := range []string{"signed", "none"} {
		b.Run(name, func(b *testing.B) {
			g, text := gate(b), ""
			if name == "signed" {
				if err := g.Inject(wrote(b), eventgate.InString(&text)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := g.Extract(b.Context(), eventgate.InString(&text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkInJSON(b *testing.B) {
	raw, err := json.Marshal(map[string]any{"id": 7, "name": "something longer", "lines": make([]int, 200), "z": map[string]any{"a": "b"}})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		object := raw
		c := eventgate.InJSON(&object, eventgate.JSONField)
		if err := c.SetToken("tg1.example"); err != nil || len(c.Tokens()) != 1 {
			b.Fatal(err)
		}
	}
}
