package pairs

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// noisy is what operations on a busy machine cost: two peaks that are not far
// from equal, a long right side, and once in a while milliseconds.
type noisy struct {
	r        *rand.Rand
	hiccups  float64 // the part of the operations that has one
	fastPart float64
}

func newNoisy(seed uint64) *noisy {
	return &noisy{r: rand.New(rand.NewPCG(seed, 1)), hiccups: 0.01, fastPart: 0.5}
}

func (n *noisy) cost() float64 {
	v := 60_000.
	if n.r.Float64() > n.fastPart {
		v = 85_000
	}
	v *= math.Exp(0.15 * n.r.NormFloat64())
	if n.r.Float64() < n.hiccups {
		v += 4e6 * n.r.ExpFloat64()
	}
	return v
}

// synthetic compares an arm that costs what the noise says with one that costs
// factor times as much and extra on top.
func synthetic(t *testing.T, n *noisy, count int, factor, extra float64) Run {
	t.Helper()
	var last float64
	r, err := Compare(t.Context(), Plan{Pairs: count, Collect: true, Measure: func(a Arm) (float64, error) {
		err := a()
		return last, err
	}},
		func() error { last = n.cost(); return nil },
		func() error { last = n.cost()*factor + extra; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Hiccups of milliseconds decide nothing: arms that are alike come out alike,
// and a difference of a fiftieth is found, whether it is a part or a sum.
func TestCompareFindsDifferencesInNoise(t *testing.T) {
	t.Parallel()
	var plain []float64
	for seed := range uint64(20) {
		same := synthetic(t, newNoisy(seed), 10_000, 1, 0)
		part := synthetic(t, newNoisy(seed), 10_000, 1.02, 0)
		sum := synthetic(t, newNoisy(seed), 10_000, 1, 0.02*72_500)
		for _, c := range []struct {
			what      string
			got, want float64
		}{
			{"no difference", same.Ratio, 1}, {"its control", same.Control, 1},
			{"a part more", part.Ratio, 1.02}, {"its control", part.Control, 1},
			{"a sum more", sum.Ratio, 1.02}, {"its control", sum.Control, 1},
		} {
			if math.Abs(c.got-c.want) > 0.01 {
				t.Errorf("seed %d: %s: %v, want %v", seed, c.what, c.got, c.want)
			}
		}
		// What the same noise does to the ratio of the means.
		n := newNoisy(seed)
		var a, b float64
		for range 20_000 {
			a += n.cost()
			b += n.cost()
		}
		plain = append(plain, b/a)
	}
	if slices.Max(plain)-slices.Min(plain) < 0.05 {
		t.Errorf("the noise is too tame to show anything: the ratios of the means are %v", plain)
	}
}

// Over many runs the estimate is right on average, also where the middle of the
// costs lies between two peaks: there the ratio of the medians scatters.
func TestRatioIsUnbiasedBetweenPeaks(t *testing.T) {
	t.Parallel()
	var ours, medians []float64
	for seed := range uint64(100) {
		n := newNoisy(seed)
		a, b := make([]float64, 4000), make([]float64, 4000)
		for i := range a {
			a[i], b[i] = n.cost(), n.cost()
		}
		medians = append(medians, Median(b)/Median(a))
		ours = append(ours, Ratio(a, b))
	}
	spread := func(x []float64) float64 { return slices.Max(x) - slices.Min(x) }
	if m := Mean(ours); math.Abs(m-1) > 0.002 {
		t.Errorf("arms that are alike give %v on average", m)
	}
	if spread(ours) > 0.8*spread(medians) {
		t.Errorf("scatters by %v, the ratio of medians by %v", spread(ours), spread(medians))
	}
}

// The machine may become slower and slower.
func TestCompareIsBlindToDrift(t *testing.T) {
	t.Parallel()
	v := 1000.
	r, err := Compare(t.Context(), Plan{Pairs: 100, Collect: true, Measure: func(a Arm) (float64, error) {
		v *= 1.005
		return v, a()
	}}, nothing, nothing)
	if err != nil || math.Abs(r.Ratio-1) > 0.001 || math.Abs(r.Control-1) > 0.001 {
		t.Errorf("%+v, %v", r, err)
	}
}

func nothing() error { return nil }

func TestCompareOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		collect bool
		want    string
	}{
		// The first block after a collection warms up.
		{false, strings.Repeat("abba", 8)},
		{true, strings.Repeat("abba", 4)},
	} {
		var did strings.Builder
		arm := func(name string) Arm { return func() error { did.WriteString(name); return nil } }
		measured := 0
		_, err := Compare(t.Context(), Plan{Pairs: 4, Collect: c.collect, Measure: func(a Arm) (float64, error) {
			measured++
			return 1, a()
		}}, arm("a"), arm("b"))
		if err != nil || did.String() != c.want || measured != 16 {
			t.Errorf("collect %v: %s with %d measured, %v; want %s with 16", c.collect, did.String(), measured, err, c.want)
		}
	}
}

// Which operation counts for what: the second arm never counts for the control.
func TestCompareSortsSamples(t *testing.T) {
	t.Parallel()
	r, err := Compare(t.Context(), Plan{Pairs: 100, Measure: func(a Arm) (float64, error) {
		if errors.Is(a(), errB) {
			return 3, nil
		}
		return 2, nil
	}, Collect: true}, nothing, func() error { return errB })
	if want := (Run{Ratio: 1.5, Control: 1, First: 2}); err != nil || r != want {
		t.Errorf("%+v, %v; want %+v", r, err, want)
	}
}

var errB = errors.New("b")

func TestCompareEnds(t *testing.T) {
	t.Parallel()
	if _, err := Compare(t.Context(), Plan{Pairs: 10}, nothing, func() error { return errB }); !errors.Is(err, errB) {
		t.Errorf("an arm's error: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	_, err := Compare(ctx, Plan{Pairs: 1_000_000}, nothing, func() error {
		if n++; n == 10 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || n > 20 {
		t.Errorf("a cancelled context: %v after %d operations", err, n)
	}
}

func TestAverages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		x                     []float64
		median, mean, trimmed float64
	}{
		{[]float64{3}, 3, 3, 3},
		{[]float64{4, 1}, 2.5, 2.5, 2.5},
		{[]float64{9, 1, 2}, 2, 4, 4},
		{[]float64{1000, 1, 2, 3, 4, 5, 6, 7, 8, -1000}, 4.5, 3.6, 4.5},
	} {
		if got := [3]float64{Median(c.x), Mean(c.x), TrimmedMean(slices.Clone(c.x))}; got != [3]float64{c.median, c.mean, c.trimmed} {
			t.Errorf("%v: median, mean and trimmed mean %v", c.x, got)
		}
	}
	if got := Median(nil); !math.IsNaN(got) {
		t.Errorf("the median of nothing is %v", got)
	}
}
