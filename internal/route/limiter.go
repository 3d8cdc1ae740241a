package route

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/tidegatedb/tidegate/internal/mono"
)

// limiter bounds the reads that fall back to the primary at one time: when all
// replicas are behind, every read wants it, at the moment at which it is busiest.
// Those that find no slot queue, first come first served, for a bounded time.
type limiter struct {
	mu    sync.Mutex
	free  int
	queue list.List // of *place
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
	if l.free > 0 { // then nobody queues: release hands slots on
		l.free--
		return nil
	}
	p := &place{got: make(chan struct{}), since: mono.Now()}
	p.el = l.queue.PushBack(p)
	return p
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

// release gives a slot back: to the first in the queue, if there is one.
func (l *limiter) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if el := l.queue.Front(); el != nil {
		close(l.queue.Remove(el).(*place).got)
		return
	}
	l.free++
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
