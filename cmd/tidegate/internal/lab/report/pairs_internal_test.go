package report

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// rounds are runs of three rounds, with a write p95 for each part of each.
func rounds(name string, writes ...[3]int64) (runs []PairedRun) {
	for i, w := range writes {
		for j, part := range []string{PartScenario, PartBeside, PartControl} {
			f := Figures{Name: name, Reads: 100, Writes: 10, Opportunities: 5, WriteP95us: w[j], ReadP99us: 10 * w[j]}
			runs = append(runs, PairedRun{i + 1, part, Result{Scenario: part, Seed: 7, Strategies: []Figures{f}}})
		}
	}
	return runs
}

func TestOrderAlternates(t *testing.T) {
	t.Parallel()
	there, back := []string{"scenario", "beside", "control"}, []string{"control", "beside", "scenario"}
	for round, want := range map[int][]string{1: there, 2: back, 3: there, 4: back} {
		if got := Order(round); !slices.Equal(got, want) {
			t.Errorf("round %d: %v", round, got)
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	p := Paired{Pairs: 4, Runs: slices.Concat(
		rounds("a", [3]int64{300, 100, 110}, [3]int64{200, 100, 80}, [3]int64{1000, 200, 200}, [3]int64{120, 100, 95}),
		rounds("b", [3]int64{50, 0, 60}, [3]int64{100, 400, 200})[:5], // the control of the second is missing
	)}
	p.Compare()
	want := Against{
		Us: 250, BesideUs: 100,
		Ratio:   Spread{Median: 2.5, Min: 1.2, Max: 5, Rounds: []float64{3, 2, 5, 1.2}},
		Control: Spread{Median: 0.975, Min: 0.8, Max: 1.1, Rounds: []float64{1.1, 0.8, 1, 0.95}},
	}
	if len(p.Strategies) != 2 || p.Strategies[0].Name != "a" || p.Strategies[0].Rounds != 4 || p.Strategies[1].Name != "b" || p.Strategies[1].Rounds != 1 {
		t.Fatalf("%+v", p.Strategies)
	}
	a := p.Strategies[0]
	if !reflect.DeepEqual(a.WriteP95, want) {
		t.Errorf("got  %+v\nwant %+v", a.WriteP95, want)
	}
	if a.ReadP99.Us != 2500 || !reflect.DeepEqual(a.ReadP99.Ratio, want.Ratio) {
		t.Errorf("reads: %+v", a.ReadP99)
	}
	nothing := Spread{Rounds: []float64{}}
	if !reflect.DeepEqual(a.ReadP95, Against{Ratio: nothing, Control: nothing}) {
		t.Errorf("reads that were not timed: %+v", a.ReadP95)
	}
	// A steady run without a write is nothing to divide by.
	if b := p.Strategies[1].WriteP95; b.Us != 50 || !reflect.DeepEqual(b.Ratio, nothing) || !reflect.DeepEqual(b.Control, nothing) {
		t.Errorf("ratios to nothing: %+v", b)
	}
}

func TestPairsOutput(t *testing.T) {
	t.Parallel()
	p := Paired{Scenario: "flood", Beside: "steady", Pairs: 1, Runs: rounds("a", [3]int64{123456789, 100000, 110000})}
	p.Compare()
	var out bytes.Buffer
	p.Table(&out)
	for _, want := range []string{"a: what does flood cost beside steady?", "123,456,789", "1234.57", "1.10 to 1.10", "write p95", "read p99", "-"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
	for _, line := range strings.Split(out.String(), "\n") {
		if len([]rune(line)) > 100 {
			t.Errorf("a line is too wide: %s", line)
		}
	}
	out.Reset()
	if err := p.JSON(&out); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Scenario, Beside string
		Pairs            int
		Strategies       []struct {
			Name     string
			Rounds   int
			WriteP95 struct {
				Us             float64
				Ratio, Control struct{ Median, Min, Max float64 }
			} `json:"write_p95"`
		}
		Runs []struct {
			Round      int
			Part       string
			Scenario   string
			Strategies []struct {
				WriteP95 int `json:"write_p95_us"`
			}
		}
	}
	d := json.NewDecoder(&out)
	if err := d.Decode(&got); err != nil || d.More() {
		t.Fatal(err)
	}
	if got.Scenario != "flood" || got.Beside != "steady" || got.Pairs != 1 || got.Strategies[0].WriteP95.Control.Max != 1.1 ||
		len(got.Runs) != 3 || got.Runs[2].Part != "control" || got.Runs[2].Round != 1 || got.Runs[2].Strategies[0].WriteP95 != 110000 {
		t.Errorf("%+v", got)
	}
}

// What is wrong in one run is wrong in all.
func TestJudgePairs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change           func(*Paired)
		scenario, beside Terms
		status           int
		says             string
	}{
		"all went well":          {nil, Terms{}, Terms{}, 0, "write p95 2.50 of steady's, control 0.95; no promise broken in 6 runs"},
		"stale in a control":     {func(p *Paired) { p.Runs[5].Strategies[0].StaleReads = 1 }, Terms{}, Terms{}, 1, "round 2, control: tidegate BROKE ITS PROMISE"},
		"an error in a scenario": {func(p *Paired) { p.Runs[3].Strategies[0].ReadErrorsAfterRow = 1 }, Terms{Errors: true}, Terms{}, 0, "no promise"},
		"an error beside it":     {func(p *Paired) { p.Runs[4].Strategies[0].ReadErrorsAfterRow = 1 }, Terms{Errors: true}, Terms{}, 1, "round 2, beside: "},
		"too little danger":      {nil, Terms{Opportunities: 6}, Terms{}, 2, "round 1, scenario: no verdict"},
		"broken after nothing":   {func(p *Paired) { p.Runs[5].Strategies[0].StaleReads = 1 }, Terms{Opportunities: 6}, Terms{}, 1, "BROKE"},
		"danger in one only": {func(p *Paired) {
			for i := range p.Runs[1:] {
				p.Runs[1+i].Strategies[0].Opportunities = 0
			}
		}, Terms{Danger: true}, Terms{Danger: true}, 0, "no promise"},
		"danger in none": {func(p *Paired) {
			for i := range p.Runs {
				p.Runs[i].Strategies[0].Opportunities = 0
			}
		}, Terms{Danger: true}, Terms{Danger: true}, 2, "no read was in danger in any run"},
		"interrupted": {func(p *Paired) { p.Runs = nil }, Terms{Interrupted: true}, Terms{Interrupted: true}, 2, "interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &Paired{Beside: "steady", Pairs: 2, Runs: rounds(Ours, [3]int64{300, 100, 110}, [3]int64{200, 100, 80})}
			if c.change != nil {
				c.change(p)
			}
			p.Compare()
			if got := JudgePairs(p, c.scenario, c.beside); got.Status != c.status || !strings.Contains(got.Line, c.says) {
				t.Errorf("got %d %q, want %d and %q", got.Status, got.Line, c.status, c.says)
			}
		})
	}
}
