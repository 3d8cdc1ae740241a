// Package pairs compares two ways of doing one thing whose costs differ by less
// than the machine's noise.
//
// The ways are the arms of a comparison. They take turns, operation by
// operation, so that whatever slows the machine down meets both. The first one is
// also compared with itself in the same loop: what it seems to cost more or less
// there is what this run cannot tell from nothing.
package pairs

import (
	"context"
	"runtime"
	"runtime/debug"
	"slices"
	"time"
)

// Arm does one operation of an arm.
type Arm func() error

// Measure does one operation, or several, and returns what it cost: a time, or
// a rate.
type Measure func(Arm) (float64, error)

// Run is one run of a comparison.
type Run struct {
	// Ratio is the second arm's cost relative to the first one's.
	Ratio float64
	// Control is the same for the first arm against itself.
	Control float64
	// First is what an operation of the first arm typically cost.
	First float64
}

// Plan says how long a run is.
type Plan struct {
	// Pairs is the number of pairs of the control. The comparison has twice as many.
	Pairs int
	// Measure is how an operation is measured. Nil means [Nanoseconds].
	Measure Measure
	// Collect leaves garbage collection to the runtime. It is for measures that
	// are long enough for an arm to pay for its own garbage.
	Collect bool
}

// Nanoseconds measures one operation by the clock.
func Nanoseconds(a Arm) (float64, error) {
	start := time.Now()
	err := a()
	return float64(time.Since(start)), err
}

// betweenCollections is how many blocks of sixteen operations go by between two
// collections of a run that does not leave them to the runtime: some megabytes
// of garbage.
const betweenCollections = 128

// Compare does one run: blocks of ABBA CDDC CDDC ABBA, where C is A once more and D
// is B. The comparison is of A and C with B and D, its control of A with C. Each arm
// comes as often first as last, so that a drift weighs on both alike; as often
// behind itself as behind the other one; and as often altogether, so that neither
// finds the caches warmer.
//
// A collection of garbage would hit whichever operation comes next, not the one
// that made the garbage. So there is none in the timed parts: what an arm
// allocates has to be counted, not timed. The first block after a collection is
// not counted.
func Compare(ctx context.Context, p Plan, a, b Arm) (Run, error) {
	measure := p.Measure
	if measure == nil {
		measure = Nanoseconds
	}
	if !p.Collect {
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
	}
	blocks := max(1, p.Pairs/4)
	s := newSamples(blocks)
	type turn struct {
		arm  Arm
		into *[]float64
	}
	abba := []turn{{a, &s.a}, {b, &s.b}, {b, &s.b}, {a, &s.a}}
	cddc := []turn{{a, &s.c}, {b, &s.d}, {b, &s.d}, {a, &s.c}}
	order := slices.Concat(abba, cddc, cddc, abba)
	for i := 0; i < blocks; i++ {
		if err := ctx.Err(); err != nil {
			return Run{}, err
		}
		if i%betweenCollections == 0 && !p.Collect {
			runtime.GC()
			for _, o := range order {
				if err := o.arm(); err != nil {
					return Run{}, err
				}
			}
		}
		for _, o := range order {
			v, err := measure(o.arm)
			if err != nil {
				return Run{}, err
			}
			*o.into = append(*o.into, v)
		}
	}
	return s.run(), nil
}
