package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// Class is how the relaxed reads of one budget fared.
type Class struct {
	BudgetMs float64 `json:"budget_ms"`
	// OnBreach says what the reads do whose budget no replica keeps.
	OnBreach     string `json:"on_breach"`
	Reads        int    `json:"reads"` // answered
	ReplicaReads int    `json:"replica_reads"`
	StaleMarked  int    `json:"stale_marked"`
	// Failed were refused because their class asks for that, Shed for want of room on the
	// primary, and Errors are the rest.
	Failed int `json:"failed"`
	Shed   int `json:"shed"`
	Errors int `json:"errors"`
	// BudgetBreaches are answers that are older than the budget and not marked so.
	BudgetBreaches int `json:"budget_breaches"`
	// The bounds are of how old answers can be at most, as the strategy says; of those
	// from replicas for which it says so. UnmarkedMaxUs is the largest of those that are
	// not marked stale.
	BoundP50us    int64 `json:"bound_p50_us"`
	BoundP99us    int64 `json:"bound_p99_us"`
	BoundMaxUs    int64 `json:"bound_max_us"`
	UnmarkedMaxUs int64 `json:"unmarked_bound_max_us"`
}

// measureClasses counts the relaxed reads by their budgets, the shortest first.
func measureClasses(histories [][]record.Op) (list []Class) {
	type class struct {
		Class
		bounds, unmarked []time.Duration
	}
	classes := map[record.Budget]*class{}
	for _, ops := range histories {
		for i := range ops {
			op := &ops[i]
			if op.Budget == nil {
				continue
			}
			c := classes[*op.Budget]
			if c == nil {
				c = &class{Class: Class{BudgetMs: Millis(op.Budget.Within), OnBreach: string(op.Budget.OnBreach)}}
				classes[*op.Budget] = c
			}
			c.add(op)
			if a := &op.Answer; op.OK() && a.Replica && a.Bounded {
				c.bounds = append(c.bounds, a.Bound)
				if !a.MarkedStale {
					c.unmarked = append(c.unmarked, a.Bound)
				}
			}
		}
	}
	for _, c := range classes {
		c.BoundP50us, c.BoundP99us, c.BoundMaxUs = percentile(c.bounds, 0.5), percentile(c.bounds, 0.99), percentile(c.bounds, 1)
		c.UnmarkedMaxUs = percentile(c.unmarked, 1)
		list = append(list, c.Class)
	}
	slices.SortFunc(list, func(a, b Class) int {
		return cmp.Or(cmp.Compare(a.BudgetMs, b.BudgetMs), cmp.Compare(a.OnBreach, b.OnBreach))
	})
	return list
}

// add counts one read.
func (c *Class) add(op *record.Op) {
	switch a := &op.Answer; {
	case asked(op):
		c.Failed++
	case a.Shed:
		c.Shed++
	case op.Err != nil:
		c.Errors++
	default:
		c.Reads++
		count(&c.ReplicaReads, a.Replica)
		count(&c.StaleMarked, a.MarkedStale)
		count(&c.BudgetBreaches, op.Broke(record.WithinBudget))
	}
}

// name is what the table calls the class.
func (c *Class) name() string {
	breach := c.OnBreach
	if breach == string(record.StaleWhenShed) {
		breach = "if shed" // or the table is too wide
	}
	return fmt.Sprintf("%v, %s", time.Duration(c.BudgetMs*float64(time.Millisecond)), breach)
}

// classTable writes a line for each class of relaxed reads, if there are any.
func (f *Figures) classTable(w io.Writer) {
	if len(f.Classes) == 0 {
		return
	}
	fmt.Fprintf(w, "\nHow did %s keep budgets?\n%s\n", f.Name,
		"Reads that may be so old, and what they do when no replica is young enough: read on\n"+
			"the primary, take a stale answer or take it if shed, fail. Answers marked stale, reads\n"+
			"that failed because they ask to or were shed, and answers that were too old and not\n"+
			"marked. Ages, in milliseconds, are the most that the answers of replicas could have.")
	t := newTable(w, "budget", "reads", "marked", "refused", "over", "age", "p99", "max")
	for i := range f.Classes {
		c := &f.Classes[i]
		row := table.Row{c.name()}
		for _, n := range []int{c.Reads, c.StaleMarked, c.Failed + c.Shed, c.BudgetBreaches,
			int(c.BoundP50us / 1000), int(c.BoundP99us / 1000), int(c.BoundMaxUs / 1000)} {
			row = append(row, thousands(n))
		}
		t.AppendRow(row)
	}
	t.Render()
}
