package route

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

var (
	report = tidegate.NewCausal("report", "test", tidegate.Require("reporting"))
	rather = tidegate.NewCausal("rather", "test", tidegate.Prefer("reporting"))
)

// tagged gives a node tags.
func (c *cluster) tagged(i int, dedicated bool, tags ...string) {
	c.router.Set(i, Node{Name: fmt.Sprintf("n%d", i), Weight: 1, Tags: tags, Dedicated: dedicated})
}

// readsOn makes reads of one session, that end, and returns the nodes that they went to.
func (c *cluster) readsOn(n int, class tidegate.Class, l *ledger.Ledger) (nodes uint64) {
	c.t.Helper()
	for range n {
		tk := &Ticket{Class: class, Ledger: l}
		if err := c.router.Begin(c.t.Context(), tk); err != nil {
			c.t.Fatalf("%v: %v", class, err)
		}
		nodes |= 1 << uint(tk.Node)
		c.tick()
		c.router.Done(tk, mono.Now())
		c.tick()
	}
	return nodes
}

func TestFits(t *testing.T) {
	t.Parallel()
	causal := func(o ...tidegate.CausalOption) tidegate.Class { return tidegate.NewCausal("c", "test", o...) }
	require, prefer := tidegate.Require, tidegate.Prefer
	r := router(hold(healthy(6)), 6)
	for i, n := range []Node{
		{}, {}, {Tags: []string{"reporting"}}, {Tags: []string{"reporting", "big"}, Dedicated: true}, {Tags: []string{"batch"}, Dedicated: true}, {Tags: []string{"big"}},
	} {
		n.Name, n.Weight = fmt.Sprintf("n%d", i), 1
		r.Set(i, n)
	}
	all := uint64(1<<6 - 1)
	for name, c := range map[string]struct {
		class       tidegate.Class
		uses, first uint64
	}{
		"no tag":               {tidegate.Causal, 0b100111, 0},
		"another option":       {causal(tidegate.MinServing(2)), 0b100111, 0},
		"one tag":              {causal(require("reporting")), 0b001100, 0},
		"all tags":             {causal(require("reporting", "big")), 0b001000, 0},
		"a tag of no node":     {causal(require("none")), 0, 0},
		"one tag of no node":   {causal(require("big", "none")), 0, 0},
		"preferred":            {causal(prefer("reporting")), 0b101111, 0b001100},
		"all preferred":        {causal(prefer("reporting", "big")), 0b101111, 0b001000},
		"preferred, no node":   {causal(prefer("none")), 0b100111, 0},
		"preferred, no node 2": {causal(prefer("none", "batch")), 0b110111, 0},
		"both":                 {causal(require("reporting"), prefer("big")), 0b001100, 0b001000},
		"relaxed":              {tidegate.Relaxed("c", "test", tidegate.AnyStaleness(), require("batch")), 0b010000, 0},
	} {
		for range 2 { // found out, and known
			barred, second := r.usage(c.class)
			if uses := all &^ barred; uses != c.uses {
				t.Errorf("%s: uses %06b, want %06b", name, uses, c.uses)
			}
			first := all &^ second &^ barred
			if second == 0 {
				first = 0
			}
			if first != c.first {
				t.Errorf("%s: first %06b, want %06b", name, first, c.first)
			}
		}
	}
}

// Nobody who declares a class for each request makes the router grow.
func TestFitsAreBounded(t *testing.T) {
	t.Parallel()
	r := router(hold(healthy(3)), 3)
	for range 10 * maxFits {
		r.fitOf(tidegate.NewCausal("c", "test", tidegate.Require("a")))
		if n := len(*r.fits.known.Load()); n > maxFits {
			t.Fatalf("%d are remembered", n)
		}
	}
}

