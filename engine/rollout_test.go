package engine_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// through makes a read of the class over stubs and returns its decision. On the
// primary it ends at the primary's position.
func through(ctx context.Context, t *testing.T, c *engine.Core, class tidegate.Class) tidegate.Decision {
	t.Helper()
	rd := begin(ctx, t, c, class)
	s := rd.Source().(*stub)
	if !c.Admit(ctx, rd, s.born()) {
		t.Fatal("the connection was not admitted")
	}
	if rd.Captures() {
		c.At(rd, s.born(), s.born().Applied, true)
	}
	c.End(rd)
	return c.Decision(rd)
}

// taken is where a read went and why, for comparisons.
type taken struct {
	node   string
	reason tidegate.Reason
}

func where(d tidegate.Decision) taken { return taken{d.Node, d.Reason} }

func TestRolloutRoutes(t *testing.T) {
	for _, x := range []struct {
		to                      tidegate.Rollout
		strong, causal, relaxed taken
		shadow                  string
	}{
		{tidegate.RolloutOn, taken{"a", tidegate.ReasonStrong}, taken{"b", tidegate.ReasonCovered}, taken{"b", tidegate.ReasonWithinBudget}, ""},
		{tidegate.RolloutOff, taken{"a", tidegate.ReasonStrong}, taken{"a", tidegate.ReasonRollout}, taken{"a", tidegate.ReasonRollout}, ""},
		{tidegate.RolloutShadow, taken{"a", tidegate.ReasonStrong}, taken{"a", tidegate.ReasonShadow}, taken{"a", tidegate.ReasonShadow}, "b"},
	} {
		t.Run(x.to.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, r := primaryStub(1, 100), replicaStub(2, 100)
				c := core(t, engine.Config{Rollout: x.to}, p, r)
				for _, y := range []struct {
					class tidegate.Class
					want  taken
				}{{strong, x.strong}, {tidegate.Causal, x.causal}, {relaxedAny, x.relaxed}} {
					ctx, s := sessionAt(t.Context())
					d := through(ctx, t, c, y.class)
					if where(d) != y.want || d.Unproven {
						t.Errorf("%v, want %v", d, y.want)
					}
					if shadow := x.shadow; y.class != strong && d.ShadowNode != shadow {
						t.Errorf("%v: the shadow is %q, want %q", d, d.ShadowNode, shadow)
					}
					// The token advances whatever is routed.
					m := s.Token().Marks()
					replica := d.Role == tidegate.RoleReplica
					if len(m) != 1 || replica != (len(m[0].Seen) == 1) || !replica && m[0].Position != tidegate.At(100) {
						t.Errorf("%v left the marks %+v", d, m)
					}
				}
			})
		})
	}
}

// A write's position is in the token under every rollout, so that a session that is
// routed later sees it.
func TestRolloutOffKeepsTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r := primaryStub(1, 100), replicaStub(2, 100)
		c := core(t, engine.Config{Rollout: tidegate.RolloutOff, Wait: 5 * time.Millisecond}, p, r)
		ctx, s := sessionAt(t.Context())
		w, err := c.BeginWrite(ctx)
		if err != nil {
			t.Fatal(err)
		}
		c.Committed(&w, p.born(), tidegate.At(150), true)
		c.EndWrite(&w)
		if m := s.Token().Marks(); len(m) != 1 || m[0].Position != tidegate.At(150) {
			t.Fatalf("marks %+v", m)
		}
		p.at(150)
		c.SetRollout(tidegate.RolloutOn)
		if d := through(ctx, t, c, tidegate.Causal); where(d) != (taken{"a", tidegate.ReasonBehind}) {
			t.Errorf("%v, want the primary: the replica lacks the write", d)
		}
		r.at(150)
		c.Suspect(1)
		time.Sleep(time.Millisecond)
		if d := through(ctx, t, c, tidegate.Causal); where(d) != (taken{"b", tidegate.ReasonCovered}) {
			t.Errorf("%v, want the replica that has the write", d)
		}
	})
}

