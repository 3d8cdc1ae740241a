package report

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// group is a group of columns: a sentence that says how to read it, and what
// each column holds.
type group struct {
	title, meaning string
	columns        []column
}

type column struct {
	head  string
	value func(*Figures) string
}

func number(get func(*Figures) int) func(*Figures) string {
	return func(f *Figures) string { return thousands(get(f)) }
}

func micros(get func(*Figures) int64) func(*Figures) string {
	return func(f *Figures) string { return thousands(int(get(f))) }
}

func percent(get func(*Figures) float64) func(*Figures) string {
	return func(f *Figures) string { return fmt.Sprintf("%.1f %%", 100*get(f)) }
}

func seconds(get func(*Figures) float64) func(*Figures) string {
	return func(f *Figures) string { return fmt.Sprintf("%.2f", get(f)) }
}

var groups = []group{
	{
		"Did sessions see the past?",
		"A stale read misses its own session's write, a backward read shows a row older than\n" +
			"the session had seen it; the reads in danger are those during which a replica lacked\n" +
			"something that their session knew.",
		[]column{
			{"reads", number(func(f *Figures) int { return f.Reads })},
			{"in danger", number(func(f *Figures) int { return f.Opportunities })},
			{"stale", number(func(f *Figures) int { return f.StaleReads })},
			{"backward", number(func(f *Figures) int { return f.BackwardsReads })},
			{"unproven", number(func(f *Figures) int { return f.UnprovenReads })},
			{"errors", number(func(f *Figures) int { return f.Errors })},
		},
	},
	{
		"Who answered?",
		"Reads that replicas answer are load that the primary does not have; a read that waits\n" +
			"lets a replica catch up, one that falls back goes to the primary, one that is shed fails.",
		[]column{
			{"on replicas", percent(func(f *Figures) float64 { return f.ReplicaShare })},
			{"after own write", percent(func(f *Figures) float64 { return f.ReadAfterWriteReplicaShare })},
			{"waited", number(func(f *Figures) int { return f.Waits })},
			{"fell back", number(func(f *Figures) int { return f.Fallbacks })},
			{"shed", number(func(f *Figures) int { return f.Shed })},
		},
	},
	{
		"How long did reads take?",
		"Microseconds, the median but for p99; the reads after an own write are the first ones,\n" +
			"half of them at once and half 5 ms or more after it.",
		[]column{
			{"read", micros(func(f *Figures) int64 { return f.ReadP50us })},
			{"read p99", micros(func(f *Figures) int64 { return f.ReadP99us })},
			{"read after write", micros(func(f *Figures) int64 { return f.ReadAfterWriteP50us })},
			{"at once", micros(func(f *Figures) int64 { return f.ReadAfterWriteNowP50us })},
		},
	},
	{
		"How long did writes take?",
		"Microseconds; the longest stall is the longest time in which writes waited and none was\n" +
			"acknowledged.",
		[]column{
			{"writes", number(func(f *Figures) int { return f.Writes })},
			{"write", micros(func(f *Figures) int64 { return f.WriteP50us })},
			{"write p99", micros(func(f *Figures) int64 { return f.WriteP99us })},
			{"longest stall", micros(func(f *Figures) int64 { return f.WriteStallUs })},
		},
	},
	{
		"What did it cost?",
		"CPU seconds of the servers while the load ran.",
		[]column{
			{"primary", seconds(func(f *Figures) float64 { return f.PrimaryCPUs })},
			{"all replicas", seconds(func(f *Figures) float64 { return f.ReplicaCPUs })},
		},
	},
}

// carriage is the group of those whose requests went over HTTP.
var carriage = group{
	"How were the sessions carried?",
	"Requests before which the client lost its tokens, sessions that caught up with all that\n" +
		"was committed or began anew, and tokens that were refused. A reread is a read because of\n" +
		"an event; it is behind if it lacks what the event tells of.",
	[]column{
		{"lost", number(func(f *Figures) int { return f.Carried.Dropped })},
		{"caught up", number(func(f *Figures) int { return int(f.Carried.CatchUps) })},
		{"anew", number(func(f *Figures) int { return int(f.Carried.Fresh) })},
		{"refused", number(func(f *Figures) int { return int(f.Carried.Refused) })},
		{"rereads", number(func(f *Figures) int { return f.Carried.Rereads })},
		{"behind", number(func(f *Figures) int { return f.Carried.StaleRereads })},
	},
}

// overload is the group of runs with a primary that does not take all.
var overload = group{
	"What did a primary do that has not room for all?",
	"Reads that were refused, and those of them that were so too late or without a typed\n" +
		"error; answers marked stale; microseconds in the queue for the primary, and of writes.",
	[]column{
		{"shed", number(func(f *Figures) int { return f.Shed })},
		{"late", number(func(f *Figures) int { return f.ShedLate })},
		{"untyped", number(func(f *Figures) int { return f.ShedUntyped })},
		{"marked", number(func(f *Figures) int { return f.StaleMarked })},
		{"queue p99", micros(func(f *Figures) int64 { return f.LimiterWaitP99us })},
		{"write p95", micros(func(f *Figures) int64 { return f.WriteP95us })},
	},
}

// groups are those that the result has figures for.
func (r *Result) groups() []group {
	list := groups[:len(groups):len(groups)]
	if r.Carrier != "" {
		list = append(list, carriage)
	}
	if r.PrimaryCostMs > 0 {
		list = append(list, overload)
	}
	return list
}

// newTable begins a table whose first column has names, and all others numbers.
func newTable(w io.Writer, first string, others ...string) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	head := table.Row{first}
	align := []table.ColumnConfig{{Number: 1, WidthMin: 11}}
	for i, h := range others {
		head = append(head, h)
		align = append(align, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(align)
	t.AppendHeader(head)
	return t
}

// Table writes the figures for people: a small table for each group of columns,
// one line for each strategy.
func (r *Result) Table(w io.Writer) {
	for _, g := range r.groups() {
		fmt.Fprintf(w, "\n%s\n%s\n", g.title, g.meaning)
		var heads []string
		for _, c := range g.columns {
			heads = append(heads, c.head)
		}
		t := newTable(w, "strategy", heads...)
		for i := range r.Strategies {
			row := table.Row{r.Strategies[i].Name}
			for _, c := range g.columns {
				row = append(row, c.value(&r.Strategies[i]))
			}
			t.AppendRow(row)
		}
		t.Render()
	}
	for i := range r.Strategies {
		r.Strategies[i].classTable(w)
	}
	for i := range r.Strategies {
		r.Strategies[i].notes(w)
	}
}
