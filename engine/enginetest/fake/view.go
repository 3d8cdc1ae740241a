package fake

import "math/bits"

// View is a set of commits by their serial numbers: what one read showed, or
// what somebody knows.
type View []uint64

// Add adds a commit.
func (v *View) Add(serial int) {
	for len(*v) <= serial/64 {
		*v = append(*v, 0)
	}
	(*v)[serial/64] |= 1 << (serial % 64)
}

// Has reports whether the commit is in the set.
func (v View) Has(serial int) bool {
	return serial/64 < len(v) && v[serial/64]&(1<<(serial%64)) != 0
}

// Join adds all that o has.
func (v *View) Join(o View) {
	for len(*v) < len(o) {
		*v = append(*v, 0)
	}
	for i, w := range o {
		(*v)[i] |= w
	}
}

// Clone returns a copy that shares nothing with v.
func (v View) Clone() View { return append(View(nil), v...) }

// Missing returns the first commit of need that v lacks, or zero.
func (v View) Missing(need View) int {
	for i, w := range need {
		if i < len(v) {
			w &^= v[i]
		}
		if w != 0 {
			return i*64 + bits.TrailingZeros64(w)
		}
	}
	return 0
}

// Count returns the number of commits in the set.
func (v View) Count() int {
	n := 0
	for _, w := range v {
		n += bits.OnesCount64(w)
	}
	return n
}
