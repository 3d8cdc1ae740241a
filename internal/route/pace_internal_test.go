package route

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

func TestIsSlow(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	// draw returns sorted times, each of which is one of those, give or take a fifth.
	draw := func(n int, of ...time.Duration) []int64 {
		all := make([]int64, n)
		for i := range all {
			x := float64(of[r.IntN(len(of))])
			all[i] = int64(x * (.8 + .4*r.Float64()))
		}
		slices.Sort(all)
		return all
	}
	for name, c := range map[string]struct {
		reads, best func() []int64
		want        bool
	}{
		"slow":             {func() []int64 { return draw(32, 30*ms) }, func() []int64 { return draw(32, ms) }, true},
		"few":              {func() []int64 { return draw(paceEnough-1, 30*ms) }, func() []int64 { return draw(32, ms) }, false},
		"none":             {func() []int64 { return nil }, func() []int64 { return draw(32, ms) }, false},
		"twice as slow":    {func() []int64 { return draw(32, 20*ms) }, func() []int64 { return draw(32, 10*ms) }, false},
		"nobody notices":   {func() []int64 { return draw(32, 2*ms) }, func() []int64 { return draw(32, ms/10) }, false},
		"alike":            {func() []int64 { return draw(32, ms) }, func() []int64 { return draw(32, ms) }, false},
		"short and long":   {func() []int64 { return draw(32, ms, 100*ms) }, func() []int64 { return draw(32, ms, 100*ms) }, false},
		"all of it slower": {func() []int64 { return draw(32, 10*ms, 1000*ms) }, func() []int64 { return draw(32, ms, ms, ms, 100*ms) }, true},
	} {
		// What two nodes of one kind look like is a matter of luck.
		wrong := 0
		for range 2000 {
			if isSlow(c.reads(), c.best()) != c.want {
				wrong++
			}
		}
		if wrong > 200 || !c.want && wrong > 1 {
			t.Errorf("%s: %d of 2000 are wrong", name, wrong)
		}
	}
}

// paced are reads of sessions, of which each node takes its own time.
type paced struct {
	*cluster
	takes []time.Duration // by node
	count []int
	took  []time.Duration
}

// go on for a time with so many reads a second, and return the part that replica 2
// gets. Each session has its mark, a fifth of the reads follow a write that all have.
func (p *paced) run(r *rand.Rand, sessions []*ledger.Ledger, rate float64, d time.Duration) float64 {
	p.count, p.took = make([]int, len(p.takes)), nil
	end := time.Now().Add(d)
	judge := time.Now()
	for time.Now().Before(end) {
		time.Sleep(time.Duration(r.ExpFloat64() / rate * float64(time.Second)))
		if now := time.Now(); !now.Before(judge) {
			judge = now.Add(50 * ms)
			p.router.Judge(p.Table(), mono.Now())
			p.router.Balance(p.Table(), mono.Now())
			p.router.JudgePaces(p.Table(), mono.Now())
		}
		tk := &Ticket{Ledger: sessions[r.IntN(len(sessions))]}
		start := time.Now()
		if err := p.router.Begin(context.Background(), tk); err != nil {
			p.t.Error(err)
			continue
		}
		node := tk.Node
		p.count[node]++
		took := p.takes[node]
		p.others.Go(func() {
			time.Sleep(took)
			p.router.Done(tk, mono.Now())
			p.mu.Lock()
			p.took = append(p.took, time.Since(start))
			p.mu.Unlock()
		})
	}
	p.others.Wait()
	return float64(p.count[2]) / float64(len(p.took))
}

// A replica that is current and late is left for another, is tried now and then, and
// gets its part again when it is quick. No read goes to the primary for it.
func TestSlowReplicaIsLeft(t *testing.T) {
	t.Parallel()
	for _, class := range []string{"home", "new"} {
		inBubble(t, 3, func(c *cluster) {
			c.answering = true
			p := &paced{cluster: c, takes: []time.Duration{ms, ms, ms}}
			r := rand.New(rand.NewPCG(3, 4))
			sessions := make([]*ledger.Ledger, 50)
			for i := range sessions {
				sessions[i] = ledger.New("main", uint64(i+1), nil)
				sessions[i].Reached(epoch, tidegate.At(90))
			}
			if class == "new" { // each read is of a session that has read nowhere
				fresh := sessions
				sessions = nil
				for range 400 {
					for i := range fresh {
						l := ledger.New("main", r.Uint64(), nil)
						l.Reached(epoch, tidegate.At(uint64(50+i)))
						sessions = append(sessions, l)
					}
				}
			}
			share := p.run(r, sessions, 200, 10*time.Second)
			before := p95(p.took)
			if share < .3 || share > .7 {
				t.Errorf("%s: at first it gets %.2f", class, share)
			}
			p.takes[2] = 30 * ms
			p.run(r, sessions, 200, 3*time.Second)
			share = p.run(r, sessions, 200, 20*time.Second)
			if share == 0 && class == "new" || share > .04 || p95(p.took) > 2*before {
				t.Errorf("%s: when it is slow it gets %.3f, and the 95th percentile is %v, it was %v", class, share, p95(p.took), before)
			}
			if slow, took := c.router.Slow(2, mono.Now()); class == "new" && (!slow || took != 30*ms) {
				t.Errorf("%s: slow %v, %v", class, slow, took)
			}
			p.takes[2] = ms
			p.run(r, sessions, 200, 5*time.Second)
			if slow, _ := c.router.Slow(2, mono.Now()); slow && class == "new" {
				t.Errorf("%s: it is slow five seconds later", class)
			}
			p.run(r, sessions, 200, 6*time.Second)
			share = p.run(r, sessions, 200, 10*time.Second)
			if slow, _ := c.router.Slow(2, mono.Now()); slow || class == "new" && share < .3 {
				t.Errorf("%s: when it is quick again it gets %.2f; slow %v", class, share, slow)
			}
			if n := c.router.Stats().Fallbacks.Load(); n > 0 || p.count[0] > 0 {
				t.Errorf("%s: %d fell back", class, n)
			}
		})
	}
}

