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

// Nothing is written for ten minutes: replicas are as young as their last looks, and are
// used by all who were before, with a short memory, a small budget, or a mark.
func TestIdleClusterStaysFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 100 * time.Millisecond
		c := fake.New(fake.Config{Replicas: 2, Delay: time.Millisecond})
		var changes []tidegate.ChangeKind
		hook := tidegate.Hook{Changed: func(x tidegate.Change) { changes = append(changes, x.Kind) }}
		g, err := c.Open(t.Context(), fake.Options{Core: engine.Config{
			ProbeInterval: interval, LongestLag: 5 * time.Second, MostLag: 1, Hooks: []tidegate.Hook{hook}}})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		wrote := tidegate.WithSession(t.Context(), tidegate.NewSession())
		if _, err := g.Write(wrote, 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		found := len(changes)
		fresh := tidegate.Relaxed("fresh", "test", tidegate.Within(3*interval))
		for range 120 {
			time.Sleep(5 * time.Second)
			for _, n := range g.Core().Status().Nodes[1:] {
				if !n.Usable || !n.StalenessKnown || n.Staleness > 3*interval || !n.LagKnown || n.Lag != 0 || n.Share != 1 {
					t.Fatalf("%+v", n)
				}
			}
			begun := tidegate.WithSession(t.Context(), tidegate.NewSession())
			for _, class := range []tidegate.Class{tidegate.Causal, fresh, relaxedAny} {
				for _, ctx := range []context.Context{wrote, begun} {
					r, err := g.Look(ctx, class)
					if d := r.Decision; err != nil || d.Role != tidegate.RoleReplica || d.Waited > 0 || d.Staleness > 3*interval {
						t.Fatalf("a %s read: %v, %v", class.Name(), d, err)
					}
				}
			}
		}
		synctest.Wait()
		if len(changes) != found {
			t.Errorf("what was told meanwhile: %v", changes[found:])
		}
	})
}

// The look at a replica can be newer than the one at the primary: then it is ahead of what is
// known of the primary, which is no lag, of whatever size.
func TestReplicaAheadOfTheKnownPrimary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, ahead, behind := primaryStub(1, 100), replicaStub(2, 120), replicaStub(3, 90)
		var log []tidegate.Change
		var lags []uint64
		c := core(t, engine.Config{MostLag: 15, LongestLag: time.Hour, Hooks: []tidegate.Hook{{
			Changed: func(x tidegate.Change) { log = append(log, x) },
			Probed: func(x tidegate.Probe) {
				if x.LagKnown {
					lags = append(lags, x.Lag)
				}
			},
		}}}, p, ahead, behind)
		for i := range 3 {
			c.Suspect(1 + i%2)
			time.Sleep(time.Second)
		}
		nodes := c.Status().Nodes
		if n := nodes[1]; !n.LagKnown || n.Lag != 0 || n.Ejection != tidegate.EjectionNone || !n.StalenessKnown || n.Staleness < 0 {
			t.Errorf("the one ahead: %+v", n)
		}
		if n := nodes[2]; !n.LagKnown || n.Lag != 10 || n.Ejection != tidegate.EjectionNone {
			t.Errorf("the one behind: %+v", n)
		}
		synctest.Wait()
		for _, lag := range lags {
			if lag > 10 {
				t.Errorf("a lag of %d was told", lag)
			}
		}
		for _, x := range log {
			if x.Kind == tidegate.NodeEjected {
				t.Errorf("%+v", x)
			}
		}
		// What it has beyond the primary's last look is served.
		ctx, _ := sessionAt(t.Context(), needs(115))
		rd := begin(ctx, t, c, tidegate.Causal)
		went(t, c, rd, "b", tidegate.ReasonCovered, false)
		c.End(rd)
	})
}
