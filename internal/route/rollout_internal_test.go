package route

import (
	"math"
	"testing"
	"testing/synctest"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/chance"
	"github.com/tidegatedb/tidegate/internal/ledger"
)

var (
	decides = tidegate.Strong("decides", "a decision")
	board   = tidegate.Relaxed("board", "rollups of any age", tidegate.AnyStaleness())
)

// fresh returns the ledger of a new session with that nonce.
func fresh(nonce uint64) *ledger.Ledger { return ledger.New("main", nonce, nil) }

// What the rollout keeps on the primary, and what it says of it.
func TestRolloutHolds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		to     tidegate.Rollout
		class  tidegate.Class
		ledger *ledger.Ledger
		node   int
		reason tidegate.Reason
	}{
		"on, causal":                  {to: tidegate.RolloutOn, ledger: fresh(7), node: 1, reason: tidegate.ReasonCovered},
		"off, causal":                 {to: tidegate.RolloutOff, ledger: fresh(7), reason: tidegate.ReasonRollout},
		"shadow, causal":              {to: tidegate.RolloutShadow, ledger: fresh(7), reason: tidegate.ReasonShadow},
		"off, relaxed":                {to: tidegate.RolloutOff, class: board, ledger: fresh(7), reason: tidegate.ReasonRollout},
		"off, relaxed, no session":    {to: tidegate.RolloutOff, class: board, reason: tidegate.ReasonRollout},
		"shadow, relaxed":             {to: tidegate.RolloutShadow, class: board, ledger: fresh(7), reason: tidegate.ReasonShadow},
		"shadow, relaxed, no session": {to: tidegate.RolloutShadow, class: board, reason: tidegate.ReasonShadow},
		"off, strong":                 {to: tidegate.RolloutOff, class: decides, ledger: fresh(7), reason: tidegate.ReasonStrong},
		"shadow, strong":              {to: tidegate.RolloutShadow, class: decides, ledger: fresh(7), reason: tidegate.ReasonStrong},
		"off, no session":             {to: tidegate.RolloutOff, reason: tidegate.ReasonNoSession},
		"shadow, no session":          {to: tidegate.RolloutShadow, reason: tidegate.ReasonNoSession},
	} {
		t.Run(name, func(t *testing.T) {
			r := router(hold(healthy(2)), 2)
			r.SetRollout(c.to)
			if r.Rollout() != c.to {
				t.Fatalf("the rollout is %v", r.Rollout())
			}
			tk := &Ticket{Class: c.class, Ledger: c.ledger}
			if err := r.Begin(t.Context(), tk); err != nil {
				t.Fatal(err)
			}
			d := r.Decision(tk)
			shadow := ""
			if c.reason == tidegate.ReasonShadow {
				shadow = "n1"
			}
			if tk.Node != c.node || d.Reason != c.reason || d.Unproven || d.ShadowNode != shadow {
				t.Errorf("%v, shadow %q, want %v on node %d", d, d.ShadowNode, c.reason, c.node)
			}
			if n := r.stats.Fallbacks.Load(); n != 0 {
				t.Error("what the rollout holds counts as a fallback")
			}
		})
	}
}

// A share decides by the session, not by the read.
func TestRolloutShareHoldsSessions(t *testing.T) {
	t.Parallel()
	const sessions = 2000
	r := router(hold(healthy(3)), 3)
	share := tidegate.RolloutShare(.2)
	r.SetRollout(share)
	held := 0
	for nonce := range uint64(sessions) {
		nonce++
		l := fresh(nonce)
		for range 3 {
			tk := &Ticket{Ledger: l}
			if err := r.Begin(t.Context(), tk); err != nil {
				t.Fatal(err)
			}
			if in := tk.Role == tidegate.RoleReplica; in != share.Routes(nonce) || !in && tk.reason != tidegate.ReasonRollout {
				t.Fatalf("nonce %d: routed %v (%v), want %v", nonce, in, tk.reason, share.Routes(nonce))
			}
			if tk.Role == tidegate.RolePrimary {
				held++
			}
			r.Done(tk, 1)
		}
	}
	if want := 3 * .8 * sessions; math.Abs(float64(held)-want) > .05*want {
		t.Errorf("%d of %d reads were held, want about %v", held, 3*sessions, want)
	}
}

// Reads that nobody's nonce decides about are drawn, and one read's attempts are
// drawn once.
func TestRolloutDrawsWithoutANonce(t *testing.T) {
	chance.Seed(t, 1)
	r := router(hold(healthy(3)), 3)
	r.SetRollout(tidegate.RolloutShare(.3))
	for name, l := range map[string]*ledger.Ledger{"no session": nil, "the zero session": fresh(0)} {
		routed := 0
		for range 1000 {
			tk := &Ticket{Class: board, Ledger: l}
			var first tidegate.Role
			for attempt := range 3 {
				if err := r.Begin(t.Context(), tk); err != nil {
					t.Fatal(err)
				}
				if attempt == 0 {
					first = tk.Role
				}
				if tk.Role != first {
					t.Fatalf("%s: attempt %d went to a %v after a %v", name, attempt, tk.Role, first)
				}
				r.Undo(tk)
			}
			if first == tidegate.RoleReplica {
				routed++
			}
		}
		if routed < 230 || routed > 370 {
			t.Errorf("%s: %d of 1000 were routed, want about 300", name, routed)
		}
	}
}

