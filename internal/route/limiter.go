package route

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/tidegatedb/tidegate/internal/mono"
)

const (
	// leastLimit is the lowest limit: one read, for one part in 32 of the time. A hundred
	// processes have three reads on the primary then, all together.
	leastLimit = 1. / 32
	// longestRest bounds a slot's rest, whatever a read has done with it.
	longestRest = int64(30 * time.Second)
)

// limiter bounds the reads that fall back to the primary at one time: when all
// replicas are behind, every read wants it, at the moment at which it is busiest.
// Those that find no slot queue, first come first served, for a bounded time.
//
// How many slots there are follows the work that belongs there: see pressure. Below one
// there is one, which rests after each read, so that the reads of many processes can be
// fewer than the processes.
type limiter struct {
	mu   sync.Mutex
	used int
	// limit is how many slots there are.
	limit float64
	// held is how long the last slot that was given back had been in use, left when that
	// was: the slot of a limit below one rests accordingly.
	held, left int64
	alarm      *time.Timer // for the end of the rest, nil before the first
	queue      list.List   // of *place
	pressure
}

// newLimiter returns one with at most so many slots. With fixed there are always as
// many.
func newLimiter(most int, fixed bool) *limiter {
	l := &limiter{limit: float64(most)}
	l.most, l.fixed = float64(most), fixed
	return l
}

// place is one read's place in the queue. Its channel is closed when it has a slot.
type place struct {
	got   chan struct{}
	el    *list.Element
	since int64
}

// enter takes a slot, or a place in the queue. nil means a slot.
func (l *limiter) enter() *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := mono.Now()
	l.look(now)
	if l.room(now) { // then nobody queues: whatever makes room serves
		l.used++
		return nil
	}
	l.scarce, l.queued = true, now
	p := &place{got: make(chan struct{}), since: now}
	p.el = l.queue.PushBack(p)
	l.serve(now)
	return p
}

// room reports whether there is a free slot.
func (l *limiter) room(now int64) bool {
	return l.used < max(1, int(l.limit)) && (l.limit >= 1 || now >= l.rested())
}

// rested returns when the slot of a limit below one is given again. It is sooner when the
// limit has been raised meanwhile.
func (l *limiter) rested() int64 {
	return l.left + min(int64(float64(l.held)*(1/l.limit-1)), longestRest)
}

// serve gives free slots to those that queue.
func (l *limiter) serve(now int64) {
	for l.queue.Len() > 0 {
		if !l.room(now) {
			l.wake(now)
			return
		}
		l.used++
		close(l.queue.Remove(l.queue.Front()).(*place).got)
	}
}

// wake makes the end of a rest serve those that queue.
func (l *limiter) wake(now int64) {
	if l.used > 0 || now >= l.rested() {
		return // a release will serve
	}
	if left := time.Duration(l.rested() - now); l.alarm == nil {
		l.alarm = time.AfterFunc(left, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.serve(mono.Now())
		})
	} else {
		l.alarm.Reset(left)
	}
}

// leave gives a place up. It reports false if the place has become a slot in the
// same moment: then it is the caller's.
func (l *limiter) leave(p *place) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-p.got:
		return false
	default:
		l.queue.Remove(p.el)
		return true
	}
}

// release gives a slot back that was used since then, or zero if it was not.
func (l *limiter) release(since int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := mono.Now()
	l.look(now)
	l.used--
	l.left, l.held = now, 0
	if since != 0 {
		l.held = now - since
	}
	l.serve(now)
}

// wait waits until the place has become a slot, the table has been replaced (next is
// closed), the limit, counted from when the place was taken, is over, or the
// context is. It reports whether there is a slot, and whether there is time left.
func (p *place) wait(ctx context.Context, next <-chan struct{}, limit time.Duration) (slot, more bool) {
	left := time.Duration(p.since + int64(limit) - mono.Now())
	if left <= 0 {
		return false, false
	}
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case <-p.got:
		return true, true
	case <-next:
		return false, true
	case <-t.C:
		return false, false
	case <-ctx.Done():
		return false, false
	}
}
