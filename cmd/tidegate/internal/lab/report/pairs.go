package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/bench/pairs"
)

// Paired is what rounds of runs say of a scenario beside another one. The names and
// the order of its fields are what --json prints with --pairs.
type Paired struct {
	Scenario string `json:"scenario"`
	Beside   string `json:"beside"`
	// Pairs is how many rounds there were to be, for each strategy.
	Pairs      int        `json:"pairs"`
	Strategies []Compared `json:"strategies"`
	// Runs are all runs in their order, each as a run of its own prints it, with one
	// strategy.
	Runs []PairedRun `json:"runs"`
}

// The parts of a round.
const (
	PartScenario = "scenario"
	PartBeside   = "beside"
	PartControl  = "control"
)

// Order is the order of the parts in a round, counted from 1.
func Order(round int) []string {
	order := []string{PartScenario, PartBeside, PartControl}
	if round%2 == 0 {
		slices.Reverse(order)
	}
	return order
}

// PairedRun is one run of a round.
type PairedRun struct {
	Round int `json:"round"`
	// Part says what the run is: the scenario, the other one beside it, or that one once
	// more, as the control.
	Part string `json:"part"`
	Result
}

// Compared is how one strategy fared in the scenario beside the other one.
type Compared struct {
	Name string `json:"name"`
	// Rounds is how many of the rounds were complete.
	Rounds   int     `json:"rounds"`
	WriteP95 Against `json:"write_p95"`
	WriteP99 Against `json:"write_p99"`
	ReadP95  Against `json:"read_p95"`
	ReadP99  Against `json:"read_p99"`
}

// Against is one latency of the scenario against the same of the other one.
type Against struct {
	// Us and BesideUs are the medians of both over the rounds, in microseconds.
	Us       float64 `json:"us"`
	BesideUs float64 `json:"beside_us"`
	// Ratio is of the scenario to the other one, Control of the control to it.
	Ratio   Spread `json:"ratio"`
	Control Spread `json:"control"`
}

// Spread is what a ratio was over the rounds: the middle, the least and the most, and
// each. A round in which one of the two runs has no such latency has no ratio; without
// any the spread is of zeros.
type Spread struct {
	Median float64   `json:"median"`
	Min    float64   `json:"min"`
	Max    float64   `json:"max"`
	Rounds []float64 `json:"rounds"`
}

// compared are the latencies that are.
var compared = []struct {
	name string
	of   func(*Figures) int64
	in   func(*Compared) *Against
}{
	{"write p95", func(f *Figures) int64 { return f.WriteP95us }, func(c *Compared) *Against { return &c.WriteP95 }},
	{"write p99", func(f *Figures) int64 { return f.WriteP99us }, func(c *Compared) *Against { return &c.WriteP99 }},
	{"read p95", func(f *Figures) int64 { return f.ReadP95us }, func(c *Compared) *Against { return &c.ReadP95 }},
	{"read p99", func(f *Figures) int64 { return f.ReadP99us }, func(c *Compared) *Against { return &c.ReadP99 }},
}

// Compare works out the Strategies from the Runs. Rounds that are not complete do not
// count.
func (p *Paired) Compare() {
	p.Strategies = []Compared{}
	var names []string
	rounds := map[string]map[int]map[string]*Figures{}
	for i := range p.Runs {
		r := &p.Runs[i]
		f := &r.Result.Strategies[0]
		if rounds[f.Name] == nil {
			names = append(names, f.Name)
			rounds[f.Name] = map[int]map[string]*Figures{}
		}
		if rounds[f.Name][r.Round] == nil {
			rounds[f.Name][r.Round] = map[string]*Figures{}
		}
		rounds[f.Name][r.Round][r.Part] = f
	}
	for _, name := range names {
		c := Compared{Name: name}
		var whole []map[string]*Figures
		for round := 1; round <= p.Pairs; round++ {
			if parts := rounds[name][round]; len(parts) == len(Order(round)) {
				whole = append(whole, parts)
			}
		}
		c.Rounds = len(whole)
		for _, l := range compared {
			*l.in(&c) = against(whole, l.of)
		}
		p.Strategies = append(p.Strategies, c)
	}
}

