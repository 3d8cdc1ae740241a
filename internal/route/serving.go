package route

import (
	"math"
	"math/bits"
	"slices"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
)

// clearly is how many times further behind another replica must be for one to come
// before it. Sessions stay where they read only while the order stays.
const clearly = 2

// rank puts the nodes that are out for their lag in order, those that are least behind
// first. The ejection is locked.
func (r *Router) rank(t *freshness.Table) {
	was := r.ranked.Load()
	late := r.late.Load()
	if was == nil && late == 0 {
		return
	}
	var order []int
	if was != nil {
		order = slices.DeleteFunc(slices.Clone(*was), func(i int) bool { return late>>uint(i)&1 == 0 })
	}
	for m := late; m != 0; m &= m - 1 {
		if i := bits.TrailingZeros64(m); !slices.Contains(order, i) {
			order = append(order, i)
		}
	}
	behind := func(i int) uint64 {
		if i < len(t.Nodes) {
			if lag, known := t.Lag(i); known {
				return lag
			}
		}
		return math.MaxUint64
	}
	// Each goes ahead as long as it is clearly better than the one before it.
	for k := range order {
		for j := k; j > 0 && behind(order[j]) < behind(order[j-1])/clearly; j-- {
			order[j], order[j-1] = order[j-1], order[j]
		}
	}
	switch {
	case len(order) == 0:
		r.ranked.Store(nil)
	case was == nil || !slices.Equal(order, *was):
		r.ranked.Store(&order)
	}
}

// keep returns which of the nodes that are out for their lag a class keeps in use that
// wants n to read from: the first of them, as many as there are too few. A node that does
// not answer is none to read from.
func (r *Router) keep(n int, barred, out uint64) (kept uint64) {
	ranked := r.ranked.Load()
	if ranked == nil {
		return 0
	}
	t := r.facts.Table()
	for i := range t.Nodes {
		if t.Nodes[i].Usable && (barred|out)>>uint(i)&1 == 0 {
			n--
		}
	}
	late := r.late.Load()
	for _, i := range *ranked {
		if n <= 0 {
			break
		}
		if i < len(t.Nodes) && t.Nodes[i].Usable && barred>>uint(i)&1 == 0 && (late&out)>>uint(i)&1 != 0 {
			kept |= 1 << uint(i)
			n--
		}
	}
	return kept
}

// keeps reports whether the class uses the node although it is out for its lag, so as to
// have enough to read from.
func (r *Router) keeps(c tidegate.Class, i int, avoid uint64) bool {
	return c.MinServing() > 0 && (r.late.Load()&^avoid)>>uint(i)&1 != 0
}
