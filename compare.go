package tidegate

import "slices"

// Same reports whether two tokens require the same, in whatever order they say it.
// Tokens that are [Token.Momentary] can be the same and mean different moments.
func (t Token) Same(u Token) bool {
	if len(t.marks) != len(u.marks) || t.rest != u.rest {
		return false
	}
	for _, m := range t.marks {
		i := slices.IndexFunc(u.marks, func(n Mark) bool { return n.Cluster == m.Cluster && n.Epoch == m.Epoch })
		if i < 0 || !m.same(u.marks[i]) {
			return false
		}
	}
	return true
}

func (m Mark) same(n Mark) bool {
	return m.Position == n.Position && m.Shown == n.Shown && m.CatchUp == n.CatchUp && m.Primary == n.Primary &&
		m.Patient == n.Patient && m.Volatile == n.Volatile && sameSet(m.Seen, n.Seen) && sameSet(m.Pending, n.Pending)
}

// sameSet compares lists that repeat nothing.
func sameSet[E comparable](a, b []E) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(e E) bool { return !slices.Contains(b, e) })
}

// Momentary reports whether what the token requires depends on when it arrives: an
// incarnation that was read from, or a duty to catch up. A session that reads where it
// stays has the same token after each read, and has seen more each time. So a carrier
// must not take one for the other: an answer that may have read on a replica emits its
// token although it is the same.
func (t Token) Momentary() bool {
	return t.rest || slices.ContainsFunc(t.marks, func(m Mark) bool {
		return len(m.Seen) > 0 || m.CatchUp || len(m.Pending) > 0
	})
}