// Reporting and users apart, both ways: in the ladder, where sessions stay, and on the
// last rungs.
func TestDedicated(t *testing.T) {
	t.Parallel()
	within := tidegate.Relaxed("within", "test", tidegate.Within(time.Minute))
	within2 := tidegate.Relaxed("within", "test", tidegate.Within(time.Minute), tidegate.Require("reporting"))
	inBubble(t, 4, func(c *cluster) {
		c.answering, c.proven = true, tidegate.At(1000)
		c.tagged(3, true, "reporting")
		for _, cl := range []struct {
			class tidegate.Class
			uses  uint64
		}{{tidegate.Causal, 0b0110}, {within, 0b0110}, {anyAge, 0b0110}, {report, 0b1000}, {within2, 0b1000}} {
			got := uint64(0)
			for range 30 { // sessions, of which each stays
				got |= c.readsOn(3, cl.class, session(50)) | c.readsOn(1, cl.class, ledger.New("main", 7, nil))
			}
			if got != cl.uses {
				t.Errorf("%v reads from %04b, want %04b", cl.class, got, cl.uses)
			}
		}
		// One session that goes to and fro.
		l := session(50)
		for range 20 {
			if got := c.readsOn(2, tidegate.Causal, l); got&^0b0110 != 0 {
				t.Errorf("users read from %04b", got)
			}
			if got := c.readsOn(2, report, l); got != 0b1000 {
				t.Errorf("reports read from %04b", got)
			}
		}
		c.lose(1, 2)
		c.begin(c.t.Context(), &Ticket{Ledger: session(50)}, outcome{0, tidegate.ReasonNoReplica, false, 0})
		c.begin(c.t.Context(), &Ticket{Class: anyAge}, outcome{0, tidegate.ReasonNoReplica, false, 0})
		c.lose(3)
		c.begin(c.t.Context(), &Ticket{Class: report, Ledger: session(50)}, outcome{0, tidegate.ReasonNoReplica, false, 0})
	})
}

// A session that goes on elsewhere for the sake of a tag sees what it saw before: what it
// can have seen is bounded first, and awaited.
func TestLeavingForATagIsMonotonic(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		c.tagged(2, true, "reporting")
		c.apply(120, 0, 1) // the reporting replica has 100
		l := session(50)
		c.readsOn(1, tidegate.Causal, l)
		tk, done := &Ticket{Class: report, Ledger: l}, make(chan struct{})
		go func() {
			defer close(done)
			if err := c.router.Begin(c.t.Context(), tk); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		c.look(0, 1) // bounded, and more than the other has
		select {
		case <-done:
			t.Fatalf("went to %d, which lacks what the session has seen", tk.Node)
		default:
		}
		c.apply(119, 2)
		select {
		case <-done:
			t.Fatalf("went to %d, which lacks a part of what the session has seen", tk.Node)
		default:
		}
		c.apply(120, 2)
		<-done
		if tk.Node != 2 || tk.reason != tidegate.ReasonCovered || tk.required != tidegate.At(120) {
			t.Errorf("node %d, %v, required %v", tk.Node, tk.reason, tk.required)
		}
		c.router.Done(tk, mono.Now())
	})
}

// Without a replica that has the tag in time the primary answers.
func TestRequiredTagIsBehind(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		c.answering, c.proven = true, tidegate.At(120)
		c.tagged(2, false, "reporting")
		c.apply(120, 0, 1)
		c.begin(c.t.Context(), &Ticket{Class: report, Ledger: session(120)}, outcome{0, tidegate.ReasonBehind, false, 20 * ms})
		c.begin(c.t.Context(), &Ticket{Class: rather, Ledger: session(120)}, outcome{1, tidegate.ReasonCovered, false, 0})
	})
}

func TestPrefer(t *testing.T) {
	t.Parallel()
	anyRather := tidegate.Relaxed("any", "test", tidegate.AnyStaleness(), tidegate.Prefer("reporting"))
	inBubble(t, 4, func(c *cluster) {
		c.tagged(3, true, "reporting")
		for range 20 {
			if got := c.readsOn(1, rather, session(50)) | c.readsOn(1, rather, ledger.New("main", 7, nil)) | c.readsOn(1, anyRather, nil); got != 0b1000 {
				t.Fatalf("reads from %04b", got)
			}
		}
		// It stays where it is until what it has seen there is bounded, and leaves then.
		l := session(50)
		home := c.readsOn(1, tidegate.Causal, l)
		if got := c.readsOn(3, rather, l); got != home {
			t.Errorf("reads from %04b, was on %04b", got, home)
		}
		c.look(0)
		if got := c.readsOn(2, rather, l); got != 0b1000 {
			t.Errorf("reads from %04b", got)
		}
		// Where none that is preferred qualifies it stays with another one, and does not
		// go round.
		c.apply(120, 0, 1, 2)
		l = session(110)
		home = c.readsOn(1, rather, l)
		for range 10 {
			c.look(0, 1, 2, 3)
			if got := c.readsOn(1, rather, l); got != home || got&0b0110 == 0 {
				t.Fatalf("reads from %04b, was on %04b", got, home)
			}
		}
		// A bound that the preferred one does not cover costs the session nothing.
		c.say(func(says []freshness.Observation, _ []error) {
			for i := range says {
				says[i].Bound = tidegate.At(130)
			}
		})
		c.apply(115, 3)
		c.look(0, 1, 2)
		if got := c.readsOn(3, rather, l); got != home {
			t.Errorf("reads from %04b, was on %04b", got, home)
		}
		c.lose(1, 2)
		c.lose(3)
		c.begin(c.t.Context(), &Ticket{Class: rather, Ledger: session(50)}, outcome{0, tidegate.ReasonNoReplica, false, 0})
	})
}

