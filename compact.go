package tidegate

// headBytes is how much of a token's binary form is not its marks.
const headBytes = 1 + 8 + 1

// Within returns a token whose binary form has at most max bytes, and not more marks
// than [MaxMarks]. One that fits is returned as it is. From another one it takes
// positions away and requires all that was committed by the time it is presented
// instead: it costs reads on the primary, or waits, and never freshness.
//
// In this order, and no further than needed: what a mark lists beyond [MaxSeen] and
// [MaxPending]; all that marks list and where they stand, so that of each cluster one
// mark without a position is left; the marks, so that only the duty is left to catch up
// with every cluster. A history that is given up on this way and is over by the time
// is reported to the session, not passed over, unless its mark was the last that went.
func (t Token) Within(max int) Token {
	if t.size() <= max && t.fits() {
		return t
	}
	c := Token{nonce: t.nonce, rest: t.rest}
	for _, name := range t.clusters() {
		if len(name) == 0 || len(name) > MaxClusterName {
			c.rest = true // nothing can name it
			continue
		}
		c.marks = append(c.marks, compact(t.marks, name))
	}
	if c.size() <= max && c.fits() {
		return c
	}
	return Token{nonce: t.nonce, rest: true}
}

// fits reports whether every mark can be written.
func (t Token) fits() bool {
	if len(t.marks) > MaxMarks {
		return false
	}
	for _, m := range t.marks {
		if len(m.Cluster) == 0 || len(m.Cluster) > MaxClusterName {
			return false
		}
	}
	return true
}

// size is the length of the binary form.
func (t Token) size() int {
	n := headBytes
	var b [320]byte // more than a mark has
	for _, m := range t.marks {
		n += len(m.bounded().append(b[:0]))
	}
	return n
}

// compact makes one mark of all of a cluster's: the duty to catch up. It keeps the
// birth where there is one history and nothing was pending; several histories, or
// outcomes that may still come, have no birth that a primary could match, so that the
// session is told instead of answered as if it knew.
func compact(marks []Mark, cluster string) Mark {
	c := Mark{Cluster: cluster}
	first := true
	for _, m := range marks {
		if m.Cluster != cluster {
			continue
		}
		birth := JoinBirth(m.Primary, m.Volatile)
		if len(m.Pending) > 0 || !first && m.Epoch != c.Epoch {
			birth = noPrimary
		}
		if first || c.Epoch.Line < m.Epoch.Line {
			c.Epoch = m.Epoch
		}
		c.merge(Mark{CatchUp: true, Primary: birth, Patient: m.Patient})
		first = false
	}
	return c
}
