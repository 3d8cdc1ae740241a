package pairs

import (
	"math"
	"slices"
)

// samples are what the operations of one run cost: the first arm's in a and c, the
// second one's in b and d.
type samples struct{ a, b, c, d []float64 }

func newSamples(blocks int) *samples {
	make1 := func() []float64 { return make([]float64, 0, 4*blocks) }
	return &samples{make1(), make1(), make1(), make1()}
}

func (s *samples) run() Run {
	control := Ratio(s.a, s.c)
	first, second := slices.Concat(s.a, s.c), slices.Concat(s.b, s.d)
	return Run{Ratio: Ratio(first, second), Control: control, First: TrimmedMean(first)}
}

// trim is the part of the samples that is left out at each end.
const trim = 0.1

// Ratio is the typical cost of b relative to that of a: the ratio of their
// trimmed means.
//
// The mean would be decided by a few operations that the scheduler put off for
// milliseconds. The median is not, but where costs have two peaks, as those of a
// loopback round trip have (the peer was still awake, or had to be woken), and
// the middle lies between them, the median jumps from one to the other for next
// to no reason. A trimmed mean moves with the shares of the peaks instead. It
// leaves the same part out of both arms, so that arms that are alike give 1 on
// average, whatever their distribution. The median of the ratios of the single
// pairs is none of that: it weighs the noise of two single operations.
//
// What it cannot see is a cost that only a tenth of the operations have or
// fewer. Whole slices of time show that: see the throughput.
func Ratio(a, b []float64) float64 { return TrimmedMean(b) / TrimmedMean(a) }

// TrimmedMean is the mean without the largest and the smallest tenth. It sorts
// the samples; without any it is not a number.
func TrimmedMean(x []float64) float64 {
	slices.Sort(x)
	cut := int(float64(len(x)) * trim)
	return Mean(x[cut : len(x)-cut])
}

// Median is the middle value, or the mean of the two in the middle. Without any
// it is not a number.
func Median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	n := len(x)
	if n == 0 {
		return math.NaN()
	}
	return (x[(n-1)/2] + x[n/2]) / 2
}

// Mean is the sum of the values divided by their number. Without any it is not a
// number.
func Mean(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}
