package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

// A token whose position the cluster does not have costs its session a read or two on
// the primary; then it is told, and reads from replicas again.
func TestPositionThatIsNotThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := fake.New(fake.Config{Replicas: 2})
		g, err := c.Open(t.Context(), fake.Options{Core: engine.Config{Cluster: "main", Wait: 20 * time.Millisecond, ProbeInterval: time.Hour}})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		at := func(s *tidegate.Session) context.Context { return tidegate.WithSession(t.Context(), s) }
		writer := tidegate.NewSession()
		if _, err := g.Write(at(writer), 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		mark := writer.Token().Marks()[0]
		mark.Position, mark.Seen = tidegate.At(1<<40), nil
		s := tidegate.NewSession(tidegate.NewToken(mark))
		var reasons []tidegate.Reason
		for range 4 {
			ctx, seen := tidegate.Observe(at(s))
			if _, err := g.Look(ctx, tidegate.Causal); err != nil {
				t.Fatal(err)
			}
			d, _ := seen.Last()
			reasons = append(reasons, d.Reason)
			time.Sleep(10 * time.Millisecond) // for the look that the read has asked for
		}
		if reasons[0] != tidegate.ReasonBehind || reasons[1] != tidegate.ReasonHistoryChanged || reasons[2] == tidegate.ReasonBehind || reasons[3] == tidegate.ReasonBehind {
			t.Errorf("the reads went where they did because: %v", reasons)
		}
		if got := s.Token().Marks(); len(got) != 1 || got[0].Position.Covers(tidegate.At(1<<39)) {
			t.Errorf("it goes on requiring %+v", got)
		}
		// Another instance's write that this one has not heard of is not ahead.
		if _, err := g.Write(at(writer), 1); err != nil {
			t.Fatal(err)
		}
		hop := tidegate.NewSession(writer.Token())
		for range 3 {
			ctx, seen := tidegate.Observe(at(hop))
			if _, err := g.Look(ctx, tidegate.Causal); err != nil {
				t.Fatal(err)
			}
			if d, _ := seen.Last(); d.Reason == tidegate.ReasonHistoryChanged {
				t.Error("a token from a moment ago is taken for one of another history")
			}
		}
	})
}
