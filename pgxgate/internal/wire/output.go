package wire

// output is what the client gets of a buffer, packed at the buffer's start.
type output struct {
	p     []byte
	n     int     // how much of p it is
	spill *[]byte // the rest, when something was put in that does not fit
}

// pass adds p[from:to]. Without anything taken out before, it moves nothing.
func (o *output) pass(from, to int) {
	switch {
	case len(*o.spill) > 0:
		*o.spill = append(*o.spill, o.p[from:to]...)
	case o.n == from:
		o.n = to
	default:
		o.n += copy(o.p[o.n:], o.p[from:to])
	}
}

// put adds b, which was taken out earlier. p is free up to at.
func (o *output) put(b []byte, at int) {
	if len(*o.spill) == 0 && o.n+len(b) <= at {
		o.n += copy(o.p[o.n:], b)
		return
	}
	*o.spill = append(*o.spill, b...)
}
