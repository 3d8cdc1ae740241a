package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

// throttle returns a throttle on the core.
func throttle(t *testing.T, c *engine.Core, cfg engine.ThrottleConfig) *engine.Throttle {
	t.Helper()
	th, err := c.NewThrottle(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return th
}

// waiting is a call of Wait under way.
type waiting struct {
	done chan struct{}
	err  error
	took time.Duration
}

func wait(ctx context.Context, th *engine.Throttle) *waiting {
	w, began := &waiting{done: make(chan struct{})}, time.Now()
	go func() {
		defer close(w.done)
		w.err = th.Wait(ctx)
		w.took = time.Since(began)
	}()
	return w
}

// still fails the test if the call returns within the time.
func (w *waiting) still(t *testing.T, d time.Duration, why string) {
	t.Helper()
	select {
	case <-w.done:
		t.Fatalf("%s: it returned %v after %v", why, w.err, w.took)
	case <-time.After(d):
	}
}

// passes fails the test if the call does not return nil within the time.
func (w *waiting) passes(t *testing.T, within time.Duration, why string) {
	t.Helper()
	select {
	case <-w.done:
		if w.err != nil {
			t.Fatalf("%s: %v", why, w.err)
		}
	case <-time.After(max(within, 1)):
		t.Fatalf("%s: it still waits after %v", why, within)
	}
}

// What is known is enough while it is new; later each node is asked once; and nobody
// asks while Wait is not called. An idle cluster is young however long it idles.
func TestThrottleAsksOnlyWhenCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := primaryStub(1, 100)
		p.took = time.Millisecond
		c := core(t, engine.Config{}, p, replicaStub(2, 100), replicaStub(3, 100))
		th := throttle(t, c, engine.ThrottleConfig{})
		wait(t.Context(), th).passes(t, 0, "when all is new")
		if n := c.Stats().DemandProbes; n != 0 {
			t.Errorf("asked %d times for what is known", n)
		}
		time.Sleep(time.Minute)
		if n := c.Stats().DemandProbes; n != 0 {
			t.Errorf("asked %d times in a minute without a call", n)
		}
		wait(t.Context(), th).passes(t, 5*time.Millisecond, "after a minute")
		time.Sleep(time.Minute)
		if n := c.Stats().DemandProbes; n != 3 {
			t.Errorf("asked %d times for a look at three nodes", n)
		}
		if s := th.Stats(); s.Passed != 2 || s.Waits != 1 || s.Waited != time.Millisecond {
			t.Errorf("%+v", s)
		}
	})
}

// By lag in the engine's unit: held above the upper mark, let go at the lower one, and
// then again held only above the upper one.
func TestThrottleHysteresisByLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := replicaStub(2, 1000)
		c := core(t, engine.Config{}, primaryStub(1, 1000), r)
		th := throttle(t, c, engine.ThrottleConfig{MaxLag: 100, ResumeLag: 40})
		time.Sleep(time.Minute)
		r.at(900)
		wait(t.Context(), th).passes(t, 5*time.Millisecond, "at the upper mark: that the looks were old is no reason to hold it")
		time.Sleep(time.Minute)
		r.at(899)
		w := wait(t.Context(), th)
		w.still(t, 10*time.Second, "above the upper mark")
		r.at(959)
		w.still(t, 10*time.Second, "above the lower mark")
		r.at(960)
		w.passes(t, 100*time.Millisecond, "at the lower mark")
		r.at(900)
		time.Sleep(time.Second) // a lag of a second ago is not known
		wait(t.Context(), th).passes(t, 5*time.Millisecond, "at the upper mark again")
		if s := th.Stats(); s.Passed != 3 || s.Waits != 3 || s.Waited < 20*time.Second || s.Waited > 21*time.Second {
			t.Errorf("%+v", s)
		}
	})
}

// late returns a core on a cluster that commits all the time, and the cluster.
func late(ctx context.Context, t *testing.T, cfg engine.Config, every time.Duration) (*engine.Core, *fake.Cluster) {
	t.Helper()
	f := fake.New(fake.Config{Replicas: 2})
	g, err := f.Open(ctx, fake.Options{Core: cfg})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	ended := make(chan struct{})
	wg.Go(func() {
		for tick := time.NewTicker(every); ; {
			select {
			case <-tick.C:
				f.Commit(1)
			case <-ended:
				tick.Stop()
				return
			}
		}
	})
	t.Cleanup(func() {
		close(ended)
		wg.Wait()
		g.Close()
	})
	return g.Core(), f
}

