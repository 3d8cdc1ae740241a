package record

import "sync/atomic"

// Live counts operations as they end, for whoever watches the run. It is safe
// for concurrent use; the counts of a moment need not fit together exactly.
type Live struct {
	Reads, Writes, Replica        atomic.Int64
	Stale, Backwards              atomic.Int64
	Waits, Fallbacks, Shed, Erred atomic.Int64
}

func (l *Live) count(op *Op) {
	add := func(c *atomic.Int64, yes bool) {
		if yes {
			c.Add(1)
		}
	}
	a := &op.Answer
	add(&l.Shed, a.Shed)
	add(&l.Erred, op.Err != nil && !a.Shed)
	if op.Err != nil {
		return
	}
	if op.Kind == Write {
		l.Writes.Add(1)
		return
	}
	l.Reads.Add(1)
	add(&l.Replica, a.Replica)
	add(&l.Waits, a.Waited)
	add(&l.Fallbacks, a.Fallback)
	add(&l.Stale, op.Broke(ReadYourWrites) || op.Broke(ReadsAfterEvents))
	add(&l.Backwards, op.Broke(MonotonicReads))
}
