package route

import (
	"context"
	"math/bits"
	"time"

	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// waiter is one read's waiting: it spaces its asks and keeps its time.
type waiter struct {
	r     *Router
	start int64
	asks  int
	timer *time.Timer
	// patience, if not zero, ends the next wait early, to ask somebody else too.
	patience time.Duration
	// due, if not zero, is before when only the first ask makes sense.
	due int64
}

// spent returns the time since the first wait.
func (w *waiter) spent() time.Duration {
	if w.start == 0 {
		return 0
	}
	return time.Duration(mono.Now() - w.start)
}

func (w *waiter) stop(tk *Ticket) {
	if w.start != 0 {
		tk.waited += int64(w.spent())
		w.timer.Stop()
	}
}

// waitPrimary waits for a table that may have a primary: every node might be it.
func (w *waiter) waitPrimary(ctx context.Context, t *freshness.Table, limit time.Duration) bool {
	return w.wait(ctx, t, &ledger.Asks{Nodes: 1<<uint(len(t.Nodes)) - 1}, limit)
}

// wait asks for what is missing and waits for a newer table than t. It returns
// false when limit, counted from the first wait, or the context is over.
func (w *waiter) wait(ctx context.Context, t *freshness.Table, asks *ledger.Asks, limit time.Duration) bool {
	if limit <= 0 {
		return false
	}
	now := mono.Now()
	if w.start == 0 {
		w.start = now
		w.r.stats.Waits.Add(1)
		w.timer = time.NewTimer(limit)
	}
	left := w.start + int64(limit) - now
	if left <= 0 {
		return false
	}
	at := now
	if w.asks >= fastAsks {
		at += int64(min(firstPause<<min(w.asks-fastAsks, 10), longestPause))
	}
	if w.asks > 0 {
		at = max(at, w.due)
	}
	w.asks++
	if len(asks.Pending) > 0 {
		// Before the probe that is to answer it.
		w.r.facts.WantSettled(asks.Pending)
	}
	for m := asks.Nodes; m != 0; m &= m - 1 {
		w.r.facts.Demand(bits.TrailingZeros64(m), at)
	}
	pause := time.Duration(left)
	early := w.patience != 0 && w.patience < pause
	if early {
		pause = w.patience
	}
	w.timer.Reset(pause)
	select {
	case <-t.Next():
		return true
	case <-w.timer.C:
		return early
	case <-ctx.Done():
		return false
	}
}