// By proven staleness, with the defaults, while somebody writes.
func TestThrottleHysteresisByStaleness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := late(t.Context(), t, engine.Config{}, 5*time.Millisecond)
		r := f.Nodes()[2]
		th := throttle(t, c, engine.ThrottleConfig{})
		step := func(delay time.Duration) {
			r.SetDelay(delay)
			time.Sleep(2 * time.Second)
		}
		step(350 * time.Millisecond)
		wait(t.Context(), th).passes(t, 100*time.Millisecond, "350ms late")
		step(600 * time.Millisecond)
		w := wait(t.Context(), th)
		w.still(t, 10*time.Second, "600ms late")
		step(300 * time.Millisecond)
		w.still(t, 10*time.Second, "300ms late, above the lower mark")
		r.SetDelay(100 * time.Millisecond)
		w.passes(t, 100*time.Millisecond, "100ms late")
		step(350 * time.Millisecond)
		wait(t.Context(), th).passes(t, 100*time.Millisecond, "350ms late again")
	})
}

// However seldom nodes are looked at by themselves, and however small the budget for
// asking: a replica that keeps up is proven to, while somebody writes.
func TestThrottleProvesWhatKeepsUp(t *testing.T) {
	for _, x := range []struct {
		name   string
		rate   float64
		mark   time.Duration
		late   time.Duration
		within time.Duration
	}{
		{"a short mark", 250, 50 * time.Millisecond, 10 * time.Millisecond, 30 * time.Millisecond},
		{"a small budget", 2.5, 500 * time.Millisecond, 1500 * time.Microsecond, 1700 * time.Millisecond},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f := late(t.Context(), t, engine.Config{ProbeInterval: time.Hour, DemandRate: x.rate}, time.Millisecond)
				th := throttle(t, c, engine.ThrottleConfig{MaxStaleness: x.mark})
				for _, r := range f.Nodes()[1:] {
					r.Pause()
				}
				time.Sleep(time.Second)
				w := wait(t.Context(), th)
				w.still(t, 4013*time.Millisecond, "paused")
				for _, r := range f.Nodes()[1:] {
					r.SetDelay(x.late)
					r.Resume()
				}
				w.passes(t, x.within, "it keeps up")
			})
		})
	}
}

// Batches that take no longer than a look are held soon after the mark is passed, and
// each look serves more than one of them.
func TestThrottleQuickBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r := primaryStub(1, 1000), replicaStub(2, 1000)
		c := core(t, engine.Config{}, p, r)
		th := throttle(t, c, engine.ThrottleConfig{MaxLag: 1000, MaxWait: time.Second})
		batches, began, took := 0, time.Now(), time.Duration(0)
		for th.Wait(t.Context()) == nil && batches < 1000 {
			time.Sleep(5 * time.Millisecond)
			batches, took = batches+1, time.Since(began)
			p.at(1000 + 10*uint64(batches))
			if n := c.Stats().DemandProbes; n > 2*(2+uint64(time.Since(began)/(16*time.Millisecond))) {
				t.Fatalf("asked two nodes %d times in %v", n, time.Since(began))
			}
		}
		if batches < 100 || batches > 105 {
			t.Errorf("%d batches went before it was held, want 100 and those between two looks", batches)
		}
		if took > time.Second {
			t.Errorf("%d batches of 5ms took %v", batches, took)
		}
	})
}

