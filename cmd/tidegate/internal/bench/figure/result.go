package figure

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Result is what a run of all measurements found. It is what --json prints.
type Result struct {
	Machine Machine  `json:"machine"`
	Quick   bool     `json:"quick"`
	Figures []Figure `json:"figures"`
}

// Add judges figures and adds them.
func (r *Result) Add(figures ...Figure) {
	for _, f := range figures {
		r.Figures = append(r.Figures, f.Judge())
	}
}

// JSON writes the result as one object on one line.
func (r *Result) JSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// With counts the figures with a verdict.
func (r *Result) With(v Verdict) (n int) {
	for i := range r.Figures {
		if r.Figures[i].Verdict == v {
			n++
		}
	}
	return n
}

// Table writes the figures for people.
func (r *Result) Table(w io.Writer) {
	fmt.Fprintf(w, "%s\n", &r.Machine)
	if r.Machine.Busy() {
		fmt.Fprintf(w, "The machine was BUSY before anything was measured: close what runs on it and measure again.\n")
	}
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"figure", "value", "", "target", "control", "verdict", "runs"})
	right := func(n int) table.ColumnConfig {
		return table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight}
	}
	t.SetColumnConfigs([]table.ColumnConfig{right(2), right(4), right(5)})
	for i := range r.Figures {
		t.AppendRow(r.Figures[i].row())
	}
	t.Render()
	for i := range r.Figures {
		if f := &r.Figures[i]; f.Note != "" {
			fmt.Fprintf(w, "%s: %s\n", f.Name, f.Note)
		}
	}
}

func (f *Figure) row() table.Row {
	if f.Verdict == Broken {
		return table.Row{f.Name, "-", "", "", "", f.Verdict, ""}
	}
	target, control := "", ""
	if f.Target != nil {
		target = f.Target.String()
	}
	if f.Control != nil {
		control = number(*f.Control)
	}
	var runs []string
	for _, v := range f.Runs {
		runs = append(runs, number(v))
	}
	return table.Row{f.Name, number(f.Value), f.Unit, target, control, f.Verdict, strings.Join(runs, " ")}
}

// number writes a value with as many digits as mean something here.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 4, 64)
	}
}

// Line says in one line how it went.
func (r *Result) Line() string {
	var parts []string
	for _, v := range []Verdict{Passed, Failed, Inconclusive, Reported, Broken} {
		if n := r.With(v); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	line := strings.Join(parts, ", ")
	if n := r.With(Inconclusive); n > 0 && !r.Quick {
		line += ". What is inconclusive says nothing. Next: measure again on a quiet machine, with the default --pairs and --runs"
	}
	return line
}
