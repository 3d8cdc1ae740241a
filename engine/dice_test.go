package engine_test

import (
	"math/rand/v2"
	"sync"
	"time"
)

// dice is a seeded source of chance that goroutines can share.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newDice(seed uint64, of int) *dice {
	return &dice{r: rand.New(rand.NewPCG(seed, uint64(of)))}
}

// n returns a number below n.
func (d *dice) n(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

// float returns a number from 0 up to but not including 1.
func (d *dice) float() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.Float64()
}

func (d *dice) chance(p float64) bool { return d.float() < p }

// upTo returns a duration below d, to the nanosecond: hardly any two things
// happen at one instant, where their order would not be ours to choose.
func (d *dice) upTo(x time.Duration) time.Duration { return time.Duration(1 + d.n(int(x))) }
