package route

import (
	"context"
	"time"

	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/mono"
)

const (
	// A patient session's read may wait longWaits times the class's wait, and
	// longestWaits times that where it is no more than longWait: a short wait says that
	// most reads are not to be late, not that one after a write must not be.
	longWaits, longestWaits = 5, 25
	longWait                = 500 * time.Millisecond
	// soon is a time to catch up that is not worth planning for: asking at once
	// finds it out.
	soon = int64(2 * time.Millisecond)
	// margin is added to the time at which a replica is expected to have caught up:
	// a look that comes a moment too early is one for nothing.
	margin = int64(500 * time.Microsecond)
)

// plan is how long a causal read waits for a replica.
type plan struct {
	made bool
	// patient tells that it is longer than the class says.
	patient bool
	// limit is the longest that it waits, counted from its first wait.
	limit time.Duration
	// due is when the first replica is expected to have caught up, zero when that is
	// soon or not known: looks before are for nothing.
	due int64
	// hopeless tells that this is later than the read may wait.
	hopeless bool
}

// plan makes the plan, or adapts the times of one that is made. The ledger is
// locked.
//
// A replica that is expected to need longer than the class's wait is not waited
// for: the read would be late and go to the primary all the same. But a read on
// the primary asks for its own position of every later one, so a session that reads
// more often than the lag is long would never leave the primary. So the next
// causal read of such a session may wait for as long as a replica is expected to
// need. From then on it stays there until it writes, and the read that follows then
// may wait as long again: one long wait for each write, wherever it is made, and none
// after one that was in vain.
func (r *Router) plan(ctx context.Context, tk *Ticket, t *freshness.Table, n *need, p *plan) {
	now := mono.Now()
	best, eta := r.expected(t, n, now)
	if p.due = eta + margin; eta-now < soon {
		p.due = 0
	}
	if p.made {
		return
	}
	p.made = true
	wait := tk.Class.Wait(r.cfg.Wait)
	p.limit = r.patience(ctx, tk, wait)
	if best == freshness.NoNode || wait <= 0 || time.Duration(eta-now) <= p.limit {
		return
	}
	longest := r.patience(ctx, tk, long(wait))
	if left := time.Duration(eta-now) + time.Duration(margin); tk.Ledger.Patient() && left <= longest {
		// Half as long again, should it take longer than expected.
		p.patient = true
		p.limit = min(longest, left+left/2)
		return
	}
	tk.Ledger.SetPatient(true)
	p.hopeless = true
	// Whether it really takes that long shows at the end of the wait that is not
	// made.
	r.facts.Demand(best, now+int64(p.limit))
}

// long returns how long a patient session's read may wait where others may for wait.
func long(wait time.Duration) time.Duration {
	return max(longWaits*wait, min(longestWaits*wait, longWait))
}

// patience returns how long a read that may wait so long may still do so for replicas,
// after what its attempts have waited.
func (r *Router) patience(ctx context.Context, tk *Ticket, wait time.Duration) time.Duration {
	return clip(ctx, wait-time.Duration(tk.waited))
}

// expected returns which usable replica is expected to cover the session's mark
// first, and when.
func (r *Router) expected(t *freshness.Table, n *need, now int64) (best int, eta int64) {
	best = freshness.NoNode
	since := r.facts.Since(t.Epoch, n.mark)
	for i := range t.Nodes {
		x := &t.Nodes[i]
		if !x.Usable || n.exclude>>uint(i)&1 != 0 {
			continue
		}
		at := since + x.Delay
		if x.Applied.Covers(n.mark) {
			at = now // it lacks a proof, not time
		}
		if best == freshness.NoNode || at < eta {
			best, eta = i, at
		}
	}
	return best, eta
}
