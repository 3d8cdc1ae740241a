package httpgate

import (
	"slices"

	"github.com/tidegatedb/tidegate"
)

// history is a token that has been looked into.
type history struct {
	marks []tidegate.Mark
	// rest is the duty to catch up with every cluster that has no mark.
	rest bool
}

func historyOf(t tidegate.Token) history { return history{marks: t.Marks(), rest: t.CatchesUp()} }

// same reports whether two tokens say the same, in whatever order.
func (h history) same(o history) bool {
	if len(h.marks) != len(o.marks) || h.rest != o.rest {
		return false
	}
	for _, m := range h.marks {
		i := slices.IndexFunc(o.marks, func(n tidegate.Mark) bool { return n.Cluster == m.Cluster && n.Epoch == m.Epoch })
		if i < 0 || !sameMark(m, o.marks[i]) {
			return false
		}
	}
	return true
}

func sameMark(m, n tidegate.Mark) bool {
	return m.Position == n.Position && m.Shown == n.Shown && m.CatchUp == n.CatchUp && m.Primary == n.Primary &&
		m.Patient == n.Patient && sameSet(m.Seen, n.Seen) && sameSet(m.Pending, n.Pending)
}

// sameSet compares lists that repeat nothing.
func sameSet[E comparable](a, b []E) bool {
	if len(a) != len(b) {
		return false
	}
	for _, e := range a {
		if !slices.Contains(b, e) {
			return false
		}
	}
	return true
}

// momentary reports whether what is required depends on when the token arrives: an
// incarnation that was read from, or a duty to catch up. Two such tokens can say
// the same and mean different moments.
func (h history) momentary() bool {
	return h.rest || slices.ContainsFunc(h.marks, func(m tidegate.Mark) bool {
		return len(m.Seen) > 0 || m.CatchUp || len(m.Pending) > 0
	})
}

// onlySeen reports whether all of it comes from reads on replicas that have not
// been bounded yet. What has a position may come from a write.
func (h history) onlySeen() bool {
	return !h.rest && !slices.ContainsFunc(h.marks, func(m tidegate.Mark) bool {
		return !m.Position.IsZero() || !m.Shown.IsZero() || m.CatchUp || len(m.Pending) > 0
	})
}
