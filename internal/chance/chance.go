// Package chance is the randomness of routing: spread intervals and broken ties.
// Tests can seed it, so that a simulated run can be repeated.
package chance

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// seeded is the source that a test has set; nil outside tests.
var seeded atomic.Pointer[source]

type source struct {
	mu sync.Mutex
	r  *rand.Rand
}

// Int64N returns a number from 0 to n-1.
func Int64N(n int64) int64 {
	if s := seeded.Load(); s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.r.Int64N(n)
	}
	return rand.Int64N(n)
}

// Float64 returns a number from 0 up to but not including 1.
func Float64() float64 {
	if s := seeded.Load(); s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.r.Float64()
	}
	return rand.Float64()
}

// Uint64 returns a number of 64 bits.
func Uint64() uint64 {
	if s := seeded.Load(); s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.r.Uint64()
	}
	return rand.Uint64()
}

// Seed makes all randomness of the process follow from the seed for the rest of
// the test. Tests that do so must not run in parallel with others.
func Seed(t interface{ Cleanup(func()) }, seed uint64) {
	seeded.Store(&source{r: rand.New(rand.NewPCG(seed, 0))})
	t.Cleanup(func() { seeded.Store(nil) })
}
