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

// A session that was told of a write catches up with all that the primary has by
// then: a look that was sent before proves nothing.
func TestCatchUpWantsALaterLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r := primaryStub(1, 100), replicaStub(2, 100)
		c := core(t, engine.Config{Wait: 50 * time.Millisecond}, p, r)
		ctx, s := sessionAt(t.Context())
		time.Sleep(time.Second)
		p.at(120) // the table does not know
		tidegate.Wrote(ctx, "main")
		rd := begin(ctx, t, c, tidegate.Causal)
		if d := went(t, c, rd, "a", tidegate.ReasonBehind, false); d.Required != tidegate.At(120) {
			t.Errorf("required %v, want all that the primary has", d.Required)
		}
		c.End(rd)
		r.at(120)
		rd = begin(ctx, t, c, tidegate.Causal)
		went(t, c, rd, "b", tidegate.ReasonCovered, false)
		c.End(rd)
		if m := s.Token().Marks(); len(m) != 1 || m[0].CatchUp {
			t.Errorf("the session still has to catch up: %+v", m)
		}
	})
}

// Where commits are acknowledged before they are durable, the catch-up covers
// those too.
func TestCatchUpCoversWhatIsNotDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r, other := primaryStub(1, 100), replicaStub(2, 100), replicaStub(3, 100)
		p.answer.Ceiling = tidegate.At(130)
		c := core(t, engine.Config{}, p, r, other)
		ctx, _ := sessionAt(t.Context())
		tidegate.Wrote(ctx, "main")
		rd := begin(ctx, t, c, tidegate.Causal)
		if d := went(t, c, rd, "a", tidegate.ReasonBehind, true); d.Required != tidegate.At(130) {
			t.Errorf("required %v, want the ceiling", d.Required)
		}
		c.End(rd)
		p.at(130) // it is durable now, and has been sent
		other.at(130)
		if d := went(t, c, begin(ctx, t, c, tidegate.Causal), "c", tidegate.ReasonCovered, false); d.Required != tidegate.At(130) {
			t.Errorf("required %v, want the ceiling", d.Required)
		}
	})
}

// A catch-up is born under one life of the primary. No other one can tell what
// the first had committed: the session is told, and goes on from there.
func TestCatchUpKeepsItsBirth(t *testing.T) {
	for _, x := range []struct {
		name string
		mark []tidegate.Mark
		duty func(ctx context.Context, c *engine.Core, p *stub)
	}{
		{"a lost write", nil, func(ctx context.Context, c *engine.Core, p *stub) {
			w, _ := c.BeginWrite(ctx)
			c.Unknown(&w, p.born(), 0)
			c.EndWrite(&w)
		}},
		{"told of a write", nil, func(ctx context.Context, c *engine.Core, _ *stub) {
			c.Explain(ctx, tidegate.Causal) // the session has met the cluster
			tidegate.Wrote(ctx, "main")
		}},
		{"a lost position", nil, func(ctx context.Context, c *engine.Core, p *stub) {
			var rd engine.Read
			if c.Begin(ctx, strong, &rd) == nil && c.Admit(ctx, &rd, p.born()) {
				c.Lost(&rd)
				c.End(&rd)
			}
		}},
		{"from a token", []tidegate.Mark{{Epoch: epoch(1), CatchUp: true, Primary: 100}}, func(context.Context, *engine.Core, *stub) {}},
	} {
		for _, next := range []struct {
			name string
			life func(o *engine.Observation)
		}{
			{"another life", func(o *engine.Observation) { o.Incarnation++ }},
			{"another server and line", func(o *engine.Observation) { o.Server, o.Incarnation, o.Epoch = 5, 500, epoch(2) }},
		} {
			t.Run(x.name+", then "+next.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := primaryStub(1, 100)
					c := core(t, engine.Config{ProbeInterval: 100 * time.Millisecond}, p)
					ctx, _ := sessionAt(t.Context(), x.mark...)
					x.duty(ctx, c, p)
					p.set(func(p *stub) { next.life(&p.answer) })
					rd := begin(ctx, t, c, tidegate.Causal)
					went(t, c, rd, "a", tidegate.ReasonHistoryChanged, true)
					if !c.Admit(ctx, rd, p.born()) {
						t.Fatal("refused")
					}
					c.End(rd)
					time.Sleep(200 * time.Millisecond)
					went(t, c, begin(ctx, t, c, tidegate.Causal), "a", tidegate.ReasonNoReplica, false)
					if n := c.Stats().HistoryChanged; n != 1 {
						t.Errorf("%d changes were counted, want 1", n)
					}
				})
			})
		}
	}
}