// A session that has read from a replica and is then held on the primary is
// answered only when the primary is proven to show what that replica showed.
func TestRolloutHeldReadsStayMonotonic(t *testing.T) {
	for _, to := range []tidegate.Rollout{tidegate.RolloutOff, tidegate.RolloutShadow} {
		t.Run(to.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, r := primaryStub(1, 100), replicaStub(2, 120) // ahead of what the primary shows
				p.hides = true
				c := core(t, engine.Config{ProofWait: 300 * time.Millisecond}, p, r)
				p.at(120)
				ctx, _ := sessionAt(t.Context())
				if d := through(ctx, t, c, tidegate.Causal); d.Node != "b" {
					t.Fatalf("%v, want the replica", d)
				}
				c.SetRollout(to)
				time.AfterFunc(40*time.Millisecond, func() { p.set(func(p *stub) { p.hides = false }) })
				began := time.Now()
				d := through(ctx, t, c, tidegate.Causal)
				if took := time.Since(began); d.Node != "a" || d.Unproven || took < 40*time.Millisecond || took > 60*time.Millisecond {
					t.Errorf("%v after %v, want the primary as soon as it shows what the replica showed", d, took)
				}
				ctx, _ = sessionAt(t.Context(), needs(120, 200))
				p.set(func(p *stub) { p.hides = true })
				p.at(140)
				r.at(140)
				if d := through(ctx, t, c, tidegate.Causal); d.Node != "a" || !d.Unproven {
					t.Errorf("%v, want one that says that nothing proves it", d)
				}
			})
		})
	}
}

// A shadow look says where the read would have gone without a wait; it waits for
// nothing and leaves nothing behind.
func TestShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r, other := primaryStub(1, 200), replicaStub(2, 100), replicaStub(3, 200)
		c := core(t, engine.Config{Rollout: tidegate.RolloutShadow, Wait: time.Minute}, p, r, other)
		look := func(require uint64, class tidegate.Class, node string, reason tidegate.Reason) {
			t.Helper()
			ctx, s := sessionAt(t.Context(), needs(require))
			began := time.Now()
			d := through(ctx, t, c, class)
			if d.Node != "a" || d.Reason != tidegate.ReasonShadow || d.ShadowNode != node || d.ShadowReason != reason {
				t.Errorf("%v, want in the shadow %q (%v)", d, node, reason)
			}
			if time.Since(began) != 0 || d.Waited != 0 {
				t.Errorf("%v took %v", d, time.Since(began))
			}
			if seen := s.Token().Marks()[0].Seen; len(seen) != 0 {
				t.Errorf("the session has seen %v", seen)
			}
			for _, n := range c.Status().Nodes {
				if n.Flying != 0 {
					t.Errorf("%d reads are in flight on %s", n.Flying, n.Node)
				}
			}
		}
		look(150, tidegate.Causal, "c", tidegate.ReasonCovered)
		look(150, relaxed, "c", tidegate.ReasonWithinBudget)
		look(201, tidegate.Causal, "", tidegate.ReasonBehind)
		if s := c.Stats(); s.Shadowed != 3 || s.ShadowReplica != 2 || s.Waits != 0 || s.Fallbacks != 0 {
			t.Errorf("counted %+v", s)
		}
		for i, s := range []*stub{r, other} {
			s.set(func(s *stub) { s.err = context.DeadlineExceeded })
			c.Suspect(1 + i)
		}
		time.Sleep(time.Millisecond)
		look(50, tidegate.Causal, "", tidegate.ReasonNoReplica)
	})
}

// A share is one of sessions: each is routed or not, also on the instance that its
// token reaches next.
func TestRolloutShareIsOfSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r := primaryStub(1, 100), replicaStub(2, 100)
		c := core(t, engine.Config{Rollout: tidegate.RolloutShare(.5)}, p, r)
		routed := 0
		for range 400 {
			ctx, s := sessionAt(t.Context())
			first := through(ctx, t, c, tidegate.Causal)
			// Another instance gets the token.
			again := through(tidegate.WithToken(t.Context(), s.Token()), t, c, tidegate.Causal)
			if first.Role != again.Role {
				t.Fatalf("%v, then %v", first, again)
			}
			if first.Role == tidegate.RoleReplica {
				routed++
			}
		}
		if routed < 150 || routed > 250 {
			t.Errorf("%d of 400 sessions were routed", routed)
		}
		if s := c.Stats(); s.Fallbacks != 0 || s.Shadowed != 0 {
			t.Errorf("counted %+v", s)
		}
	})
}

func TestSetRolloutTellsOfChangesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []tidegate.Rollout
		hook := tidegate.Hook{Changed: func(ch tidegate.Change) {
			if ch.Kind == tidegate.RolloutChanged {
				told = append(told, ch.Rollout)
			}
		}}
		c := core(t, engine.Config{Rollout: tidegate.RolloutShadow, Hooks: []tidegate.Hook{hook}}, primaryStub(1, 100))
		half := tidegate.RolloutShare(.5)
		for _, to := range []tidegate.Rollout{tidegate.RolloutShadow, half, half, {}, tidegate.RolloutShare(1), tidegate.RolloutOff} {
			c.SetRollout(to)
			if c.Rollout() != to || c.Status().Rollout != to {
				t.Errorf("set to %v, is %v", to, c.Rollout())
			}
		}
		if want := []tidegate.Rollout{half, {}, tidegate.RolloutOff}; !slices.Equal(told, want) {
			t.Errorf("told of %v, want %v", told, want)
		}
	})
}
