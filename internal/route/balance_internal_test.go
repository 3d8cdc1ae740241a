package route

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// settle makes n sessions that have read at replica 1, while there was no other.
func (c *cluster) settle(n int) []*ledger.Ledger {
	c.lose(2)
	all := make([]*ledger.Ledger, n)
	for i := range all {
		all[i] = ledger.New("main", uint64(i+1), nil)
		all[i].Reached(epoch, tidegate.At(90))
		tk := &Ticket{Ledger: all[i]}
		c.begin(c.t.Context(), tk, outcome{1, tidegate.ReasonCovered, false, 0})
		c.router.Done(tk, mono.Now())
	}
	c.share(all, 400, time.Second)
	c.say(func(_ []freshness.Observation, fails []error) { fails[2] = nil })
	time.Sleep(2 * time.Hour) // a look that nobody asks for
	c.look(1, 2)
	return all
}

// go on with so many reads a second for a time, and return the part that other replicas than 1 get.
func (c *cluster) share(sessions []*ledger.Ledger, rate int, d time.Duration) float64 {
	r := rand.New(rand.NewPCG(1, 2))
	all, two, look := 0, 0, time.Now()
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(time.Second / time.Duration(rate))
		if !time.Now().Before(look) {
			look = time.Now().Add(100 * ms)
			c.look(1, 2)
			c.router.Balance(c.Table(), mono.Now())
		}
		tk := &Ticket{Ledger: sessions[r.IntN(len(sessions))]}
		if err := c.router.Begin(c.t.Context(), tk); err != nil || tk.waited > 0 || tk.Role != tidegate.RoleReplica {
			c.t.Fatalf("%v, waited %v, %v", err, time.Duration(tk.waited), tk.Role)
		}
		if all++; tk.Node != 1 {
			two++
		}
		c.router.Done(tk, mono.Now())
	}
	return float64(two) / float64(all)
}

// A replica that has come back gets its part of sessions that never write, within half a
// minute, and not all at once; and no read waits for it.
func TestReplicaThatReturnsGetsItsPart(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		sessions := c.settle(64)
		if first := c.share(sessions, 400, 2*time.Second); first > .3 {
			t.Errorf("within two seconds it gets %.2f of the reads", first)
		}
		c.share(sessions, 400, 20*time.Second)
		got := c.share(sessions, 400, 10*time.Second)
		if got < .4 || got > .6 {
			t.Errorf("it gets %.2f of the reads", got)
		}
		// Then everybody stays.
		moved, homes := 0, map[*ledger.Ledger]int{}
		for _, l := range sessions {
			homes[l] = l.Home(c.Table())
		}
		c.share(sessions, 400, 10*time.Second)
		for _, l := range sessions {
			if l.Home(c.Table()) != homes[l] {
				moved++
			}
		}
		if moved > 20 {
			t.Errorf("%d of 64 sessions moved although it has its part", moved)
		}
	})
}

// Sessions stay where the other replica lacks something, or is too far away to be
// compared with, or hardly anything is read.
func TestNobodyMoves(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		rate    int
		prepare func(c *cluster)
	}{
		"behind": {400, func(c *cluster) { c.apply(95, 2); c.apply(110, 0, 1) }},
		"far": {400, func(c *cluster) {
			for i := 1; i < 3; i++ {
				n := *c.router.slots[i].node.Load()
				n.Zone = []string{"", "here", "there"}[i]
				c.router.cfg.Zone = "here"
				c.router.Set(i, n)
			}
		}},
		"quiet": {15, func(c *cluster) {
			for i := range c.router.balance.seen { // as it has been for a while
				c.router.balance.seen[i] = c.router.slots[i].flying.all()
			}
		}},
		"slow": {400, func(c *cluster) { c.router.slows.Store(1 << 2) }},
	} {
		inBubble(t, 3, func(c *cluster) {
			sessions := c.settle(16)
			x.prepare(c)
			if name == "behind" {
				for _, l := range sessions {
					l.Reached(epoch, tidegate.At(100))
				}
			}
			if got := c.share(sessions, x.rate, 10*time.Second); got > .02 {
				t.Errorf("%s: the others get %.2f of the reads", name, got)
			}
		})
	}
}

// Nobody leaves a zone for the sake of balance.
func TestNobodyMovesFar(t *testing.T) {
	t.Parallel()
	inBubble(t, 4, func(c *cluster) {
		c.router.cfg.Zone = "here"
		for i := 1; i < 4; i++ {
			n := *c.router.slots[i].node.Load()
			n.Zone = []string{"", "here", "here", "there"}[i]
			c.router.Set(i, n)
		}
		sessions := c.settle(16)
		c.apply(95, 2)
		c.apply(110, 0, 1, 3)
		for _, l := range sessions {
			l.Reached(epoch, tidegate.At(100))
		}
		if got := c.share(sessions, 400, 10*time.Second); got > 0 {
			t.Errorf("others than replica 1 get %.2f of the reads", got)
		}
		if c.router.heavy.Load() == 0 {
			t.Error("replica 1 has not more than its part")
		}
	})
}

// A lone busy session, whose replica has all reads, stays.
func TestLoneSessionStays(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		l := ledger.New("main", 1, nil)
		l.Reached(epoch, tidegate.At(90))
		first := &Ticket{Ledger: l}
		if err := c.router.Begin(c.t.Context(), first); err != nil {
			t.Fatal(err)
		}
		c.router.Done(first, mono.Now())
		all := c.share([]*ledger.Ledger{l}, 400, 10*time.Second)
		if all != 0 && all != 1 {
			t.Errorf("%.2f of its reads are on another replica than the rest", all)
		}
	})
}
