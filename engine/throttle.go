package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// lookGap is how long after the look at the primary the replicas are asked for
// theirs: one that has applied what the primary had is as young as that look.
const lookGap = int64(2 * time.Millisecond)

// Throttle holds a bulk job back while replicas are too far behind: the job calls
// [Throttle.Wait] before each batch. It is safe for concurrent use: the workers of one
// job share one, and with it the looks that they ask for, and start again together.
// Between two calls it costs nothing; there is nothing to close.
type Throttle struct {
	core *Core
	cfg  ThrottleConfig
	// gap is the least time between two asks for looks, pace that between two of the same
	// call.
	gap, pace int64

	passed, waits, gaveUp atomic.Uint64
	waited                atomic.Int64

	mu    sync.Mutex
	held  bool  // the upper mark was passed, and the lower one not yet
	asked int64 // when looks were last asked for
}

// NewThrottle returns a throttle for one bulk job. Errors wrap [tidegate.ErrConfig]
// and name the field.
func (c *Core) NewThrottle(cfg ThrottleConfig) (*Throttle, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	th := &Throttle{core: c, cfg: cfg}
	th.gap, th.pace = cfg.pace(c.cfg.DemandRate)
	return th, nil
}

// Wait returns nil when the replicas' lag permits the next batch: at once if what is
// known proves that, else as soon as it does. It asks for looks: at once when it is
// called, and each 10 to 50ms while it waits, all workers together within a quarter of
// [Config.DemandRate].
//
// Nodes count like this:
//
//   - A replica that reads may go to counts with its staleness and lag. What is unknown
//     is above every mark.
//   - A node that does not answer probes is above every mark for
//     [ThrottleConfig.AbsentAfter], and does not count afterwards, until it answers: a
//     replica that comes back far behind holds the job until it has caught up.
//   - One that answers, and that no read goes to, does not count: it is of another
//     history, or was the primary before.
//   - Where none counts Wait returns nil: nobody is behind. So it is on a cluster of one
//     node, at once.
//   - While no primary is known nothing can be proven, and no batch written: Wait waits.
//
// When [ThrottleConfig.MaxWait] is over it fails with a [*LaggingError], which wraps
// [tidegate.ErrLagging]. Other errors are [tidegate.ErrClosed] or wrap the context's.
func (th *Throttle) Wait(ctx context.Context) error {
	c := th.core
	begun := mono.Now()
	var since int64 // when the looks were asked for that this call waits for
	var timer *time.Timer
	var seen sight
	defer func() {
		if since != 0 {
			timer.Stop()
			th.waited.Add(mono.Now() - begun)
		}
	}()
	for {
		if err := ctx.Err(); err != nil {
			if since != 0 {
				// Not wrapped: whoever goes on when replicas lag must not do so here.
				err = fmt.Errorf("%w; %s", err, th.lagging(&seen, begun).Error())
			}
			return err
		}
		if c.Closed() {
			return tidegate.ErrClosed
		}
		t, now := c.watcher.Table(), mono.Now()
		var pass bool
		if seen, pass = th.look(t, now, since); pass {
			th.passed.Add(1)
			return nil
		}
		end := int64(math.MaxInt64)
		if th.cfg.MaxWait > 0 {
			end = begun + int64(th.cfg.MaxWait)
		}
		if now >= end {
			th.gaveUp.Add(1)
			return th.lagging(&seen, begun)
		}
		every := th.pace
		if since == 0 {
			every = th.gap
		}
		asked := th.ask(t, now, every)
		pause := time.Duration(min(asked+every, end) - now)
		if since == 0 {
			since = asked
			th.waits.Add(1)
			timer = time.NewTimer(pause)
		} else {
			timer.Reset(pause)
		}
		select {
		case <-t.Next():
		case <-timer.C:
		case <-ctx.Done():
		case <-c.closed:
		}
	}
}

// look says what the table says now of the replica that decides, and whether the
// next batch may go.
func (th *Throttle) look(t *freshness.Table, now, since int64) (sight, bool) {
	th.mu.Lock()
	defer th.mu.Unlock()
	nodes, all := 0, make([]sight, 0, 8)
	for i := range t.Nodes {
		if th.core.members.get(i) == nil {
			continue
		}
		nodes++
		if s, counts := th.sight(t, i, now, since); counts {
			all = append(all, s)
		}
	}
	switch {
	case nodes > 1 && t.Primary == freshness.NoNode:
		return sight{node: freshness.NoNode}, false
	case nodes < 2 || len(all) == 0:
		th.held = false
		return sight{}, true
	}
	slices.SortStableFunc(all, func(a, b sight) int {
		switch {
		case a.strain < b.strain:
			return -1
		case a.strain > b.strain:
			return 1
		}
		return 0
	})
	s := all[(len(all)*th.cfg.Percentile+99)/100-1]
	if s.strain <= 1 {
		th.held = false
		return s, true
	}
	// What is old only because nobody has looked for a while is above the mark, and
	// not a reason to wait for the lower one.
	th.held = th.held || sure(t, &s, since)
	return s, false
}

// sure reports whether the looks that were asked for have been answered, or will not
// be.
func sure(t *freshness.Table, s *sight, since int64) bool {
	p, n := &t.Nodes[t.Primary], &t.Nodes[s.node]
	return n.Err != nil || since != 0 && (p.Err != nil || p.Sent >= since) && n.Sent >= since+lookGap
}

// ask asks for looks, unless somebody has done so in the time before, and returns when
// they were asked for.
func (th *Throttle) ask(t *freshness.Table, now, every int64) int64 {
	th.mu.Lock()
	defer th.mu.Unlock()
	if th.asked != 0 && now < th.asked+every {
		return th.asked
	}
	th.asked = now
	for i := range t.Nodes {
		switch {
		case t.Primary == freshness.NoNode || t.Primary == i:
			th.core.watcher.Demand(i, now)
		case t.Nodes[i].Usable:
			th.core.watcher.Demand(i, now+lookGap)
		}
	}
	return now
}

// Stats returns counters since the throttle was made.
func (th *Throttle) Stats() ThrottleStats {
	return ThrottleStats{Passed: th.passed.Load(), Waits: th.waits.Load(), GaveUp: th.gaveUp.Load(), Waited: time.Duration(th.waited.Load())}
}

// ThrottleStats counts what a [Throttle] did.
type ThrottleStats struct {
	// Passed counts the batches that were let go.
	Passed uint64
	// Waits counts the calls that had to wait, if only for a newer look.
	Waits uint64
	// GaveUp counts those whose MaxWait was over.
	GaveUp uint64
	// Waited is for how long they waited, all workers added. A wait counts when it is over.
	Waited time.Duration
}
