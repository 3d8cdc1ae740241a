package figure_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/bench/figure"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/bench/pairs"
)

// runs are five runs of a comparison around a ratio and a control.
func runs(ratio, control float64) []pairs.Run {
	var all []pairs.Run
	for _, off := range []float64{0.02, -0.01, 0, 0.01, -0.02} {
		all = append(all, pairs.Run{Ratio: ratio + off, Control: control + off, First: 100})
	}
	return all
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	limit := figure.AtMost(1.01)
	for _, c := range []struct {
		what string
		f    figure.Figure
		want figure.Verdict
	}{
		{"within the target", figure.Ratio("x", limit, 1, runs(1.005, 1)), figure.Passed},
		{"at the target", figure.Ratio("x", limit, 1, runs(1.01, 1)), figure.Passed},
		{"beyond the target", figure.Ratio("x", limit, 1, runs(1.011, 1)), figure.Failed},
		{"at a target that excludes its limit", figure.Plain("x", figure.Nanos, figure.Under(30), 30), figure.Failed},
		{"below it", figure.Plain("x", figure.Nanos, figure.Under(30), 29.9), figure.Passed},
		{"no target", figure.Ratio("x", nil, 1, runs(7, 1)), figure.Reported},
		{"a control at the edge", figure.Ratio("x", limit, 1, runs(1, 1.01)), figure.Passed},
		{"a control at the other edge", figure.Ratio("x", limit, 1, runs(1, 0.99)), figure.Passed},
		{"good, but the control is too high", figure.Ratio("x", limit, 1, runs(1, 1.0101)), figure.Inconclusive},
		{"good, but the control is too low", figure.Ratio("x", limit, 1, runs(1, 0.9899)), figure.Inconclusive},
		{"bad, and the control is off", figure.Ratio("x", limit, 1, runs(1.5, 1.2)), figure.Inconclusive},
		{"no target, and the control is off", figure.Ratio("x", nil, 1, runs(1, 0.9)), figure.Inconclusive},
		{"a time whose control is off", figure.Timed("x", figure.Under(30), 0.1, runs(1, 1.1)), figure.Inconclusive},
		{"a time", figure.Timed("x", figure.Under(30), 0.1, runs(1, 1)), figure.Passed},
		{"good, but too little", figure.Ratio("x", limit, 1, runs(1, 1)).Lacking("short"), figure.Inconclusive},
		{"bad, but too little", figure.Ratio("x", limit, 1, runs(2, 1)).Lacking("short"), figure.Inconclusive},
		{"enough", figure.Ratio("x", limit, 1, runs(1, 1)).Lacking(""), figure.Passed},
		{"beside a control around zero", figure.Plain("x", figure.Core, figure.Under(0.01), 0.005).Beside([]float64{-0.002}, 0.002), figure.Passed},
		{"beside one that is off", figure.Plain("x", figure.Core, figure.Under(0.01), 0.005).Beside([]float64{-0.003}, 0.002), figure.Inconclusive},
		{"no number", figure.Plain("x", figure.Nanos, figure.AtMost(1), math.NaN()), figure.Broken},
		{"nothing", figure.Plain("x", figure.Nanos, figure.AtMost(1)), figure.Broken},
		{"an infinite control", figure.Plain("x", figure.Nanos, nil, 1).Beside([]float64{math.Inf(1)}, 1), figure.Broken},
		{"an error", figure.Failure("x", errors.New("no server")), figure.Broken},
	} {
		if got := c.f.Judge(); got.Verdict != c.want || got.Name != "x" || got.Verdict == figure.Inconclusive && got.Note == "" {
			t.Errorf("%s: %+v, want %s", c.what, got, c.want)
		}
	}
}

// From samples to the verdict: an arm that costs three hundredths more fails. A
// machine that treats like arms differently decides nothing.
func TestVerdictOfMeasuredArms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what   string
		slow   float64
		biased bool // the control's second arm is slowed down
		want   figure.Verdict
	}{
		{"alike", 1, false, figure.Passed},
		{"slower", 1.03, false, figure.Failed},
		{"slower on a machine that cannot be trusted", 1.03, true, figure.Inconclusive},
		{"alike on a machine that cannot be trusted", 1, true, figure.Inconclusive},
	} {
		var all []pairs.Run
		for range 5 {
			n, second := 0, false
			r, err := pairs.Compare(t.Context(), pairs.Plan{Pairs: 10_000, Collect: true, Measure: func(a pairs.Arm) (float64, error) {
				second = false
				err := a()
				v := float64(1000 + n*37%100)
				switch at := n % 16; {
				case n%101 == 0:
					v *= 500 // a hiccup
				case second:
					v *= c.slow
				case c.biased && (at == 4 || at == 7 || at == 8 || at == 11):
					v *= 1.02
				}
				n++
				return v, err
			}}, func() error { return nil }, func() error { second = true; return nil })
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
		if f := figure.Ratio("x", figure.AtMost(1.01), 10_000, all).Judge(); f.Verdict != c.want {
			t.Errorf("%s: %+v, want %s", c.what, f, c.want)
		}
	}
}

