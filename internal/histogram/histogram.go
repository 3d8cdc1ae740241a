// Package histogram counts durations so that the tail can be told: in a few
// kilobytes, without a lock, and never too low.
package histogram

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// The durations from one power of two to the next, in microseconds, share `parts`
// buckets of the same width. So the width of a bucket is at most 1/16 of what is in it.
const (
	partBits = 4
	parts    = 1 << partBits
	// buckets are enough for the longest time.Duration: 54 bits of microseconds.
	buckets = (54-partBits-1)*parts + 2*parts
)

// Histogram counts durations. It is safe for concurrent use; the zero Histogram is
// empty. It must not be copied.
type Histogram struct {
	counts [buckets]atomic.Uint64
	max    atomic.Int64
}

// Summary is what a [Histogram] has counted. A quantile is at least what it was, and at
// most a sixteenth or a microsecond more; Max is exact.
type Summary struct {
	Count         uint64
	P50, P99, Max time.Duration
}

// Add counts d; less than zero counts as zero.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	// The maximum first: a quantile that is clipped to it must not be too low.
	for {
		m := h.max.Load()
		if int64(d) <= m || h.max.CompareAndSwap(m, int64(d)) {
			break
		}
	}
	h.counts[bucketOf(d)].Add(1)
}

// Summary returns what was counted so far. What is being added meanwhile may be in it
// or not.
func (h *Histogram) Summary() Summary {
	var counts [buckets]uint64
	var s Summary
	for i := range counts {
		counts[i] = h.counts[i].Load()
		s.Count += counts[i]
	}
	s.Max = time.Duration(h.max.Load())
	if s.Count == 0 {
		s.Max = 0
		return s
	}
	at := func(percent uint64) time.Duration {
		// The nearest rank: the smallest that so many percent do not exceed.
		rank := s.Count/100*percent + (s.Count%100*percent+99)/100
		for i, n := range counts {
			if n >= rank {
				return min(topOf(i), s.Max)
			}
			rank -= n
		}
		return s.Max
	}
	s.P50, s.P99 = at(50), at(99)
	return s
}

// bucketOf returns the bucket of a duration, in microseconds rounded up: those below 32
// have one each.
func bucketOf(d time.Duration) int {
	us := uint64(d / time.Microsecond)
	if d%time.Microsecond != 0 {
		us++
	}
	shift := max(bits.Len64(us)-partBits-1, 0)
	return shift*parts + int(us>>shift)
}

// topOf returns the longest duration in a bucket.
func topOf(i int) time.Duration {
	if i < 2*parts {
		return time.Duration(i) * time.Microsecond
	}
	shift := i/parts - 1
	us := uint64(i-shift*parts+1)<<shift - 1
	if us > uint64(maxDuration/time.Microsecond) {
		return maxDuration
	}
	return time.Duration(us) * time.Microsecond
}

const maxDuration = time.Duration(1<<63 - 1)