// Tags change for the next decision, and for a read that waits.
func TestTagsChange(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		l := session(50)
		home := c.readsOn(1, tidegate.Causal, l)
		node := 1
		if home == 0b100 {
			node = 2
		}
		c.look(0, 1, 2)
		c.tagged(node, true, "reporting")
		if got := c.readsOn(2, tidegate.Causal, l); got != 0b110&^home {
			t.Errorf("users read from %03b", got)
		}
		c.look(0, 1, 2)
		if got := c.readsOn(2, report, l); got != home {
			t.Errorf("reports read from %03b", got)
		}
		c.tagged(node, false)
		c.begin(c.t.Context(), &Ticket{Class: report, Ledger: l}, outcome{0, tidegate.ReasonNoReplica, true, time.Second})
		// All of them wait.
		other := 3 - node
		young := tidegate.Relaxed("young", "test", tidegate.Within(ms), tidegate.Require("reporting"))
		for class, want := range map[tidegate.Class]int{tidegate.Causal: other, report: node, young: node} {
			c.tagged(other, false, "reporting")
			time.Sleep(2 * ms)
			tk, done := &Ticket{Class: class, Ledger: session(200)}, make(chan struct{})
			go func() {
				defer close(done)
				if err := c.router.Begin(c.t.Context(), tk); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
			c.tagged(node, true, "reporting")
			c.tagged(other, false)
			c.look(0)
			c.apply(200, other, node)
			<-done
			if tk.Node != want {
				t.Errorf("%v: went to %d, want %d", class, tk.Node, want)
			}
			c.apply(100, 1, 2)
			c.tagged(node, false)
		}
	})
}

// So they do for one that queues for the primary; and preferred nodes come first there.
func TestTagsWhileQueueing(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		bounded(c, 1)
		holder, tk := &Ticket{Ledger: session(200)}, &Ticket{Class: report, Ledger: session(200)}
		c.tagged(1, false, "reporting")
		c.begin(c.t.Context(), holder, outcome{0, tidegate.ReasonBehind, false, 0})
		c.others.Go(func() {
			time.Sleep(3 * ms)
			c.tagged(1, false)
			c.tagged(2, false, "reporting")
			c.apply(200, 1, 2)
		})
		if err := c.router.Begin(c.t.Context(), tk); err != nil || tk.Node != 2 {
			t.Errorf("%v, node %d", err, tk.Node)
		}
		c.router.Done(tk, mono.Now())
		c.router.Done(holder, mono.Now())
		for range 20 {
			tk := &Ticket{Class: rather, Ledger: session(50)}
			tk.Ledger.Lock()
			if !c.router.covers(tk, c.Table()) || tk.Node != 2 {
				t.Errorf("node %d", tk.Node)
			}
			tk.Ledger.Unlock()
			c.router.Undo(tk)
		}
		c.free(1)
	})
}

// A class of which no node has the tags is told of, once while nodes stay what they are.
func TestUnserved(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		var told []tidegate.Class
		c.router.cfg.Unserved = func(class tidegate.Class) { told = append(told, class) }
		served := tidegate.NewCausal("served", "test", tidegate.Require("big"))
		c.tagged(2, true, "big")
		for range 3 {
			c.router.avoid(tidegate.Causal)
			c.router.avoid(served)
			c.router.avoid(rather)
			c.router.avoid(report)
		}
		if !slices.Equal(told, []tidegate.Class{report}) {
			t.Errorf("told of %v", told)
		}
	})
}

