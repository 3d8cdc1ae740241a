package fake_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

// shows fails the test unless the node shows exactly these commits.
func shows(t *testing.T, n *fake.Node, serials ...int) {
	t.Helper()
	var want fake.View
	for _, s := range serials {
		want.Add(s)
	}
	if got := n.View(); got.Missing(want) != 0 || want.Missing(got) != 0 {
		t.Errorf("%s shows %b, want %b", n.Name(), got, want)
	}
}

func TestReplicaIsAheadOfItsPrimary(t *testing.T) {
	c := fake.New(fake.Config{Replicas: 1, Manual: true})
	p, r := c.Nodes()[0], c.Nodes()[1]
	w := p.Begin(1)
	r.Receive(9)
	if r.Show() {
		t.Error("the replica shows a commit before it is flushed")
	}
	w.Flush()
	r.Receive(9)
	if !r.Show() || r.Show() {
		t.Error("want one commit to show")
	}
	shows(t, p)
	shows(t, r, 1)
	if _, applied, visible := r.Counts(); applied != 0 || visible != 1 {
		t.Errorf("applied %d, visible %d, want it visible before it is published", applied, visible)
	}
	w.End()
	shows(t, p, 1)
	if v := c.Shown(time.Now().Add(time.Second)); !v.Has(1) {
		t.Error("nobody noted that the primary has shown it")
	}
}

func TestCommitsAreShownInAnyOrder(t *testing.T) {
	c := fake.New(fake.Config{Manual: true})
	p := c.Primary()
	first, second := p.Begin(1), p.Begin(1)
	first.Flush()
	second.Flush()
	second.End()
	shows(t, p, 2)
	if v := p.Version(1); v != 2 {
		t.Errorf("version %d, want 2", v)
	}
	p.Crash(0) // recovery shows all that was flushed
	shows(t, p, 1, 2)
	if ended, serial := first.Ended(); !ended || serial != 1 {
		t.Errorf("the process of a crashed server: ended %v, commit %d", ended, serial)
	}
}

func TestCrashGoesBack(t *testing.T) {
	c := fake.New(fake.Config{Replicas: 1, Manual: true})
	r := c.Nodes()[1]
	for range 5 {
		c.Commit(1)
		r.Receive(1)
		r.Show()
		r.Publish()
	}
	r.Checkpoint()
	c.Commit(1)
	r.Receive(1)
	r.Show()
	r.Publish()
	life := r.Incarnation()
	r.Crash(3)
	shows(t, r, 1, 2, 3, 4, 5)
	if r.Incarnation() == life {
		t.Error("a crash did not begin a new life")
	}
	r.Show()
	shows(t, r, 1, 2, 3, 4, 5, 6)
}

func TestAsynchronousCommitsAreLost(t *testing.T) {
	c := fake.New(fake.Config{Replicas: 1, Manual: true, Async: true})
	p, r := c.Nodes()[0], c.Nodes()[1]
	c.Commit(1)
	p.Flush()
	c.Commit(1)
	shows(t, p, 1, 2)
	r.Receive(9)
	r.Show()
	shows(t, r, 1)
	p.Crash(0)
	shows(t, p, 1)
}

func TestPromotionForksHistory(t *testing.T) {
	c := fake.New(fake.Config{Replicas: 2, Manual: true})
	p, a, b := c.Nodes()[0], c.Nodes()[1], c.Nodes()[2]
	c.Commit(1)
	a.Receive(1)
	c.Commit(1)
	b.Receive(2)
	life := a.Incarnation()
	a.Promote()
	if a.Line() != 2 || a.Incarnation() != life || c.Primary() != a {
		t.Errorf("line %d, life kept %v", a.Line(), a.Incarnation() == life)
	}
	c.Commit(1)
	shows(t, a, 1, 3)
	shows(t, p, 1, 2) // it lives on
	if b.Follow(a) {
		t.Error("a replica follows although it has what the new primary lacks")
	}
	b.Rebuild(a)
	shows(t, b, 1, 3)
	p.Stop()
	p.Rebuild(a)
	if p.Role() != tidegate.RoleReplica || p.Line() != 2 || !p.Up() {
		t.Errorf("%v of line %d", p.Role(), p.Line())
	}
}

func TestClusterMovesByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fake.New(fake.Config{Replicas: 2, Delay: 10 * time.Millisecond})
		a, b := c.Nodes()[1], c.Nodes()[2]
		b.SetDelay(30 * time.Millisecond)
		c.Commit(1)
		shows(t, a)
		time.Sleep(10 * time.Millisecond)
		shows(t, a, 1)
		shows(t, b)
		a.Pause()
		b.Cut()
		c.Commit(1)
		time.Sleep(time.Second)
		shows(t, a, 1)
		shows(t, b, 1)
		if received, _, _ := a.Counts(); received != 2 {
			t.Errorf("a paused replica received %d commits, want 2", received)
		}
		if received, _, _ := b.Counts(); received != 1 {
			t.Errorf("a replica that is cut off received %d commits, want 1", received)
		}
		a.Resume()
		b.Mend()
		shows(t, a, 1, 2)
		time.Sleep(time.Millisecond)
		shows(t, b, 1, 2)
	})
}

func TestConnectionsDieWithTheirServersLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fake.New(fake.Config{Replicas: 1})
		g, err := c.Open(t.Context(), fake.Options{Core: engine.Config{ProbeInterval: time.Hour}})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		ctx := tidegate.WithSession(t.Context(), tidegate.NewSession())
		read := func() tidegate.Decision {
			t.Helper()
			res, err := g.Look(ctx, tidegate.Causal)
			if err != nil {
				t.Fatal(err)
			}
			return res.Decision
		}
		if d := read(); d.Node != "r1" {
			t.Errorf("%v, want the replica", d)
		}
		c.Nodes()[1].Crash(0)
		if d := read(); d.Node != "p" || d.Retries != 1 {
			t.Errorf("%v, want the primary after one failure", d)
		}
		c.Nodes()[0].Stop()
		if _, err := g.Write(ctx, 1); !errors.Is(err, fake.ErrRefused) && !errors.Is(err, fake.ErrDead) {
			t.Errorf("a write to a stopped server: %v", err)
		}
	})
}
