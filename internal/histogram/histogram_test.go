package histogram_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/internal/histogram"
)

const (
	us = time.Microsecond
	ms = time.Millisecond
)

func of(all ...time.Duration) histogram.Summary {
	var h histogram.Histogram
	for _, d := range all {
		h.Add(d)
	}
	return h.Summary()
}

// times returns d so many times.
func times(n int, d time.Duration) []time.Duration { return slices.Repeat([]time.Duration{d}, n) }

// The buckets that these are in are written out: 50 ms is in the one from 49,152 to
// 51,199 us, which is the 25th of 2,048 us.
func TestSummary(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		of   []time.Duration
		want histogram.Summary
	}{
		{"nothing", nil, histogram.Summary{}},
		{"nothing but zero", times(3, 0), histogram.Summary{Count: 3}},
		{"less than zero", times(1, -time.Hour), histogram.Summary{Count: 1}},
		{"what has a bucket of its own", []time.Duration{7 * us, 31 * us, 8 * us}, histogram.Summary{Count: 3, P50: 8 * us, P99: 31 * us, Max: 31 * us}},
		{"one", times(1, 50*ms), histogram.Summary{Count: 1, P50: 50 * ms, P99: 50 * ms, Max: 50 * ms}},
		{"a nanosecond more than a bucket", []time.Duration{31*us + 1, time.Second}, histogram.Summary{Count: 2, P50: 33 * us, P99: time.Second, Max: time.Second}},
		{"half and half", append(times(50, 50*ms), times(50, 3*time.Second)...), histogram.Summary{Count: 100, P50: 51_199 * us, P99: 3 * time.Second, Max: 3 * time.Second}},
		{"one of a hundred is long", append(times(99, 50*ms), time.Hour), histogram.Summary{Count: 100, P50: 51_199 * us, P99: 51_199 * us, Max: time.Hour}},
		{"two of a hundred are", append(times(98, 50*ms), time.Minute, time.Hour), histogram.Summary{Count: 100, P50: 51_199 * us, P99: 60_817_407 * us, Max: time.Hour}},
		{"the longest there is", times(2, 1<<63-1), histogram.Summary{Count: 2, P50: 1<<63 - 1, P99: 1<<63 - 1, Max: 1<<63 - 1}},
	} {
		if got := of(tt.of...); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// Of durations of all magnitudes no quantile is too low, and none more than a sixteenth
// and a microsecond too high.
func TestAccuracy(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		all := make([]time.Duration, 1+r.IntN(300))
		magnitude := 1 + r.IntN(63)
		for i := range all {
			all[i] = time.Duration(r.Uint64() >> (64 - 1 - r.IntN(magnitude)))
		}
		s := of(all...)
		slices.Sort(all)
		n := len(all)
		for _, q := range []struct {
			name      string
			got, want time.Duration
		}{
			{"p50", s.P50, all[(n*50+99)/100-1]}, {"p99", s.P99, all[(n*99+99)/100-1]},
		} {
			if q.got < q.want || q.got-q.want > q.want/16+us {
				t.Fatalf("%s of %d is %v, want %v to a sixteenth more", q.name, n, q.got, q.want)
			}
		}
		if s.Max != all[n-1] || s.Count != uint64(n) {
			t.Fatalf("%+v, want %d and the maximum %v", s, n, all[n-1])
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	var h histogram.Histogram
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 1000 {
				h.Add(time.Duration(i*1000+j+1) * ms)
				if s := h.Summary(); s.P50 > s.P99 || s.P99 > s.Max {
					t.Errorf("%+v", s)
				}
			}
		})
	}
	wg.Wait()
	if s := h.Summary(); s.Count != 4000 || s.Max != 4*time.Second {
		t.Errorf("%+v", s)
	}
}

func TestAddDoesNotAllocate(t *testing.T) {
	var h histogram.Histogram
	if n := testing.AllocsPerRun(100, func() { h.Add(ms) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAdd(b *testing.B) {
	var h histogram.Histogram
	for b.Loop() {
		h.Add(80 * ms)
	}
}
