package route

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate/internal/freshness"
)

// counting counts how often a cluster's table is looked at.
type counting struct {
	*cluster
	looks atomic.Int64
}

func (c *counting) Table() *freshness.Table {
	c.looks.Add(1)
	return c.cluster.Table()
}

// A read that waits, for a replica or in the queue for the primary, sleeps until there is
// something new.
func TestWaitersSleep(t *testing.T) {
	t.Parallel()
	const waiters, news = 200, 50
	for name, slots := range map[string]int{"for a replica": 0, "in the queue": 1} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 2, func(c *cluster) {
				facts := &counting{cluster: c}
				cfg := c.router.cfg
				cfg.Wait = time.Hour
				if slots > 0 {
					cfg.Fallbacks, cfg.FixedFallbacks, cfg.FallbackWait, cfg.Wait = slots, true, time.Hour, -1
				}
				c.router = New(cfg, facts)
				ctx, cancel := context.WithCancel(c.t.Context())
				if slots > 0 {
					if err := c.router.Begin(ctx, &Ticket{Ledger: session(200)}); err != nil {
						t.Fatal(err)
					}
				}
				var gone atomic.Int64
				for range waiters {
					c.others.Go(func() {
						if err := c.router.Begin(ctx, &Ticket{Ledger: session(200)}); err == nil {
							t.Error("the read was answered")
						}
						gone.Add(1)
					})
				}
				synctest.Wait()
				for i := range news {
					c.apply(101+uint64(i), 1)
				}
				// Each look is one at the table's newest state. A read that begins, or
				// gives up, takes a few more.
				if looks, most := facts.looks.Load(), int64(waiters*(news+6)); looks > most || looks < waiters {
					t.Errorf("%d reads looked %d times at %d tables, want at most %d", waiters, looks, news, most)
				}
				before := facts.looks.Load()
				time.Sleep(time.Minute)
				// A waiting read's own timers: the one for its home, and no other.
				if more := facts.looks.Load() - before; more > waiters {
					t.Errorf("they looked %d times while nothing happened", more)
				}
				cancel()
				synctest.Wait()
				if gone.Load() != waiters {
					t.Errorf("%d of %d reads are gone", gone.Load(), waiters)
				}
			})
		})
	}
}
