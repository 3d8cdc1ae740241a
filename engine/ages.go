package engine

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/histogram"
)

// ClassStatus is one relaxed class's part of a [Status]: how old the answers that
// replicas gave to its reads could be, since the start. Classes of one name are one.
type ClassStatus struct {
	Class string
	// Reads counts the decisions to read from a replica of which a bound was proven,
	// [tidegate.Decision].Staleness; the quantiles and the maximum are of those. The
	// bound includes the wait for a connection, and a budget is kept when the read begins:
	// so it can be above the budget by that wait.
	Reads uint64
	// Unknown counts those of which nothing was proven, as classes allow that take any
	// age or a stale answer.
	Unknown uint64
	// StalenessP50 and StalenessP99 are what half of the bounds and 99 percent of them do
	// not exceed: never too low, and at most a sixteenth too high. StalenessMax is exact.
	// They are zero without Reads.
	StalenessP50, StalenessP99, StalenessMax time.Duration
}

// maxClasses bounds the names that ages has something of; further ones share otherClass.
const (
	maxClasses = 100
	otherClass = "other"
)

// ages is how old the answers to relaxed reads could be, by the class's name: a class
// that the application has forgotten is not held. Each has some 7 kB. It is safe for
// concurrent use.
type ages struct {
	// classes is replaced when it grows, so that a read takes no lock.
	classes atomic.Pointer[map[string]*age]
	mu      sync.Mutex // serialises growing
}

type age struct {
	bounds  histogram.Histogram
	unknown atomic.Uint64
}

// add counts the decision on a relaxed read from a replica.
func (a *ages) add(d *tidegate.Decision) {
	x := a.of(d.Class.Name())
	if !d.StalenessKnown {
		x.unknown.Add(1)
		return
	}
	x.bounds.Add(d.Staleness)
}

func (a *ages) of(class string) *age {
	if m := a.classes.Load(); m != nil {
		if x := (*m)[class]; x != nil {
			return x
		}
		if x := (*m)[otherClass]; x != nil && len(*m) >= maxClasses {
			return x
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	m := map[string]*age{}
	if was := a.classes.Load(); was != nil {
		m = maps.Clone(*was)
	}
	if m[class] == nil && len(m) >= maxClasses {
		class = otherClass
	}
	if m[class] == nil {
		m[class] = &age{}
		a.classes.Store(&m)
	}
	return m[class]
}

// status returns what was counted so far, by name.
func (a *ages) status() []ClassStatus {
	var all []ClassStatus
	if m := a.classes.Load(); m != nil {
		for name, x := range *m {
			s := x.bounds.Summary()
			all = append(all, ClassStatus{
				Class: name, Reads: s.Count, Unknown: x.unknown.Load(),
				StalenessP50: s.P50, StalenessP99: s.P99, StalenessMax: s.Max,
			})
		}
	}
	slices.SortFunc(all, func(a, b ClassStatus) int { return strings.Compare(a.Class, b.Class) })
	return all
}