// against compares one latency over rounds.
func against(rounds []map[string]*Figures, of func(*Figures) int64) Against {
	var scenario, beside, ratio, control []float64
	for _, parts := range rounds {
		s, b, c := float64(of(parts[PartScenario])), float64(of(parts[PartBeside])), float64(of(parts[PartControl]))
		scenario, beside = append(scenario, s), append(beside, b)
		if s > 0 && b > 0 {
			ratio = append(ratio, round(s/b, 4))
		}
		if c > 0 && b > 0 {
			control = append(control, round(c/b, 4))
		}
	}
	return Against{Us: median(scenario), BesideUs: median(beside), Ratio: spread(ratio), Control: spread(control)}
}

func spread(ratios []float64) Spread {
	if len(ratios) == 0 {
		return Spread{Rounds: []float64{}}
	}
	return Spread{Median: median(ratios), Min: slices.Min(ratios), Max: slices.Max(ratios), Rounds: ratios}
}

// median is the middle value to four digits, and 0 of nothing.
func median(values []float64) float64 {
	m := pairs.Median(values)
	if math.IsNaN(m) {
		return 0
	}
	return round(m, 4)
}

// JSON writes the comparison as one object on one line.
func (p *Paired) JSON(w io.Writer) error { return json.NewEncoder(w).Encode(p) }

// Table writes the comparison for people: a small table for each strategy.
func (p *Paired) Table(w io.Writer) {
	for i := range p.Strategies {
		c := &p.Strategies[i]
		fmt.Fprintf(w, "\n%s: what does %s cost beside %s?\n%s\n", c.Name, p.Scenario, p.Beside,
			fmt.Sprintf("Medians of %d rounds in microseconds; the ratio of the two, its least and its most; and the\n", c.Rounds)+
				fmt.Sprintf("same for %s beside itself, which is what the machine does to a ratio of equals.", p.Beside))
		t := newTable(w, "latency", "us", "beside", "ratio", "spread", "control", "spread")
		for _, l := range compared {
			a := l.in(c)
			t.AppendRow(table.Row{l.name, thousands(int(a.Us)), thousands(int(a.BesideUs)),
				a.Ratio.middle(), a.Ratio.reach(), a.Control.middle(), a.Control.reach()})
		}
		t.Render()
	}
}

func (s *Spread) middle() string {
	if len(s.Rounds) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", s.Median)
}

func (s *Spread) reach() string {
	if len(s.Rounds) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f to %.2f", s.Min, s.Max)
}

// JudgePairs gives the verdict on all runs: each is judged by the terms of its
// scenario, and a broken promise in one of them is one in all. Reads in danger are asked
// of all runs together, as terms.Danger says: a steady run alone can be without.
func JudgePairs(p *Paired, scenario, beside Terms) Verdict {
	all := Result{}
	danger := scenario.Danger
	scenario.Danger, beside.Danger = false, false
	var nothing *Verdict
	for i := range p.Runs {
		r := &p.Runs[i]
		terms := beside
		if r.Part == PartScenario {
			terms = scenario
		}
		all.Strategies = append(all.Strategies, r.Result.Strategies...)
		v := Judge(&r.Result, terms)
		v.Line = fmt.Sprintf("round %d, %s: %s", r.Round, r.Scenario, v.Line)
		switch {
		case v.Status == StatusBroken:
			return v
		case v.Status == StatusNothing && nothing == nil:
			nothing = &v
		}
	}
	switch {
	case scenario.Interrupted:
		return Verdict{StatusNothing, "no verdict: interrupted; run again and let it end"}
	case nothing != nil:
		return *nothing
	case danger && !endangered(&all):
		return Verdict{StatusNothing, "no verdict: no read was in danger in any run, so that none could be stale; run again with a higher --rate, more --writes or a longer --duration"}
	}
	var parts []string
	for i := range p.Strategies {
		c := &p.Strategies[i]
		parts = append(parts, fmt.Sprintf("%s: %d rounds, write p95 %s of %s's, control %s",
			c.Name, c.Rounds, c.WriteP95.Ratio.middle(), p.Beside, c.WriteP95.Control.middle()))
	}
	return Verdict{StatusKept, strings.Join(parts, "; ") + fmt.Sprintf("; no promise broken in %d runs", len(p.Runs))}
}