// The report that history has changed is made until a read has been answered
// with it.
func TestChangedHistoryIsReportedUntilAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := primaryStub(1, 100)
		p.answer.Epoch = epoch(2)
		c := core(t, engine.Config{ProbeInterval: 10 * time.Millisecond}, p)
		ctx, s := sessionAt(t.Context(), needs(50))
		changed := func(class tidegate.Class) *engine.Read {
			t.Helper()
			rd := begin(ctx, t, c, class)
			went(t, c, rd, "a", tidegate.ReasonHistoryChanged, true)
			return rd
		}
		c.Cancel(changed(tidegate.Causal)) // never sent
		failed := changed(strong)
		c.Retry(failed, tidegate.RetryConnection, true) // the connection died under it
		c.End(failed)
		if got := s.Token().Marks(); len(got) != 1 || got[0].Epoch != epoch(1) {
			t.Fatalf("what was required is forgotten although nobody was told: %+v", got)
		}
		rd := changed(tidegate.Causal)
		if !c.Admit(ctx, rd, p.born()) {
			t.Fatal("refused")
		}
		c.At(rd, p.born(), tidegate.At(100), true)
		c.End(rd)
		for _, m := range s.Token().Marks() {
			if m.Epoch != epoch(2) {
				t.Errorf("after the report the session still requires %+v", m)
			}
		}
		time.Sleep(20 * time.Millisecond)
		went(t, c, begin(ctx, t, c, tidegate.Causal), "a", tidegate.ReasonNoReplica, false)
	})
}

// A duty whose birth nobody knew belongs to the history that the session knows,
// in whichever order a token lists both.
func TestCatchUpWithoutEpochJoinsTheOthers(t *testing.T) {
	duty := tidegate.Mark{CatchUp: true, Primary: 100}
	for _, marks := range [][]tidegate.Mark{{duty, needs(50)}, {needs(50), duty}} {
		synctest.Test(t, func(t *testing.T) {
			c := core(t, engine.Config{ProbeInterval: 10 * time.Millisecond}, primaryStub(1, 100), replicaStub(2, 100))
			ctx, s := sessionAt(t.Context(), marks...)
			went(t, c, begin(ctx, t, c, tidegate.Causal), "b", tidegate.ReasonCovered, false)
			if n := len(s.Token().Marks()); n != 1 {
				t.Errorf("%d marks, want 1", n)
			}
		})
	}
}

// A session that has read from more lives than it can keep has to catch up
// instead.
func TestTooManyLivesBecomeACatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r := primaryStub(1, 100), replicaStub(2, 90)
		c := core(t, engine.Config{ProbeInterval: 10 * time.Millisecond}, p, r)
		ctx, s := sessionAt(t.Context())
		for life := range tidegate.Incarnation(3 * tidegate.MaxSeen) {
			r.set(func(r *stub) { r.answer.Incarnation = 1000 + life })
			time.Sleep(50 * time.Millisecond)
			rd := begin(ctx, t, c, relaxedAny)
			went(t, c, rd, "b", tidegate.ReasonWithinBudget, false)
			if !c.Admit(ctx, rd, r.born()) {
				t.Fatal("refused")
			}
			c.End(rd)
		}
		m := s.Token().Marks()
		if len(m) != 1 || !m[0].CatchUp && !slices.Contains(m[0].Seen, 1000) {
			t.Fatalf("the first life is forgotten: %+v", m)
		}
		time.Sleep(50 * time.Millisecond)
		// Whether it waits first depends on what chance the probes had to see how late
		// the replica is.
		d := c.Decision(begin(ctx, t, c, tidegate.Causal))
		if late := d.Reason == tidegate.ReasonPredicted || d.Reason == tidegate.ReasonBehind; d.Node != "a" || !late || d.Unproven || d.Required != tidegate.At(100) {
			t.Errorf("%v; want the primary, and all that it has", d)
		}
	})
}
