package route

import (
	"errors"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// sharing gives the cluster's router a share that may fall back, within a second.
func sharing(c *cluster, share float64) {
	cfg := c.router.cfg
	cfg.FallbackShare, cfg.FallbackWindow, cfg.Wait = share, time.Second, -1
	c.router = New(cfg, c)
}

// reads makes n reads of the class for sessions that require a position, and returns the
// last one's error.
func (c *cluster) reads(n int, class tidegate.Class, mark uint64) (err error) {
	for range n {
		tk := &Ticket{Class: class, Ledger: session(mark)}
		if err = c.router.Begin(c.t.Context(), tk); err == nil {
			c.router.Done(tk, mono.Now())
		}
	}
	return err
}

// news judges the share and checks what comes of it.
func (c *cluster) news(changed, high bool, share float64) {
	c.t.Helper()
	n := c.router.JudgeShare(c.Table(), mono.Now())
	is, now := c.router.FallbackShare()
	if n.Changed != changed || n.High != high || now != high || n.Share != share || is != share {
		c.t.Errorf("changed %v, high %v (%v), share %v (%v); want %v, %v, %v", n.Changed, n.High, now, n.Share, is, changed, high, share)
	}
}

func TestFallbackShare(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		sharing(c, .5)
		c.news(false, false, 0)
		c.reads(20, tidegate.Causal, 100) // replicas have it
		c.reads(5, strong, 200)           // they are not on the primary for want of a replica
		c.reads(20, tidegate.Causal, 200)
		c.news(false, false, .5)
		c.reads(1, tidegate.Causal, 200)
		c.news(true, true, 21./41)
		c.news(false, true, 21./41)

		// What is not told to shed does not.
		if err := c.reads(1, tidegate.Causal, 200); err != nil {
			t.Error(err)
		}
		first := tidegate.NewCausal("first", "test", tidegate.ShedFirst())
		if err := c.reads(1, first, 200); !errors.Is(err, tidegate.ErrOverloaded) {
			t.Errorf("a class that is shed first: %v", err)
		}
		if err := c.reads(1, first, 100); err != nil {
			t.Errorf("a replica has what it needs: %v", err)
		}
		c.news(false, true, 23./44)
		time.Sleep(5 * time.Second)
		relaxed := tidegate.Relaxed("relaxed", "test", tidegate.Within(time.Second), tidegate.ShedFirst(), tidegate.StaleWhenShed())
		tk := &Ticket{Class: relaxed}
		if err := c.router.Begin(c.t.Context(), tk); err != nil || tk.reason != tidegate.ReasonStale || !c.router.Decision(tk).Stale {
			t.Errorf("a class that takes a stale answer: %v, %v", err, c.router.Decision(tk))
		}
		c.router.Done(tk, mono.Now())
		if s := c.router.Stats(); s.Shed.Load() != 2 || s.Queued.Load() != 0 {
			t.Errorf("%d were sent away, %d queued", s.Shed.Load(), s.Queued.Load())
		}

		// All of it is longer ago than the window, but for what has been since. What is
		// sent away wanted to fall back, too: otherwise shedding would end itself.
		c.reads(60, tidegate.Causal, 100)
		c.reads(20, first, 200)
		c.news(false, true, 21./81)
		time.Sleep(2 * time.Second)
		c.news(true, false, 0)
		if err := c.reads(1, first, 200); err != nil {
			t.Errorf("when it is over: %v", err)
		}
	})
}

// Two reads in the night are no trend, and some do not want to be told.
func TestFallbackShareOfFew(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(c *cluster) {
		sharing(c, .5)
		c.reads(shareEnough-1, tidegate.Causal, 200)
		c.news(false, false, 1)
		c.reads(1, tidegate.Causal, 200)
		c.news(true, true, 1)
		sharing(c, 1)
		c.reads(100, tidegate.Causal, 200)
		c.news(false, false, 0)
	})
}

// The window slides: old parts leave it one by one.
func TestFallbackShareSlides(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(c *cluster) {
		sharing(c, .9)
		c.news(false, false, 0)
		for range 10 { // in each tenth of a second 3 of 10
			c.reads(7, tidegate.Causal, 100)
			c.reads(3, tidegate.Causal, 200)
			c.news(false, false, .3)
			time.Sleep(100 * ms)
		}
		// Five tenths of a second without a read, then only ones that fall back.
		time.Sleep(400 * ms)
		c.reads(15, tidegate.Causal, 200)
		c.news(false, false, 30./65)
	})
}

// What is sent away and answered stale wanted to fall back, and counts once.
func TestFallbackShareOfStaleAnswers(t *testing.T) {
	t.Parallel()
	inBubble(t, 2, func(c *cluster) {
		sharing(c, .5)
		c.router.cfg.Fallbacks = 1
		c.router.fallbacks = newLimiter(1, true)
		c.router.fallbacks.used = 1
		time.Sleep(time.Minute)
		c.reads(50, tidegate.Relaxed("r", "test", tidegate.Within(time.Second), tidegate.StaleWhenShed()), 0)
		c.news(true, true, 1)
	})
}