// Both marks have to be kept by the same replicas.
func TestThrottleBothMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r := primaryStub(1, 1000), replicaStub(2, 1000)
		c := core(t, engine.Config{}, p, r)
		th := throttle(t, c, engine.ThrottleConfig{MaxLag: 100, MaxStaleness: time.Second, MaxWait: 5 * time.Second})
		time.Sleep(time.Minute)
		r.at(990) // it has nothing that was looked at in the last second
		var lagging *engine.LaggingError
		if err := th.Wait(t.Context()); !errors.As(err, &lagging) || lagging.StalenessKnown || lagging.Lag != 10 {
			t.Errorf("old, not far behind: %v", err)
		}
		r.at(1000)
		wait(t.Context(), th).passes(t, 100*time.Millisecond, "neither")
		p.at(1101)
		c.Suspect(0)
		time.Sleep(10 * time.Millisecond)
		if err := th.Wait(t.Context()); !errors.As(err, &lagging) || lagging.Lag != 101 {
			t.Errorf("far behind: %v", err)
		}
	})
}

func TestThrottlePercentile(t *testing.T) {
	for _, x := range []struct {
		percentile int
		lags       []uint64
		node       string // that decides, "" if the batch may go
	}{
		{0, []uint64{0, 0, 200}, "d"},
		{100, []uint64{0, 300, 200}, "c"},
		{100, []uint64{10, 20, 100}, ""},
		{67, []uint64{0, 0, 200}, "d"},
		{66, []uint64{0, 0, 200}, ""},
		{66, []uint64{0, 200, 300}, "c"},
		{50, []uint64{200, 0}, ""},
		{51, []uint64{200, 0}, "b"},
		{50, []uint64{300, 0, 200}, "d"},
		{1, []uint64{300, 0, 200}, ""},
		{1, []uint64{300, 400, 200}, "d"},
		{1, []uint64{200}, "b"},
	} {
		t.Run(fmt.Sprint(x.percentile, x.lags), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stubs := []*stub{primaryStub(1, 1000)}
				for i, lag := range x.lags {
					stubs = append(stubs, replicaStub(uint64(2+i), 1000-lag))
				}
				th := throttle(t, core(t, engine.Config{}, stubs...), engine.ThrottleConfig{MaxLag: 100, Percentile: x.percentile, MaxWait: time.Second})
				err := th.Wait(t.Context())
				var lagging *engine.LaggingError
				switch {
				case x.node == "" && err != nil:
					t.Errorf("%v, want that it goes", err)
				case x.node != "" && (!errors.As(err, &lagging) || lagging.Node != x.node):
					t.Errorf("%v, want that %s decides", err, x.node)
				}
			})
		})
	}
}

// A replica that does not answer holds the job for a time, and not for ever; when it
// is back it counts again.
func TestThrottleAbsentReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, gone := replicaStub(2, 1000), replicaStub(3, 1000)
		c := core(t, engine.Config{ProbeInterval: 100 * time.Millisecond}, primaryStub(1, 1000), r, gone)
		th := throttle(t, c, engine.ThrottleConfig{AbsentAfter: 20 * time.Second})
		fails := func(err error) { gone.set(func(s *stub) { s.err = err }) }
		fails(errors.New("refused"))
		time.Sleep(time.Second)
		limited, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := th.Wait(limited); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "c does not answer: refused") {
			t.Errorf("%v, want the context's end and why", err)
		}
		w := wait(t.Context(), th)
		w.still(t, 17*time.Second, "not away for 20s")
		w.passes(t, 2*time.Second, "away for 20s")
		wait(t.Context(), th).passes(t, 0, "away for longer")
		gone.at(500)
		fails(nil)
		time.Sleep(2 * time.Second)
		w = wait(t.Context(), th)
		w.still(t, 30*time.Second, "back, and behind")
		gone.at(1000)
		w.passes(t, 100*time.Millisecond, "back")
		// All away: nobody reads what is old, and nobody is waited for.
		r.set(func(s *stub) { s.hung = true })
		fails(errors.New("refused"))
		time.Sleep(time.Second)
		wait(t.Context(), th).passes(t, 21*time.Second, "all of them away")
	})
}

// A node that has joined and has not answered yet may be a replica that is behind.
func TestThrottleNewNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, joins := primaryStub(1, 1000), replicaStub(2, 1000)
		joins.took = 300 * time.Millisecond
		c := core(t, engine.Config{}, p)
		th := throttle(t, c, engine.ThrottleConfig{})
		if _, err := c.SetNodes([]engine.Node{{Name: "a", Source: p}, {Name: "b", Source: joins}}); err != nil {
			t.Fatal(err)
		}
		w := wait(t.Context(), th)
		w.still(t, 299*time.Millisecond, "it has not answered")
		w.passes(t, 2*time.Millisecond, "it has answered")
	})
}

