package engine_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// A connection to a life of the node that nobody has looked at yet is held until
// somebody has; the read counts as one of that life.
func TestAdmitHoldsAYoungConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r := primaryStub(1, 100), replicaStub(2, 100)
		r.took = 3 * time.Millisecond
		c := core(t, engine.Config{}, p, r)
		ctx, s := sessionAt(t.Context(), needs(50))
		rd := begin(ctx, t, c, tidegate.Causal)
		r.set(func(r *stub) { r.answer.Incarnation = 201 })
		r.at(60) // it went back, not below what is needed
		began := time.Now()
		if !c.Admit(ctx, rd, r.born()) {
			t.Fatal("the connection was refused although a look has proven it")
		}
		if took := time.Since(began); took != 3*time.Millisecond {
			t.Errorf("the connection was held for %v, want for one look", took)
		}
		if d := went(t, c, rd, "b", tidegate.ReasonCovered, false); d.Observed != tidegate.At(60) {
			t.Errorf("the proof is %v, want that of the new life", d.Observed)
		}
		c.End(rd)
		if seen := s.Token().Marks()[0].Seen; !slices.Equal(seen, []tidegate.Incarnation{201}) {
			t.Errorf("the session has seen %v, want the new life only", seen)
		}
	})
}

// A node that has gone back below what is needed is left.
func TestAdmitRefusesWhatWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r, other := primaryStub(1, 100), replicaStub(2, 100), replicaStub(3, 40)
		c := core(t, engine.Config{}, p, r, other)
		ctx, s := sessionAt(t.Context(), needs(50))
		rd := begin(ctx, t, c, tidegate.Causal)
		went(t, c, rd, "b", tidegate.ReasonCovered, false)
		r.set(func(r *stub) { r.answer.Incarnation = 201 })
		r.at(40)
		if c.Admit(ctx, rd, r.born()) {
			t.Fatal("a connection to a life that lacks what is needed was admitted")
		}
		other.at(50)
		if err := c.Begin(ctx, tidegate.Causal, rd); err != nil {
			t.Fatal(err)
		}
		went(t, c, rd, "c", tidegate.ReasonCovered, false)
		c.Cancel(rd)
		if seen := s.Token().Marks()[0].Seen; len(seen) != 0 {
			t.Errorf("the session has seen %v although nothing was sent", seen)
		}
	})
}

// A node that gives no look in time is left out of the read.
func TestAdmitGivesUpOnAHungNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r, other := primaryStub(1, 100), replicaStub(2, 100), replicaStub(3, 10)
		c := core(t, engine.Config{Wait: 300 * time.Millisecond}, p, r, other)
		ctx, _ := sessionAt(t.Context(), needs(50))
		rd := begin(ctx, t, c, tidegate.Causal)
		went(t, c, rd, "b", tidegate.ReasonCovered, false)
		r.set(func(r *stub) { r.answer.Incarnation, r.hung = 201, true })
		other.at(100)
		began := time.Now()
		if c.Admit(ctx, rd, r.born()) {
			t.Fatal("a connection that nobody has proven was admitted")
		}
		if took := time.Since(began); took != 150*time.Millisecond {
			t.Errorf("the connection was held for %v, want for half of what the read may wait", took)
		}
		if err := c.Begin(ctx, tidegate.Causal, rd); err != nil {
			t.Fatal(err)
		}
		if d := went(t, c, rd, "c", tidegate.ReasonCovered, false); d.Retries != 1 {
			t.Errorf("%d retries, want 1", d.Retries)
		}
	})
}

// A connection that is older than the look needs no identity, and one of the
// same life needs no age.
func TestAdmitByAgeOrByLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r := primaryStub(1, 100), replicaStub(2, 100)
		c := core(t, engine.Config{ProbeInterval: 50 * time.Millisecond}, p, r)
		old := r.born()
		old.Incarnation = 9 // as if the server could not tell its lives apart
		other := *old
		other.Server = 7 // another server behind the same name
		time.Sleep(100 * time.Millisecond)
		young := r.born()
		for _, x := range []struct {
			what string
			born *engine.Observation
			at   time.Duration
		}{{"older than the look", old, 0}, {"of the same life", young, 0}} {
			ctx, _ := sessionAt(t.Context(), needs(50))
			rd := begin(ctx, t, c, tidegate.Causal)
			began := time.Now()
			if !c.Admit(ctx, rd, x.born) || time.Since(began) != x.at {
				t.Errorf("a connection %s was refused or held for %v", x.what, time.Since(began))
			}
			c.End(rd)
		}
		ctx, _ := sessionAt(t.Context(), needs(50))
		if rd := begin(ctx, t, c, tidegate.Causal); c.Admit(ctx, rd, &other) {
			t.Error("a connection to another server was admitted")
		}
	})
}

// A primary that was demoted and promoted again is another history: what the
// session needs has to be judged again.
func TestAdmitJudgesAPrimaryOfAnotherLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := primaryStub(1, 100)
		c := core(t, engine.Config{}, p)
		ctx, _ := sessionAt(t.Context(), needs(50))
		rd := begin(ctx, t, c, tidegate.Causal)
		went(t, c, rd, "a", tidegate.ReasonNoReplica, false)
		p.set(func(p *stub) { p.answer.Incarnation, p.answer.Epoch = 101, epoch(3) })
		if c.Admit(ctx, rd, p.born()) {
			t.Fatal("a connection to a history that the session knows nothing of was admitted")
		}
		if err := c.Begin(ctx, tidegate.Causal, rd); err != nil {
			t.Fatal(err)
		}
		went(t, c, rd, "a", tidegate.ReasonHistoryChanged, true)
	})
}

// A commit belongs to the history that its connection writes, also when the
// table learns of that history later.
func TestCommitBelongsToItsConnectionsLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := primaryStub(1, 100)
		c := core(t, engine.Config{}, p)
		ctx, _ := sessionAt(t.Context())
		w, err := c.BeginWrite(ctx)
		if err != nil {
			t.Fatal(err)
		}
		p.set(func(p *stub) { p.answer.Incarnation, p.answer.Epoch = 101, epoch(3) })
		c.Committed(&w, p.born(), tidegate.At(100), true)
		c.EndWrite(&w)
		c.Suspect(0)
		time.Sleep(time.Millisecond)
		went(t, c, begin(ctx, t, c, tidegate.Causal), "a", tidegate.ReasonNoReplica, false)
	})
}
