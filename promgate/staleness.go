package promgate

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidegatedb/tidegate"
)

// staleness is what is counted of the relaxed reads of one class.
type staleness struct {
	seconds prometheus.Observer
	unknown prometheus.Counter
	// budget is the smallest of those that classes of this name have, in nanoseconds;
	// zero where none has one.
	budget atomic.Int64
	recent window
}

// relaxed counts a decision on a relaxed read.
func (c *Collector) relaxed(k *class, d *tidegate.Decision) {
	s := k.staleness.Load()
	if s == nil {
		s = c.meetRelaxed(k)
	}
	if b, anyAge := d.Class.Budget(); !anyAge {
		s.within(int64(b))
	}
	if d.Role != tidegate.RoleReplica {
		return
	}
	if !d.StalenessKnown {
		s.unknown.Inc()
		return
	}
	s.seconds.Observe(d.Staleness.Seconds())
	s.recent.add(c.minute(), d.Staleness)
}

// meetRelaxed makes the children of a class whose first relaxed read this is.
func (c *Collector) meetRelaxed(k *class) *staleness {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := k.staleness.Load(); s != nil {
		return s
	}
	s := &staleness{seconds: c.m.readStaleness.WithLabelValues(k.cluster, k.name), unknown: c.m.stalenessUnknown.WithLabelValues(k.cluster, k.name)}
	k.staleness.Store(s)
	return s
}

// within notes that a class of this name has that budget.
func (s *staleness) within(budget int64) {
	for {
		was := s.budget.Load()
		if was != 0 && was <= budget || s.budget.CompareAndSwap(was, budget) {
			return
		}
	}
}

// minute returns the time in whole minutes since the collector was made.
func (c *Collector) minute() uint64 { return uint64(max(time.Since(c.begun), 0) / time.Minute) }

// collectClasses makes the gauges of the classes that relaxed reads were of.
func (c *Collector) collectClasses(ch chan<- prometheus.Metric) {
	now := c.minute()
	for _, k := range *c.clusters.Load() {
		for _, x := range *k.classes.Load() {
			if x != k.other {
				x.collect(ch, &c.s, now)
			}
		}
		k.other.collect(ch, &c.s, now)
	}
}

func (k *class) collect(ch chan<- prometheus.Metric, d *scraped, minute uint64) {
	s := k.staleness.Load()
	if s == nil {
		return
	}
	// The classes that are "other" have no budget in common.
	if b := s.budget.Load(); b != 0 && !k.rest {
		ch <- prometheus.MustNewConstMetric(d.budget, prometheus.GaugeValue, time.Duration(b).Seconds(), k.cluster, k.name)
	}
	if longest, ok := s.recent.max(minute); ok {
		ch <- prometheus.MustNewConstMetric(d.stalenessMax, prometheus.GaugeValue, longest.Seconds(), k.cluster, k.name)
	}
}

// window is the longest duration of this minute and of the one before. Each has a slot,
// even minutes the first: the minute above, plus one so that an empty slot is of none,
// and below it valueBits of microseconds. It is safe for concurrent use.
type window [2]atomic.Uint64

// valueBits are enough for twelve days; what is longer counts as that.
const valueBits = 40

func (w *window) add(minute uint64, d time.Duration) {
	us := uint64(max(d+time.Microsecond-1, 0) / time.Microsecond) // rounded up, as a bound is
	x := (minute+1)<<valueBits | min(us, 1<<valueBits-1)
	for slot := &w[minute%2]; ; {
		// A minute that is over does not come back: it is the smaller number.
		was := slot.Load()
		if was >= x || slot.CompareAndSwap(was, x) {
			return
		}
	}
}

// max returns the longest duration, and whether there was one.
func (w *window) max(minute uint64) (longest time.Duration, ok bool) {
	for i := range w {
		x := w[i].Load()
		// One more, or two if the minute has ended meanwhile.
		if of := x >> valueBits; of != 0 && of >= minute {
			longest, ok = max(longest, time.Duration(x&(1<<valueBits-1))*time.Microsecond), true
		}
	}
	return longest, ok
}