// Where there is no replica there is nothing to wait for, whatever the primary does.
func TestThrottleWithoutReplica(t *testing.T) {
	other := replicaStub(2, 10)
	other.answer.Epoch.System = 9
	down := primaryStub(1, 1000)
	down.err = errors.New("refused")
	for _, x := range []struct {
		name  string
		stubs []*stub
	}{
		{"one node", []*stub{primaryStub(1, 1000)}},
		{"one node that is down", []*stub{down}},
		{"a replica of something else", []*stub{primaryStub(1, 1000), other}},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := core(t, engine.Config{}, x.stubs...)
				th := throttle(t, c, engine.ThrottleConfig{})
				time.Sleep(time.Minute)
				wait(t.Context(), th).passes(t, 0, x.name)
				if s, n := th.Stats(), c.Stats().DemandProbes; s.Waits != 0 || n != 0 {
					t.Errorf("%+v, asked %d times", s, n)
				}
			})
		})
	}
}

// While no primary is known, or it does not answer, nothing is proven.
func TestThrottleWithoutPrimary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := primaryStub(1, 1000)
		p.err = errors.New("refused")
		c := core(t, engine.Config{ProbeInterval: 100 * time.Millisecond}, p, replicaStub(2, 1000))
		th := throttle(t, c, engine.ThrottleConfig{MaxWait: 3 * time.Second})
		err := th.Wait(t.Context())
		if !errors.Is(err, tidegate.ErrLagging) || !errors.Is(err, tidegate.ErrNoPrimary) {
			t.Errorf("%v", err)
		}
		p.set(func(s *stub) { s.err = nil })
		wait(t.Context(), th).passes(t, 2*time.Second, "when it is there")
		p.set(func(s *stub) { s.err = errors.New("refused") })
		time.Sleep(time.Second)
		for _, cfg := range []engine.ThrottleConfig{{}, {MaxLag: 1 << 20}} {
			cfg.MaxWait = 3 * time.Second
			if err := throttle(t, c, cfg).Wait(t.Context()); !errors.Is(err, tidegate.ErrLagging) || errors.Is(err, tidegate.ErrNoPrimary) {
				t.Errorf("%+v, a primary that is known and does not answer: %v", cfg, err)
			}
		}
	})
}

// A failover: the primary that is gone is no replica that has to be waited for.
func TestThrottleAfterFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := late(t.Context(), t, engine.Config{}, 5*time.Millisecond)
		th := throttle(t, c, engine.ThrottleConfig{})
		wait(t.Context(), th).passes(t, 100*time.Millisecond, "before")
		f.Nodes()[0].Stop()
		f.Nodes()[1].Promote()
		f.Nodes()[2].Follow(f.Nodes()[1])
		time.Sleep(3 * time.Second)
		wait(t.Context(), th).passes(t, 100*time.Millisecond, "after")
		f.Nodes()[2].Pause()
		wait(t.Context(), th).passes(t, 100*time.Millisecond, "paused a moment ago")
		time.Sleep(time.Second)
		w := wait(t.Context(), th)
		w.still(t, 10*time.Second, "the new primary's replica is paused")
		f.Nodes()[2].Resume()
		w.passes(t, 100*time.Millisecond, "resumed")
	})
}

func TestThrottleMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := core(t, engine.Config{ProbeInterval: 100 * time.Millisecond}, primaryStub(1, 1000), replicaStub(2, 1000), replicaStub(3, 700))
		th := throttle(t, c, engine.ThrottleConfig{MaxLag: 100, MaxWait: 1234 * time.Millisecond})
		began := time.Now()
		err := th.Wait(t.Context())
		if took := time.Since(began); took != 1234*time.Millisecond {
			t.Errorf("gave up after %v", took)
		}
		want := engine.LaggingError{Cluster: "main", Node: "c", Lag: 300, LagKnown: true, Waited: 1234 * time.Millisecond}
		var got *engine.LaggingError
		if !errors.Is(err, tidegate.ErrLagging) || errors.Is(err, tidegate.ErrNoPrimary) || !errors.As(err, &got) || *got != want {
			t.Errorf("%+v, want %+v", err, want)
		}
		if s := fmt.Sprint(err); !strings.HasSuffix(s, "cluster main, c is of unknown age and 300 behind; waited 1.234s") {
			t.Error(s)
		}
		if s := th.Stats(); s != (engine.ThrottleStats{Waits: 1, GaveUp: 1, Waited: 1234 * time.Millisecond}) {
			t.Errorf("%+v", s)
		}
	})
}

