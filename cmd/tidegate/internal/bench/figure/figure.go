// Package figure is what a measurement found: a value, what it should be, how
// far it can be trusted, and what follows from that.
package figure

import (
	"fmt"
	"math"
	"slices"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/bench/pairs"
)

// Verdict is what follows from a figure.
type Verdict string

// The verdicts.
const (
	// Passed: the figure keeps its target.
	Passed Verdict = "passed"
	// Failed: it does not.
	Failed Verdict = "failed"
	// Inconclusive: the control differs from nothing by more than it may, or too
	// little was measured. The figure says neither.
	Inconclusive Verdict = "inconclusive"
	// Reported: the figure has no target.
	Reported Verdict = "reported"
	// Broken: it could not be measured, or not as it has to be.
	Broken Verdict = "error"
)

// Units of figures.
const (
	Times     = "ratio"
	Core      = "of one core"
	PerSecond = "1/s"
	Nanos     = "ns"
	Bytes     = "bytes"
	Count     = "allocations"
)

// Figure is one of them. The names and the order of its fields are what --json
// prints, and other tools read them.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Target is what the value should be, nil if it is only reported.
	Target *Target `json:"target"`
	// Control is what the same measurement finds where there is no difference,
	// nil where there can be none.
	Control *float64 `json:"control"`
	Verdict Verdict  `json:"verdict"`
	// Runs and ControlRuns are what the value and the control are the median of.
	Runs        []float64 `json:"runs"`
	ControlRuns []float64 `json:"control_runs,omitempty"`
	// Pairs is the number of pairs of each run.
	Pairs int `json:"pairs,omitempty"`
	// Note is what a reader must know besides.
	Note string `json:"note,omitempty"`

	band    band
	lacking string // why no verdict can rest on it
}

// Target is a limit of a value.
type Target struct {
	Limit float64
	// Below excludes the limit itself.
	Below bool
}

// AtMost is a target that includes its limit.
func AtMost(limit float64) *Target { return &Target{Limit: limit} }

// Under is a target that does not.
func Under(limit float64) *Target { return &Target{Limit: limit, Below: true} }

// String returns the target as a comparison.
func (t *Target) String() string {
	if t.Below {
		return fmt.Sprintf("< %v", t.Limit)
	}
	return fmt.Sprintf("<= %v", t.Limit)
}

// MarshalText makes a target the same text in JSON.
func (t *Target) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

func (t *Target) keeps(v float64) bool { return v < t.Limit || !t.Below && v == t.Limit }

// band is where a control may be.
type band struct{ low, high float64 }

// A comparison's control is off by a hundredth at most.
var ratioBand = band{0.99, 1.01}

func (b band) has(v float64) bool { return v >= b.low && v <= b.high }

// Ratio is the figure of a comparison: the medians of its runs.
func Ratio(name string, target *Target, pairsOf int, runs []pairs.Run) Figure {
	f := Figure{Name: name, Unit: Times, Target: target, Pairs: pairsOf}
	for _, r := range runs {
		f.Runs = append(f.Runs, r.Ratio)
		f.ControlRuns = append(f.ControlRuns, r.Control)
	}
	f.control(ratioBand)
	return f
}

// Timed is the figure of what the first arm of a comparison costs itself.
func Timed(name string, target *Target, scale float64, runs []pairs.Run) Figure {
	f := Figure{Name: name, Unit: Nanos, Target: target}
	for _, r := range runs {
		f.Runs = append(f.Runs, r.First*scale)
		f.ControlRuns = append(f.ControlRuns, r.Control)
	}
	f.control(ratioBand)
	return f
}

// Plain is a figure whose measurement has no arms. The median of the runs
// counts.
func Plain(name, unit string, target *Target, runs ...float64) Figure {
	return Figure{Name: name, Unit: unit, Target: target, Value: pairs.Median(runs), Runs: runs}
}

// Beside gives a figure a control that may differ from zero by the margin.
func (f Figure) Beside(runs []float64, margin float64) Figure {
	f.ControlRuns = runs
	f.control(band{-margin, margin})
	return f
}

func (f *Figure) control(b band) {
	c := pairs.Median(f.ControlRuns)
	f.Value, f.Control, f.band = pairs.Median(f.Runs), &c, b
}

// Averaged makes the mean of the runs count instead of their median: for a
// measure in steps that are large for one run.
func (f Figure) Averaged() Figure {
	f.Value = pairs.Mean(f.Runs)
	if f.Control != nil {
		c := pairs.Mean(f.ControlRuns)
		f.Control = &c
	}
	return f
}

// Lacking says that no verdict can rest on the figure, and why. An empty reason
// changes nothing.
func (f Figure) Lacking(why string) Figure {
	f.lacking = why
	return f
}

// Noted adds a remark.
func (f Figure) Noted(format string, args ...any) Figure {
	if f.Note != "" {
		f.Note += "; "
	}
	f.Note += fmt.Sprintf(format, args...)
	return f
}

// Failure is a figure that could not be measured.
func Failure(name string, err error) Figure {
	return Figure{Name: name, Verdict: Broken, Runs: []float64{}, Note: err.Error()}
}

// Judge gives the figure its verdict. A control that is off or a measurement
// that is too short weighs more than the value, whatever that is.
func (f Figure) Judge() Figure {
	finite := func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
	switch {
	case f.Verdict == Broken:
	case !finite(f.Value) || f.Control != nil && !finite(*f.Control) ||
		slices.ContainsFunc(f.Runs, func(v float64) bool { return !finite(v) }) || len(f.Runs) == 0:
		return Failure(f.Name, fmt.Errorf("the measurement gave no number: %v", f.Runs))
	case f.Control != nil && !f.band.has(*f.Control):
		f.Verdict = Inconclusive
		f = f.Noted("the control is not from %v to %v", f.band.low, f.band.high)
	case f.Target == nil:
		f.Verdict = Reported
	case f.lacking != "":
		f.Verdict = Inconclusive
		f = f.Noted("%s", f.lacking)
	case f.Target.keeps(f.Value):
		f.Verdict = Passed
	default:
		f.Verdict = Failed
	}
	return f
}