// A replica that is dedicated to others does not answer a stale read, though it is out for
// its lag like those that may.
func TestStaleReadsKeepApart(t *testing.T) {
	t.Parallel()
	class := func(o ...tidegate.RelaxedOption) tidegate.Class {
		return tidegate.Relaxed("r", "test", tidegate.Within(time.Second), append(o, tidegate.ServeStale(), tidegate.Wait(2*ms))...)
	}
	users, reports := class(), class(tidegate.Require("reporting"))
	inBubble(t, 3, func(c *cluster) {
		c.answering = true
		c.tagged(2, true, "reporting")
		c.router.cfg.MostLag = 50
		c.apply(200, 0)
		time.Sleep(2 * time.Second)
		c.look(0, 1, 2)
		c.router.Judge(c.Table(), mono.Now())
		if c.router.late.Load() != 0b110 {
			t.Fatalf("%03b are out", c.router.late.Load())
		}
		for range 10 {
			c.begin(c.t.Context(), &Ticket{Class: users}, outcome{1, tidegate.ReasonStale, false, 0})
			c.begin(c.t.Context(), &Ticket{Class: reports}, outcome{2, tidegate.ReasonStale, false, 0})
		}
		c.lose(1)
		c.begin(c.t.Context(), &Ticket{Class: users}, outcome{0, tidegate.ReasonNoReplica, false, 0})
	})
}

// A class that fails rather than use the primary does so also when no replica is for it.
func TestNoReplicaForAClassThatFails(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		fails := tidegate.Relaxed("r", "test", tidegate.Within(time.Second), tidegate.Require("reporting"), tidegate.FailWhenStale())
		if err := c.router.Begin(c.t.Context(), &Ticket{Class: fails}); err == nil {
			t.Error("it was answered")
		}
		c.idle()
	})
}

// While nodes' tags change under reads, none that begins behind a change goes where it may
// not.
func TestTagsChangeUnderReads(t *testing.T) {
	t.Parallel()
	table := healthy(4)
	r := router(hold(table), 4)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, class := range []tidegate.Class{report, rather, anyAge} {
					tk := &Ticket{Class: class, Ledger: session(50)}
					if err := r.Begin(t.Context(), tk); err != nil {
						t.Error(err)
						return
					}
					r.Done(tk, mono.Now())
				}
			}
		})
	}
	for i := range 500 {
		node := 1 + i%2
		r.Set(node, Node{Name: "n", Weight: 1, Tags: []string{"reporting"}, Dedicated: true})
		r.Set(3-node, Node{Name: "n", Weight: 1})
		for class, want := range map[tidegate.Class]uint64{report: 1 << uint(node), tidegate.Causal: 0b1110 &^ (1 << uint(node))} {
			tk := &Ticket{Class: class, Ledger: session(50)}
			if err := r.Begin(t.Context(), tk); err != nil || want>>uint(tk.Node)&1 == 0 {
				t.Fatalf("%v: went to %d, not one of %04b, error %v", class, tk.Node, want, err)
			}
			r.Done(tk, mono.Now())
		}
	}
	close(stop)
	wg.Wait()
}

// The shadow goes where the read would have gone, and a write asks the replicas that the
// reads behind it can use.
func TestTagsBesideTheLadder(t *testing.T) {
	t.Parallel()
	anyReport := tidegate.Relaxed("report", "test", tidegate.AnyStaleness(), tidegate.Require("reporting"))
	inBubble(t, 4, func(c *cluster) {
		c.tagged(3, true, "reporting")
		c.apply(120, 3) // the newest
		if asks := c.router.Soon(session(50)); asks != 0b0110 {
			t.Errorf("a write asks %04b", asks)
		}
		c.router.SetRollout(tidegate.RolloutShadow)
		for range 20 {
			for class, reporting := range map[tidegate.Class]bool{tidegate.Causal: false, anyAge: false, report: true, anyReport: true, rather: true} {
				tk := &Ticket{Class: class, Ledger: session(50)}
				if err := c.router.Begin(c.t.Context(), tk); err != nil {
					t.Fatal(err)
				}
				if d := c.router.Decision(tk); (d.ShadowNode == "n3") != reporting || d.ShadowNode == "" {
					t.Errorf("%v", d)
				}
				c.router.Undo(tk)
			}
		}
		none := &Ticket{Class: tidegate.NewCausal("none", "test", tidegate.Require("none")), Ledger: session(50)}
		if err := c.router.Begin(c.t.Context(), none); err != nil || none.shadow != nil || none.shadowReason != tidegate.ReasonNoReplica {
			t.Errorf("%v, %v, %v", err, none.shadow, none.shadowReason)
		}
	})
}