func TestValuesAreMedians(t *testing.T) {
	t.Parallel()
	f := figure.Ratio("x", nil, 10, runs(1.2, 1)).Judge()
	if f.Value != 1.2 || *f.Control != 1 || len(f.Runs) != 5 || len(f.ControlRuns) != 5 || f.Pairs != 10 || f.Unit != figure.Times {
		t.Errorf("%+v", f)
	}
	if f := figure.Timed("x", nil, 0.5, runs(1.2, 1)); f.Value != 50 || f.Unit != figure.Nanos {
		t.Errorf("%+v", f)
	}
	f = figure.Plain("x", figure.Core, nil, 1, 2, 6).Beside([]float64{0, 0, 3}, 9)
	if f.Value != 2 || *f.Control != 0 {
		t.Errorf("%+v", f)
	}
	if f = f.Averaged(); f.Value != 3 || *f.Control != 1 {
		t.Errorf("%+v", f)
	}
}

func result() *figure.Result {
	r := &figure.Result{Machine: figure.Machine{CPU: "abacus", Cores: 2, PostgreSQL: "15.1", Load: 2}}
	r.Add(
		figure.Ratio("good", figure.AtMost(1.01), 10_000, runs(1, 1)),
		figure.Ratio("bad", figure.AtMost(1.01), 10_000, runs(2, 1)),
		figure.Ratio("unsure", figure.AtMost(1.01), 10_000, runs(1, 2)),
		figure.Plain("told", figure.Bytes, nil, 1234).Noted("of %s", "memory"),
		figure.Failure("gone", errors.New("no server")),
	)
	return r
}

func TestTable(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	r := result()
	r.Table(&b)
	for _, want := range []string{
		"abacus, 2 cores", "PostgreSQL 15.1", "load average 2.00", "BUSY",
		"<= 1.01", "passed", "failed", "inconclusive", "reported", "1234",
		"told: of memory", "gone: no server", "unsure: the control is not from 0.99 to 1.01",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
	if line := r.Line(); !strings.HasPrefix(line, "1 passed, 1 failed, 1 inconclusive, 1 reported, 1 error") || !strings.Contains(line, "quiet machine") {
		t.Error(line)
	}
	quiet := figure.Result{Machine: figure.Machine{Load: -1}}
	b.Reset()
	quiet.Table(&b)
	if strings.Contains(b.String(), "BUSY") || !strings.Contains(b.String(), "load average unknown") {
		t.Error(b.String())
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := result().JSON(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Machine map[string]any
		Figures []struct {
			Name, Unit, Verdict, Note string
			Value                     float64
			Target                    *string
			Control                   *float64
			Runs                      []float64
		}
	}
	d := json.NewDecoder(&b)
	if err := d.Decode(&got); err != nil || d.More() {
		t.Fatal(err)
	}
	if len(got.Figures) != 5 || got.Machine["cpu"] != "abacus" {
		t.Fatalf("%+v", got)
	}
	good, told, gone := got.Figures[0], got.Figures[3], got.Figures[4]
	if good.Verdict != "passed" || *good.Target != "<= 1.01" || *good.Control != 1 || len(good.Runs) != 5 || good.Unit != "ratio" {
		t.Errorf("%+v", good)
	}
	if told.Target != nil || told.Control != nil || !slices.Equal(told.Runs, []float64{1234}) {
		t.Errorf("%+v", told)
	}
	if gone.Verdict != "error" || gone.Note != "no server" || gone.Runs == nil {
		t.Errorf("%+v", gone)
	}
}

func TestThisMachine(t *testing.T) {
	t.Parallel()
	m := figure.ThisMachine()
	if m.CPU == "" || m.Cores < 1 || m.Kernel == "" || m.Go == "" || m.GOMAXPROCS < 1 {
		t.Errorf("%+v", m)
	}
}
