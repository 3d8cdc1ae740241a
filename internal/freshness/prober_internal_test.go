package freshness

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate/internal/mono"
)

// gaps returns the times between probes.
func gaps(sent []int64) []time.Duration {
	var all []time.Duration
	for i := 1; i < len(sent); i++ {
		all = append(all, time.Duration(sent[i]-sent[i-1]))
	}
	return all
}

func TestIntervalAndJitter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := healthy(1)
		cfg := calm(asSources(nodes)...)
		cfg.Interval = 100 * time.Millisecond
		running(t, cfg)
		time.Sleep(time.Minute)
		all := gaps(nodes[0].probes())
		low, high := slices.Min(all), slices.Max(all)
		if low < 90*time.Millisecond || high > 110*time.Millisecond {
			t.Errorf("intervals from %v to %v, want 100ms give or take a tenth", low, high)
		}
		if low > 93*time.Millisecond || high < 107*time.Millisecond {
			t.Errorf("intervals from %v to %v: many instances would probe in step", low, high)
		}
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	for interval, want := range map[time.Duration][]time.Duration{
		100 * time.Millisecond: {200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, time.Second, time.Second, time.Second},
		3 * time.Second:        {3 * time.Second, 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			nodes := healthy(1)
			nodes[0].err = errDown
			cfg := calm(asSources(nodes)...)
			cfg.Interval = interval
			running(t, cfg)
			time.Sleep(time.Minute)
			for i, gap := range gaps(nodes[0].probes())[:len(want)] {
				if gap < want[i]*9/10 || gap > want[i]*11/10 {
					t.Errorf("pause %d after a failure is %v, want about %v", i+1, gap, want[i])
				}
			}
			// Back again: the next probes come at the usual pace.
			nodes[0].set(func(s *source) { s.err = nil })
			time.Sleep(max(maxBackoff, interval) * 11 / 10)
			nodes[0].probes()
			time.Sleep(5 * interval)
			if got := len(nodes[0].probes()); got < 4 {
				t.Errorf("%d probes in five intervals after its return", got)
			}
		})
	}
}

func TestDemandsAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := healthy(1)
		w := running(t, calm(asSources(nodes)...))
		nodes[0].probes()
		nodes[0].set(func(s *source) { s.takes = 10 * time.Millisecond })
		at := mono.Now()
		for range 200 {
			go w.Demand(0, at)
		}
		time.Sleep(5 * time.Millisecond) // the probe is under way
		for range 200 {
			go w.Demand(0, mono.Now())
		}
		time.Sleep(time.Second)
		sent := nodes[0].probes()
		if len(sent) != 2 || sent[0] != at || sent[1] != at+int64(10*time.Millisecond) {
			t.Errorf("%d probes, %v apart; want one at once, and one when it is back for those who came meanwhile", len(sent), gaps(sent))
		}
		if ticks, demands := w.Counts(0); ticks != 1 || demands != 2 {
			t.Errorf("counted %d by the clock and %d on demand, want 1 and 2", ticks, demands)
		}
		nodes[0].set(func(s *source) {
			if s.most != 1 {
				t.Errorf("%d probes in flight at a time", s.most)
			}
		})
	})
}

func TestDemandsAreServedWhenTheyAreDue(t *testing.T) {
	t.Parallel()
	const ms = int64(time.Millisecond)
	for _, c := range []struct {
		name string
		due  []int64 // in the order in which they are made
		want int64   // when the first probe is sent
	}{
		{"now", []int64{0}, 0},
		{"past", []int64{-50 * ms}, 0},
		{"later", []int64{3 * ms}, 3 * ms},
		{"the earliest first", []int64{5 * ms, 2 * ms, 8 * ms}, 2 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				nodes := healthy(1)
				w := running(t, calm(asSources(nodes)...))
				nodes[0].probes()
				now := mono.Now()
				for _, due := range c.due {
					w.Demand(0, now+due)
				}
				time.Sleep(time.Second)
				if sent := nodes[0].probes(); len(sent) == 0 || sent[0] != now+c.want {
					t.Errorf("probes at %v, want the first after %v", gaps(append([]int64{now}, sent...)), time.Duration(c.want))
				}
			})
		})
	}
}

// A probe that the clock sends says nothing about the time for which a later one
// was asked.
func TestDemandSurvivesAnEarlierTick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := healthy(1)
		cfg := calm(asSources(nodes)...)
		cfg.Interval = 100 * time.Millisecond
		w := running(t, cfg)
		tick := nodes[0].probes()[0]
		due := tick + int64(115*time.Millisecond)
		w.Demand(0, due)
		time.Sleep(150 * time.Millisecond)
		if sent := nodes[0].probes(); !slices.Contains(sent, due) {
			t.Errorf("no probe at 115ms: they came at %v", gaps(append([]int64{tick}, sent...)))
		}
	})
}

func TestDemandRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := healthy(1)
		cfg := calm(asSources(nodes)...)
		cfg.DemandRate, cfg.DemandBurst = 250, 8
		w := running(t, cfg)
		nodes[0].probes()
		time.Sleep(time.Second) // the bucket is full
		const seconds = 3
		end := time.Now().Add(seconds * time.Second)
		var demanders sync.WaitGroup
		for i := range 200 {
			demanders.Go(func() {
				time.Sleep(time.Duration(i) * 50 * time.Microsecond)
				for time.Now().Before(end) {
					w.Demand(0, mono.Now())
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		time.Sleep(100 * time.Millisecond)
		if got := len(nodes[0].probes()); got < 8+24 || got > 8+26 {
			t.Errorf("%d probes in 100ms, want a burst of 8 and 25", got)
		}
		demanders.Wait()
		if got := len(nodes[0].probes()); got > 250*seconds || got < 235*seconds {
			t.Errorf("%d probes in %ds at 250/s", got, seconds)
		}
	})
}

// While there is no token, a demand wakes nobody up and is served all the same, as
// soon as there is one.
func TestDemandWithoutAToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := healthy(1)
		cfg := calm(asSources(nodes)...)
		cfg.DemandRate, cfg.DemandBurst = 250, 1
		w := running(t, cfg)
		nodes[0].probes()
		time.Sleep(time.Second) // there is one
		p := w.prober(0)
		w.Demand(0, mono.Now())
		synctest.Wait()
		if got := len(nodes[0].probes()); got != 1 {
			t.Fatalf("%d probes for the first demand", got)
		}
		time.Sleep(time.Millisecond)
		w.Demand(0, mono.Now())
		if len(p.wake) != 0 {
			t.Error("the prober is woken up for what it cannot do yet")
		}
		time.Sleep(3*time.Millisecond - time.Microsecond)
		if got := len(nodes[0].probes()); got != 0 {
			t.Errorf("%d probes before there is a token", got)
		}
		time.Sleep(2 * time.Microsecond)
		if got := len(nodes[0].probes()); got != 1 {
			t.Errorf("%d probes when there is a token", got)
		}
		time.Sleep(time.Second) // nothing more is wanted; the next one is served at once
		w.Demand(0, mono.Now())
		synctest.Wait()
		if got := len(nodes[0].probes()); got != 1 {
			t.Errorf("%d probes for a demand after a lull", got)
		}
	})
}

func TestDemandsToFailingNodesAreIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := healthy(1)
		cfg := calm(asSources(nodes)...)
		cfg.Interval = 100 * time.Millisecond
		w := running(t, cfg)
		nodes[0].set(func(s *source) { s.err, s.takes = errDown, 10*time.Millisecond })
		time.Sleep(200 * time.Millisecond)
		nodes[0].probes()
		for range 9000 {
			w.Demand(0, mono.Now())
			time.Sleep(time.Millisecond)
		}
		if got := len(nodes[0].probes()); got < 8 || got > 13 {
			t.Errorf("%d probes in 9s of a node that does not answer, want its own pace of about one a second", got)
		}
	})
}

// Nor are those that came while the probe was under way that failed.
func TestDemandsDuringAFailingProbeAreIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := healthy(1)
		w := running(t, calm(asSources(nodes)...))
		nodes[0].set(func(s *source) { s.err, s.takes = errDown, 10*time.Millisecond })
		nodes[0].probes()
		w.Demand(0, mono.Now())
		time.Sleep(5 * time.Millisecond)
		w.Demand(0, mono.Now())
		time.Sleep(100 * time.Millisecond)
		if got := len(nodes[0].probes()); got != 1 {
			t.Errorf("%d probes, want the one that failed", got)
		}
	})
}

// Whoever is woken by the table that says that a node is back must be able to
// ask it.
func TestDemandRightAfterTheReturnCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := healthy(1)
		nodes[0].err = errDown
		cfg := calm(asSources(nodes)...)
		cfg.Interval = 100 * time.Millisecond
		var w *Watcher
		var back int64
		cfg.Probed = func(r Result) {
			if back == 0 && r.Err == nil {
				back = mono.Now()
				w.Demand(r.Node, back)
			}
		}
		w = New(cfg)
		w.Start(t.Context())
		defer w.Close()
		<-w.First()
		nodes[0].set(func(s *source) { s.err = nil })
		time.Sleep(250 * time.Millisecond)
		if sent := nodes[0].probes(); back == 0 || !slices.Contains(sent[2:], back) {
			t.Errorf("it came back at %d and was asked at %v", back, sent)
		}
	})
}

// A node is silent that has been asked for much longer than it usually takes, and is no
// more when it has answered, or failed.
func TestSilent(t *testing.T) {
	t.Parallel()
	for _, far := range []time.Duration{time.Millisecond, 80 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			nodes := healthy(1)
			nodes[0].takes = far
			cfg := calm(asSources(nodes)...)
			cfg.Interval = time.Second
			w := running(t, cfg)
			limit := max(100*time.Millisecond, 4*far)
			silent := func(after time.Duration, want bool) {
				t.Helper()
				time.Sleep(after)
				if got := w.Silent(0, mono.Now()); got != want {
					t.Errorf("%v away: silent %v, want %v", far, got, want)
				}
			}
			for range 10 {
				time.Sleep(time.Second + far)
				if w.Silent(0, mono.Now()) {
					t.Fatal("it is silent although it always answers")
				}
			}
			nodes[0].set(func(s *source) { s.takes = 600 * time.Millisecond })
			n, _ := w.Counts(0)
			for now := n; now == n; now, _ = w.Counts(0) {
				time.Sleep(time.Millisecond)
			}
			silent(limit-5*time.Millisecond, false)
			silent(10*time.Millisecond, true)
			silent(600*time.Millisecond-limit, false) // answered
			if w.Silent(1, mono.Now()) {
				t.Error("a node that is not there is silent")
			}
		})
	}
}