// The sessions of a small share still spread over all replicas: what decides who
// is in it does not decide where to.
func TestRolloutIsIndependentOfTheRendezvous(t *testing.T) {
	t.Parallel()
	const replicas, sessions = 4, 100_000
	r := router(hold(healthy(1+replicas)), 1+replicas)
	for _, share := range []float64{.02, .1, .5} {
		r.SetRollout(tidegate.RolloutShare(share))
		counts, all := make([]int, 1+replicas), 0
		for i := range uint64(sessions) {
			// As random as sessions make them, and the same in every run.
			tk := &Ticket{Ledger: fresh(mix(i+1) | 1)}
			if err := r.Begin(t.Context(), tk); err != nil {
				t.Fatal(err)
			}
			if tk.Role == tidegate.RoleReplica {
				counts[tk.Node]++
				all++
			}
			r.Done(tk, 1)
		}
		if want := share * sessions; math.Abs(float64(all)-want) > 5*math.Sqrt(want*(1-share)) {
			t.Errorf("the share %v has %d of %d sessions", share, all, sessions)
		}
		evenly(t, "the sessions of a share", counts, 0, 1, 1, 1, 1)
	}
}

// A look takes nothing, waits for nothing and asks for nothing; it says what would
// be without a wait.
func TestShadowLooksOnly(t *testing.T) {
	t.Parallel()
	inBubbleShadow := func(name string, require uint64, change func(c *cluster), class tidegate.Class, node string, reason tidegate.Reason) {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 3, func(c *cluster) {
				c.router.SetRollout(tidegate.RolloutShadow)
				change(c)
				c.made()
				l := session(require)
				tk := &Ticket{Class: class, Ledger: l}
				c.begin(t.Context(), tk, outcome{node: 0, reason: tidegate.ReasonShadow})
				if d := c.router.Decision(tk); d.ShadowNode != node || d.ShadowReason != reason {
					c.t.Errorf("would have been %q (%v), want %q (%v)", d.ShadowNode, d.ShadowReason, node, reason)
				}
				if n := c.router.Flying(1) + c.router.Flying(2); n != 0 || len(c.made()) != 0 {
					c.t.Error("it asked for a look, or counts as a read in flight on a replica")
				}
				if marks := l.Marks(); len(marks) > 0 && len(marks[0].Seen) != 0 {
					c.t.Errorf("the session has seen %v and was nowhere", marks[0].Seen)
				}
				c.router.Done(tk, 1)
				c.idle()
				s := &c.router.stats
				replica := uint64(0)
				if node != "" {
					replica = 1
				}
				if s.Shadowed.Load() != 1 || s.ShadowReplica.Load() != replica || s.Waits.Load() != 0 || s.Fallbacks.Load() != 0 {
					c.t.Errorf("counted %d, %d by a replica, %d waits, %d fallbacks", s.Shadowed.Load(), s.ShadowReplica.Load(), s.Waits.Load(), s.Fallbacks.Load())
				}
			})
		})
	}
	nothing := func(*cluster) {}
	alone := func(c *cluster) { c.lose(1, 2) }
	one := func(c *cluster) { c.apply(500, 2) }
	inBubbleShadow("covered", 200, one, tidegate.Causal, "n2", tidegate.ReasonCovered)
	inBubbleShadow("behind", 200, nothing, tidegate.Causal, "", tidegate.ReasonBehind)
	inBubbleShadow("no replica", 50, alone, tidegate.Causal, "", tidegate.ReasonNoReplica)
	inBubbleShadow("relaxed, no replica", 50, alone, board, "", tidegate.ReasonNoReplica)
	inBubbleShadow("relaxed", 500, func(c *cluster) { c.lose(1) }, board, "n2", tidegate.ReasonWithinBudget)
}

// What the session would stay with is said too, and staying stays possible.
func TestShadowLeavesTheSessionWhereItIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := router(hold(healthy(3)), 3)
		l := fresh(7)
		tk := &Ticket{Ledger: l}
		if err := r.Begin(t.Context(), tk); err != nil {
			t.Fatal(err)
		}
		stays := r.Decision(tk).Node
		defer r.Done(tk, 1)
		r.SetRollout(tidegate.RolloutShadow)
		looked := &Ticket{Ledger: l}
		r.hold(looked, tidegate.RolloutShadow)
		if d := r.Decision(looked); d.ShadowNode != stays || d.ShadowReason != tidegate.ReasonStayed {
			t.Errorf("would have been %q (%v), want %q, where it stays", d.ShadowNode, d.ShadowReason, stays)
		}
		if seen := l.Marks()[0].Seen; len(seen) != 1 {
			t.Errorf("seen is %v", seen)
		}
	})
}

// A history that cannot be judged is what the shadow says as well.
func TestShadowOfAnotherHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := router(hold(healthy(2)), 2)
		l := ledger.New("main", 7, []tidegate.Mark{{Cluster: "main", Epoch: later, Position: tidegate.At(5)}})
		now := *r.facts.Table()
		for i := range now.Nodes {
			o := *now.Nodes[i].Obs
			o.Sent = math.MaxInt64 // a look that is younger than the mark
			now.Nodes[i].Obs, now.Nodes[i].Sent = &o, o.Sent
		}
		r.facts.(*still).table.Store(&now)
		looked := &Ticket{Ledger: l}
		r.hold(looked, tidegate.RolloutShadow)
		if looked.shadow != nil || looked.shadowReason != tidegate.ReasonHistoryChanged {
			t.Errorf("would have been %v (%v)", looked.shadow, looked.shadowReason)
		}
	})
}
