package enginetest

import (
	"time"

	"github.com/tidegatedb/tidegate"
)

var (
	decision = tidegate.Strong("suite-decision", "the answer decides something")
	rollups  = tidegate.Relaxed("suite-rollups", "numbers for humans", tidegate.Within(time.Minute))
	fresh    = tidegate.Relaxed("suite-fresh", "numbers that are nearly live", tidegate.Within(200*time.Millisecond), tidegate.Wait(20*time.Millisecond))
	archive  = tidegate.Relaxed("suite-archive", "numbers of any age", tidegate.AnyStaleness())
)

// noSession: without a session nothing can be proven, so the primary answers, and
// somebody counts it.
func noSession(b *bench) {
	b.start(1)
	p := ability[Pauser](b, "Pauser")
	g := b.open(Options{})
	p.PauseReplica(b.T, 0)
	before := g.Core().Stats().Sessionless
	key := b.newKey()
	v := b.cluster.Commit(b.T, key)
	got, d := b.read(b.Context(), g, tidegate.Causal, key)
	if got < v || d.Role != tidegate.RolePrimary || d.Reason != tidegate.ReasonNoSession {
		b.Errorf("read %d, want %d: %v", got, v, d)
	}
	if n := g.Core().Stats().Sessionless - before; n != 1 {
		b.Errorf("%d reads were counted as without a session, want 1", n)
	}
	if !b.lacks(0, key, v) {
		b.Error("the replica had it too: this run proves nothing")
	}
}

// strongRead: the primary answers, whatever the replicas have.
func strongRead(b *bench) {
	b.start(1)
	p := ability[Pauser](b, "Pauser")
	g := b.open(Options{})
	ctx, _ := session(b.Context())
	key := b.newKey()
	v := b.write(ctx, g, key)
	b.caughtUp(0, key, v)
	b.read(ctx, g, tidegate.Causal, key) // leaves the replica behind in the session
	p.PauseReplica(b.T, 0)
	v = b.cluster.Commit(b.T, key)
	got, d := b.read(ctx, g, decision, key)
	if got < v || d.Role != tidegate.RolePrimary || d.Reason != tidegate.ReasonStrong || d.Unproven {
		b.Errorf("read %d, want %d: %v", got, v, d)
	}
	// What a strong read has shown, a causal one shows too.
	for range 10 {
		ctx, _ := session(b.Context())
		v := b.cluster.Commit(b.T, key)
		b.read(ctx, g, decision, key)
		if got, d := b.read(ctx, g, tidegate.Causal, key); got < v {
			b.Errorf("read %d after a strong read of %d: %v", got, v, d)
		}
	}
	if !b.lacks(0, key, v) {
		b.Error("the replica had it too: this run proves nothing")
	}
}

// relaxedWithinBudget: a replica answers, also one that lacks the session's own
// write; a causal read of the same session still sees it.
func relaxedWithinBudget(b *bench) {
	b.start(1)
	p := ability[Pauser](b, "Pauser")
	g := b.open(Options{})
	p.PauseReplica(b.T, 0)
	ctx, _ := session(b.Context())
	key := b.newKey()
	v := b.write(ctx, g, key)
	_, d := b.read(ctx, g, rollups, key)
	if d.Role != tidegate.RoleReplica || d.Reason != tidegate.ReasonWithinBudget || !d.StalenessKnown || d.Staleness > time.Minute {
		b.Errorf("relaxed read: %v", d)
	}
	if got, d := b.read(ctx, g, tidegate.Causal, key); got < v {
		b.Errorf("read %d after writing %d: %v", got, v, d)
	}
	if !b.lacks(0, key, v) {
		b.Error("the replica had it too: this run proves nothing")
	}
}

// relaxedBeyondBudget: a replica that may be older than the budget is not used.
func relaxedBeyondBudget(b *bench) {
	b.start(1)
	p := ability[Pauser](b, "Pauser")
	g := b.open(Options{})
	p.PauseReplica(b.T, 0)
	ctx, _ := session(b.Context())
	key := b.newKey()
	v := b.cluster.Commit(b.T, key)
	time.Sleep(500 * time.Millisecond)
	got, d := b.read(ctx, g, fresh, key)
	if got < v || d.Role != tidegate.RolePrimary || d.Reason != tidegate.ReasonBehind {
		b.Errorf("read %d, want %d: %v", got, v, d)
	}
	if _, d := b.read(ctx, g, archive, key); d.Role != tidegate.RoleReplica {
		b.Errorf("a read of any age: %v", d)
	}
	if !b.lacks(0, key, v) {
		b.Error("the replica had it too: this run proves nothing")
	}
	p.ResumeReplica(b.T, 0)
	b.caughtUp(0, key, v)
	b.eventually("the replica is within the budget again", func() bool {
		_, d := b.read(ctx, g, fresh, key)
		return d.Role == tidegate.RoleReplica
	})
}

// reasons: each read says why it went where it went.
func reasons(b *bench) {
	b.start(1)
	p := ability[Pauser](b, "Pauser")
	g := b.open(Options{})
	ctx, _ := session(b.Context())
	key := b.newKey()
	want := func(role tidegate.Role, reason tidegate.Reason) tidegate.Decision {
		b.Helper()
		_, d := b.read(ctx, g, tidegate.Causal, key)
		if d.Role != role || d.Reason != reason {
			b.Errorf("%v, want %v and %v", d, role, reason)
		}
		return d
	}
	want(tidegate.RoleReplica, tidegate.ReasonCovered)
	want(tidegate.RoleReplica, tidegate.ReasonStayed)
	p.PauseReplica(b.T, 0)
	v := b.write(ctx, g, key)
	d := want(tidegate.RolePrimary, tidegate.ReasonBehind)
	if d.Waited <= 0 || d.Required.IsZero() || !d.Observed.Covers(d.Required) {
		b.Errorf("waited %v, required %v, had %v: want a wait, and a position that the primary covers", d.Waited, d.Required, d.Observed)
	}
	st := g.Core().Stats()
	if st.Waits == 0 || st.Fallbacks == 0 || st.Probes == 0 || st.DemandProbes == 0 {
		b.Errorf("the wait and the fallback were not counted: %+v", st)
	}
	p.ResumeReplica(b.T, 0)
	b.caughtUp(0, key, v)
	b.eventually("the replica answers again", func() bool {
		_, d := b.read(ctx, g, tidegate.Causal, key)
		return d.Role == tidegate.RoleReplica
	})
}

// explain: each node says why it may answer or not.
func explain(b *bench) {
	b.start(2)
	p := ability[Pauser](b, "Pauser")
	g := b.open(Options{})
	p.PauseReplica(b.T, 0)
	ctx, _ := session(b.Context())
	key := b.newKey()
	v := b.write(ctx, g, key)
	b.caughtUp(1, key, v)
	b.eventually("the explanation tells the replicas apart", func() bool {
		e := g.Core().Explain(ctx, tidegate.Causal)
		eligible := map[string]bool{}
		for _, n := range e.Nodes {
			if n.Why == "" || n.Node == "" || n.Role == tidegate.RoleUnknown {
				b.Fatalf("a verdict that says nothing: %+v", n)
			}
			eligible[n.Node] = n.Eligible
		}
		return len(e.Nodes) == 3 && !e.Required.IsZero() && e.String() != "" && !eligible[b.cluster.Name(0)] && eligible[b.cluster.Name(1)]
	})
}