// Where the slow one is the only one that has what a read needs, it is used; and a read
// waits a moment for another first.
func TestSlowReplicaThatAloneHasIt(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		c.answering = true
		c.router.slows.Store(1 << 2)
		c.apply(200, 0, 2)
		reads := func(class tidegate.Class, mark uint64, want int, wait time.Duration) {
			t.Helper()
			for range 200 { // one of them may be a scout
				tk := &Ticket{Class: class, Ledger: session(mark)}
				if err := c.router.Begin(c.t.Context(), tk); err != nil || tk.Node != want || time.Duration(tk.waited) > wait {
					t.Fatalf("%v, node %d after %v, want %d within %v", err, tk.Node, time.Duration(tk.waited), want, wait)
				}
				c.router.Done(tk, mono.Now())
			}
		}
		reads(tidegate.Causal, 200, 2, 2*ms)
		time.Sleep(time.Second)
		c.look(0, 2)
		reads(tidegate.Relaxed("r", "test", tidegate.Within(500*ms)), 200, 2, 0)
		c.answering = false // nobody is told anything
		reads(tidegate.Causal, 200, 2, 20*ms)
		c.lose(1)
		reads(tidegate.Causal, 100, 2, 0)
		if n := c.router.Stats().Fallbacks.Load(); n > 0 {
			t.Errorf("%d fell back", n)
		}
	})
}

// How long a failure takes says nothing of how long answers take.
func TestFailuresAreNotTimed(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		for range 400 {
			tk := &Ticket{Class: tidegate.Relaxed("r", "test", tidegate.Within(time.Hour))}
			if err := c.router.Begin(c.t.Context(), tk); err != nil {
				t.Fatal(err)
			}
			if tk.Node == 2 {
				time.Sleep(30 * ms)
				c.router.Failed(tk, tidegate.RetryConnection, true)
				continue
			}
			time.Sleep(ms)
			c.router.Done(tk, mono.Now())
		}
		c.router.JudgePaces(c.Table(), mono.Now())
		if slow, took := c.router.Slow(2, mono.Now()); slow || took != 0 {
			t.Errorf("slow %v, %v", slow, took)
		}
		if _, took := c.router.Slow(1, mono.Now()); took != ms {
			t.Errorf("the other one takes %v", took)
		}
	})
}

// A replica that has the long reads is not slow.
func TestReportsAreNotTimed(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		n := *c.router.slots[2].node.Load()
		n.Tags = []string{"reports"}
		c.router.Set(2, n)
		report := tidegate.Relaxed("report", "test", tidegate.Within(time.Hour), tidegate.Require("reports"))
		for range 200 {
			for _, class := range []tidegate.Class{report, tidegate.Relaxed("short", "test", tidegate.Within(time.Hour))} {
				tk := &Ticket{Class: class}
				if err := c.router.Begin(c.t.Context(), tk); err != nil {
					t.Fatal(err)
				}
				if class == report {
					time.Sleep(30 * ms)
				}
				time.Sleep(ms)
				c.router.Done(tk, mono.Now())
			}
		}
		c.router.JudgePaces(c.Table(), mono.Now())
		for i := 1; i < 3; i++ {
			if slow, took := c.router.Slow(i, mono.Now()); slow || took != ms {
				t.Errorf("node %d: slow %v, %v", i, slow, took)
			}
		}
	})
}

// A replica that turns out to be slow each time that it is tried is tried less and less
// often, and as often as before when it has been quick for a while.
func TestSlowReplicaIsTriedLessAndLess(t *testing.T) {
	t.Parallel()
	var s ejected
	now := int64(time.Hour)
	again := func(after, want int64) {
		t.Helper()
		now += after
		s.slowAgain(now)
		if s.slowFor != want {
			t.Errorf("it is tried after %v, want %v", time.Duration(s.slowFor), time.Duration(want))
		}
		now += s.slowFor
		s.slowSince = now // quick
	}
	again(0, paceAge)
	again(paceAge, 2*paceAge)
	again(againWithin-1, 4*paceAge)
	again(1, 8*paceAge)
	again(1, longestSlow)
	again(1, longestSlow)
	again(againWithin, paceAge)
}

// What a replica took before it became slow does not make it slow again.
func TestQuickStaysQuick(t *testing.T) {
	t.Parallel()
	table := healthy(3)
	r := router(hold(table), 3)
	now := mono.Now() + int64(time.Hour)
	for i := range 32 {
		r.paces.nodes[1].took(int64(ms), now+int64(i))
		r.paces.nodes[2].took(int64(30*ms), now+int64(i))
	}
	now += int64(time.Second)
	if r.JudgePaces(table, now); r.slows.Load() != 1<<2 {
		t.Fatal("not slow")
	}
	changes := 0
	for range 40 { // 4 s, a scout each 200 ms, all quick
		now += int64(100 * ms)
		r.paces.nodes[1].took(int64(ms), now)
		if now/int64(100*ms)%2 == 0 {
			r.paces.nodes[2].took(int64(ms), now)
		}
		changes += len(r.JudgePaces(table, now))
	}
	if changes != 1 || r.slows.Load() != 0 {
		t.Errorf("%d changes, slow %b, slowFor %v", changes, r.slows.Load(), time.Duration(r.ejection.states[2].slowFor))
	}
}
