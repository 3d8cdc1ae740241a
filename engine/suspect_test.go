package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

// What is written after a read from a replica is told of, with both places, and nothing
// else.
func TestSuspects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, on := range []bool{true, false} {
			var got []tidegate.Suspect
			c := fake.New(fake.Config{Replicas: 1})
			g, err := c.Open(t.Context(), fake.Options{Core: engine.Config{Cluster: "main", Suspects: on, Hooks: []tidegate.Hook{
				{Suspected: func(_ context.Context, x tidegate.Suspect) { got = append(got, x) }}, {},
			}}})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			in := func() context.Context { return tidegate.WithSession(t.Context(), tidegate.NewSession()) }
			ctx := in()
			writes(ctx, t, g)
			decides(ctx, t, g)
			writes(ctx, t, g)
			if len(got) != 0 {
				t.Errorf("a write, a strong read and a write: %+v", got)
			}
			other := in()
			reads(other, t, g)
			writes(ctx, t, g) // another session's
			if len(got) != 0 {
				t.Errorf("another session's write: %+v", got)
			}
			writes(other, t, g)
			want := 0
			if on {
				want = 1
			}
			if len(got) != want || g.Core().Stats().Suspects != uint64(want) {
				t.Fatalf("asked for: %v, told of %+v, counted %d", on, got, g.Core().Stats().Suspects)
			}
			if on && (got[0].Cluster != "main" || !strings.Contains(got[0].Read, "engine_test.reads (suspect_test.go:") || !strings.Contains(got[0].Write, "engine_test.writes (suspect_test.go:")) {
				t.Errorf("%+v", got[0])
			}
		}
	})
}

func writes(ctx context.Context, t *testing.T, g *fake.Gate) {
	if _, err := g.Write(ctx, 1); err != nil {
		t.Error(err)
	}
}

func reads(ctx context.Context, t *testing.T, g *fake.Gate) {
	if r, err := g.Look(ctx, tidegate.Causal); err != nil || r.Decision.Role != tidegate.RoleReplica {
		t.Error(r.Decision, err)
	}
}

func decides(ctx context.Context, t *testing.T, g *fake.Gate) {
	if _, err := g.Look(ctx, strong); err != nil {
		t.Error(err)
	}
}