// The context and Close end a wait at once, and neither says that the job may decide.
func TestThrottleEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := core(t, engine.Config{}, primaryStub(1, 1000), replicaStub(2, 700))
		th := throttle(t, c, engine.ThrottleConfig{MaxWait: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		one, two := wait(ctx, th), wait(t.Context(), th)
		one.still(t, 777*time.Millisecond, "behind")
		cancel()
		<-one.done
		if !errors.Is(one.err, context.Canceled) || errors.Is(one.err, tidegate.ErrLagging) || one.took != 777*time.Millisecond {
			t.Errorf("%v after %v", one.err, one.took)
		}
		if err := throttle(t, c, engine.ThrottleConfig{Percentile: 1}).Wait(ctx); err != context.Canceled {
			t.Errorf("a context that has ended: %v", err)
		}
		c.Close()
		<-two.done
		if two.err != tidegate.ErrClosed || two.took != 777*time.Millisecond {
			t.Errorf("%v after %v", two.err, two.took)
		}
	})
}

// Workers share the looks, and all of them go on at once.
func TestThrottleWorkers(t *testing.T) {
	for _, x := range []struct {
		rate       float64
		least, top int // asks at each node in ten seconds
	}{
		{0, 190, 201},
		{20, 45, 51}, // a quarter is left for those who read
	} {
		t.Run(fmt.Sprint(x.rate), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := replicaStub(2, 700)
				c := core(t, engine.Config{DemandRate: x.rate}, primaryStub(1, 1000), r)
				th := throttle(t, c, engine.ThrottleConfig{MaxLag: 100})
				var all []*waiting
				for range 8 {
					all = append(all, wait(t.Context(), th))
					time.Sleep(7 * time.Millisecond)
				}
				before := c.Stats().DemandProbes
				all[0].still(t, 10*time.Second, "behind")
				if n := int(c.Stats().DemandProbes-before) / 2; n < x.least || n > x.top {
					t.Errorf("asked each node %d times in 10s, want %d to %d", n, x.least, x.top)
				}
				r.at(950)
				for _, w := range all {
					w.passes(t, 300*time.Millisecond, "near enough")
				}
				if s := th.Stats(); s.Passed != 8 || s.Waits != 8 || s.Waited < 80*time.Second {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

func TestThrottleConfig(t *testing.T) {
	t.Parallel()
	c, err := engine.New(engine.Config{Cluster: "main", Nodes: []engine.Node{{Name: "a", Source: primaryStub(1, 100)}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for field, cfg := range map[string]engine.ThrottleConfig{
		"MaxStaleness":    {MaxStaleness: time.Millisecond},
		"ResumeStaleness": {MaxStaleness: time.Second, ResumeStaleness: 2 * time.Second},
		"ResumeLag":       {MaxLag: 10, ResumeLag: 11},
		"Percentile":      {Percentile: 101},
		"AbsentAfter":     {AbsentAfter: -1},
		"MaxWait":         {MaxWait: -1},
	} {
		if _, err := c.NewThrottle(cfg); !errors.Is(err, tidegate.ErrConfig) || !strings.Contains(err.Error(), "ThrottleConfig."+field+" ") || !strings.Contains(err.Error(), "use ") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	for _, cfg := range []engine.ThrottleConfig{
		{}, {MaxLag: 1}, {MaxStaleness: 10 * time.Millisecond}, {MaxStaleness: 24 * time.Hour, ResumeStaleness: 24 * time.Hour, MaxLag: 1, ResumeLag: 1, Percentile: 100},
	} {
		if _, err := c.NewThrottle(cfg); err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
