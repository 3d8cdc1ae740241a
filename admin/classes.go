package admin

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/tidegatedb/tidegate"
)

type classesPage struct {
	Classes []class `json:"classes"`
}

type class struct {
	Name string `json:"name"`
	Need string `json:"need"`
	// BudgetMS is null where no age is named: for other classes than relaxed ones,
	// and for those that take any.
	BudgetMS     *float64 `json:"budget_ms"`
	AnyStaleness bool     `json:"any_staleness"`
	// Bounds has an entry for each cluster whose replicas have answered reads of a
	// relaxed class.
	Bounds []bounds `json:"bounds"`
	// WaitMS is null where the cluster's wait holds.
	WaitMS *float64 `json:"wait_ms"`
	// Requires and Prefers are tags of nodes.
	Requires []string `json:"requires"`
	Prefers  []string `json:"prefers"`
	// MinServing is how many replicas it keeps in use although they lag.
	MinServing int     `json:"min_serving"`
	Why        string  `json:"why"`
	Owner      *string `json:"owner"`
	// Declared is how often it is declared like this.
	Declared int `json:"declared"`
	// Error is why reads of the class fail.
	Error *string `json:"error"`
	// Warning tells that the name says different things in different places.
	Warning *string `json:"warning"`
}

// bounds is how old the answers from one cluster's replicas could be at most, since the
// start: what is used of the budget. The quantiles are at most a sixteenth too high, and
// null without reads of which a bound was proven.
type bounds struct {
	Cluster string `json:"cluster"`
	// Reads counts those of which a bound was proven, Unknown those of which none was.
	Reads   uint64   `json:"reads_total"`
	Unknown uint64   `json:"reads_unknown_total"`
	P50     *float64 `json:"bound_p50_ms"`
	P99     *float64 `json:"bound_p99_ms"`
	Max     *float64 `json:"bound_max_ms"`
}

// boundsByName returns what the sources have measured, by the class's name.
func (h *handler) boundsByName() map[string][]bounds {
	all := map[string][]bounds{}
	for _, s := range h.Sources {
		status := s.Status()
		for _, c := range status.Classes {
			measured := c.Reads > 0
			all[c.Class] = append(all[c.Class], bounds{
				Cluster: status.Cluster, Reads: c.Reads, Unknown: c.Unknown,
				P50: known(millis(c.StalenessP50), measured), P99: known(millis(c.StalenessP99), measured), Max: known(millis(c.StalenessMax), measured),
			})
		}
	}
	return all
}

// declaration is all that is said where a class is declared.
type declaration struct {
	name, why, owner string
	need             tidegate.Need
	budget           time.Duration
	anyAge           bool
	wait             time.Duration
	waits            bool
	tags             string // required and preferred
	minServing       int
}

func declarationOf(c tidegate.Class) declaration {
	d := declaration{name: c.Name(), why: c.Why(), owner: c.Owner(), need: c.Need(), minServing: c.MinServing()}
	required, preferred := c.Tags()
	d.tags = fmt.Sprintf("%q %q", required, preferred)
	d.budget, d.anyAge = c.Budget()
	// A class without a wait of its own returns whatever it is given.
	if d.wait = c.Wait(0); d.wait == c.Wait(1) {
		d.waits = true
	}
	return d
}

// distinct returns the classes that are declared, each declaration once, and how
// often it is made.
func distinct(classes []tidegate.Class) (list []tidegate.Class, count map[declaration]int) {
	count = map[declaration]int{}
	for _, c := range classes {
		d := declarationOf(c)
		if count[d]++; count[d] == 1 {
			list = append(list, c)
		}
	}
	return list, count
}

func (h *handler) classes(*http.Request, url.Values) (any, *problem) {
	list, count := distinct(tidegate.Classes())
	names := map[string]int{}
	for _, c := range list {
		names[c.Name()]++
	}
	measured := h.boundsByName()
	x := classesPage{Classes: []class{}}
	for _, c := range list {
		d := declarationOf(c)
		k := class{
			Name: d.name, Need: d.need.String(), AnyStaleness: d.anyAge, Why: d.why, Owner: text(d.owner), Declared: count[d],
			BudgetMS: known(millis(d.budget), d.need == tidegate.NeedRelaxed && !d.anyAge), WaitMS: known(millis(d.wait), d.waits),
			Bounds: []bounds{},
		}
		if d.need == tidegate.NeedRelaxed {
			k.Bounds = append(k.Bounds, measured[d.name]...)
		}
		required, preferred := c.Tags()
		k.Requires, k.Prefers, k.MinServing = append([]string{}, required...), append([]string{}, preferred...), d.minServing
		if err := c.Err(); err != nil {
			k.Error = text(err.Error())
		}
		if n := names[d.name]; n > 1 {
			k.Warning = text(fmt.Sprintf("%d different classes have this name: metrics and bounds cannot tell them apart; declare it once, or give each its own name", n))
		}
		x.Classes = append(x.Classes, k)
	}
	return x, nil
}

// classNamed returns the class of that name.
func classNamed(name string) (tidegate.Class, *problem) {
	if name == "" {
		return tidegate.Class{}, &problem{Status: http.StatusBadRequest, Message: "no class is named", Field: "class", Next: "name one of those that the page classes lists, such as causal"}
	}
	list, _ := distinct(tidegate.Classes())
	var found []tidegate.Class
	for _, c := range list {
		if c.Name() == name {
			found = append(found, c)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return tidegate.Class{}, &problem{Status: http.StatusNotFound, Message: "this process has declared no such class", Field: "class", Next: "the page classes lists them"}
	}
	return tidegate.Class{}, &problem{
		Status: http.StatusConflict, Message: fmt.Sprintf("%d different classes have this name", len(found)), Field: "class",
		Next: "give each its own name; the page classes shows them",
	}
}
