package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

// longFork returns a gate and a session that has seen on the replica, which is
// gone now, what the primary does not show yet.
func longFork(t *testing.T, cfg engine.Config) (*fake.Gate, context.Context, *fake.Process) {
	t.Helper()
	c := fake.New(fake.Config{Replicas: 1, Manual: true})
	g, err := c.Open(t.Context(), fake.Options{Core: cfg})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	p, r := c.Nodes()[0].Begin(1), c.Nodes()[1]
	p.Flush()
	r.Receive(1)
	r.Show()
	r.Publish()
	ctx := tidegate.WithSession(t.Context(), tidegate.NewSession())
	res, err := g.Look(ctx, tidegate.Causal)
	if err != nil || !res.View.Has(1) || c.Nodes()[0].View().Has(1) {
		t.Fatalf("the replica is not ahead of the primary: %v, %v", res.View, err)
	}
	r.Stop()
	g.Core().Suspect(1)
	time.Sleep(time.Millisecond)
	return g, ctx, p
}

// A primary that is older than what the session saw on its replica answers once
// it shows as much.
func TestPrimaryAnswersWhenItShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, ctx, p := longFork(t, engine.Config{})
		time.AfterFunc(100*time.Millisecond, p.End)
		began := time.Now()
		res, err := g.Look(ctx, tidegate.Causal)
		if err != nil || !res.View.Has(1) || res.Decision.Unproven || res.Decision.Role != tidegate.RolePrimary {
			t.Fatalf("%v, %v: want the commit, proven, from the primary", res.Decision, err)
		}
		if took := time.Since(began); took < 100*time.Millisecond || took > 120*time.Millisecond {
			t.Errorf("answered after %v, want soon after the primary shows it", took)
		}
		// What has been proven is known to all from now on.
		if res, _ := g.Look(ctx, tidegate.Causal); res.Decision.Waited > 0 {
			t.Errorf("the next read waited too: %v", res.Decision)
		}
	})
}

// When it does not show it in time, the answer says that it is not proven.
func TestPrimaryAnswersUnproven(t *testing.T) {
	for _, x := range []struct {
		name             string
		deadline, within time.Duration
	}{
		{"ProofWait", 0, 300 * time.Millisecond},
		{"half of the caller's time", 100 * time.Millisecond, 50 * time.Millisecond},
		{"a caller with more time", 10 * time.Second, 300 * time.Millisecond},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, ctx, _ := longFork(t, engine.Config{ProofWait: 300 * time.Millisecond})
				if x.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, x.deadline)
					defer cancel()
				}
				began := time.Now()
				res, err := g.Look(ctx, tidegate.Causal)
				took := time.Since(began)
				if err != nil || !res.Decision.Unproven || res.View.Has(1) {
					t.Fatalf("%v, %v: want an unproven answer without the commit", res.Decision, err)
				}
				if took != x.within || res.Decision.Waited != x.within {
					t.Errorf("answered after %v, waited %v, want %v", took, res.Decision.Waited, x.within)
				}
				if n := g.Core().Stats().Unproven; n != 1 {
					t.Errorf("%d unproven reads were counted, want 1", n)
				}
			})
		})
	}
}

// Strong reads follow the same rule; relaxed ones promise less and do not wait.
func TestPrimaryAnswersByClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, ctx, _ := longFork(t, engine.Config{ProofWait: 300 * time.Millisecond})
		res, err := g.Look(ctx, strong)
		if err != nil || !res.Decision.Unproven || res.Decision.Waited != 300*time.Millisecond {
			t.Errorf("strong: %v, %v, want an unproven answer after ProofWait", res.Decision, err)
		}
		res, err = g.Look(ctx, relaxed)
		if err != nil || res.Decision.Unproven || res.Decision.Waited != 0 {
			t.Errorf("relaxed: %v, %v, want an answer at once", res.Decision, err)
		}
	})
}

// The wait for a replica is the class's, or the core's, and never more than half
// of the caller's time.
func TestWait(t *testing.T) {
	const none, ofCore = 0, 20 * time.Millisecond
	patient := tidegate.NewCausal("patient", "it can wait", tidegate.Wait(70*time.Millisecond))
	hasty := tidegate.NewCausal("hasty", "it can not", tidegate.Wait(0))
	for _, x := range []struct {
		name     string
		class    tidegate.Class
		wait     time.Duration
		deadline time.Duration
		want     time.Duration
	}{
		{"default", tidegate.Causal, 0, 0, ofCore},
		{"of the core", tidegate.Causal, 50 * time.Millisecond, 0, 50 * time.Millisecond},
		{"none", tidegate.Causal, -1, 0, none},
		{"of the class", patient, 0, 0, 70 * time.Millisecond},
		{"none of the class", hasty, 0, 0, none},
		{"of the caller", patient, 0, 40 * time.Millisecond, 20 * time.Millisecond},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := core(t, engine.Config{Wait: x.wait}, primaryStub(1, 100), replicaStub(2, 10))
				ctx, _ := sessionAt(t.Context(), needs(50))
				if x.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, x.deadline)
					defer cancel()
				}
				began := time.Now()
				rd := begin(ctx, t, c, x.class)
				if d := went(t, c, rd, "a", tidegate.ReasonBehind, false); time.Since(began) != x.want || d.Waited != x.want {
					t.Errorf("went on after %v, waited %v, want %v", time.Since(began), d.Waited, x.want)
				}
			})
		})
	}
}

// A read that waits, for a replica or for a proof, ends with its context at once.
func TestWaitEndsWithTheContext(t *testing.T) {
	for _, x := range []struct {
		name string
		mark tidegate.Mark
		c    tidegate.Class
	}{
		{"for a replica", needs(50), tidegate.NewCausal("patient", "it can wait", tidegate.Wait(time.Hour))},
		{"for a proof", tidegate.Mark{Epoch: epoch(1), Position: tidegate.At(50), Shown: tidegate.At(50)}, strong},
		{"for a catch-up", tidegate.Mark{Epoch: epoch(1), CatchUp: true, Primary: 100, Pending: []uint64{7}}, strong},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := primaryStub(1, 100)
				p.answer.Running, p.hides = []uint64{7}, true
				c := core(t, engine.Config{ProofWait: time.Hour}, p, replicaStub(2, 10))
				ctx, s := sessionAt(t.Context(), x.mark)
				limited, cancel := context.WithCancel(ctx)
				time.AfterFunc(30*time.Millisecond, cancel)
				began := time.Now()
				var rd engine.Read
				if err := c.Begin(limited, x.c, &rd); !errors.Is(err, context.Canceled) || time.Since(began) != 30*time.Millisecond {
					t.Errorf("%v after %v, want context.Canceled after 30ms", err, time.Since(began))
				}
				if got := s.Token().Marks(); len(got) != 1 || got[0].Position != x.mark.Position || got[0].CatchUp != x.mark.CatchUp {
					t.Errorf("the session requires %+v now, want what it did before", got)
				}
			})
		})
	}
}
