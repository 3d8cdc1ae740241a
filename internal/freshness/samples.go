package freshness

import (
	"sort"

	"github.com/tidegatedb/tidegate"
)

// maxSamples bounds the memory of looks at the primary. Thinning keeps the
// newest half dense; a lost sample can only make a replica look older than it
// is, never newer.
const maxSamples = 512

// sample says that the primary had committed up to pos when a probe was sent.
type sample struct {
	pos  tidegate.Position
	sent int64
}

// samples is the primary's recent past: what turns "has applied p" into "is at
// most so old" without comparing the clocks of two machines, and without
// growing while nothing is written.
type samples struct{ s []sample }

// follow keeps what was looked up in the history before as far as the new one contains
// it: b is where the new one left it, nil if it did not.
func (h *samples) follow(b *Branch, before tidegate.Epoch) {
	n := 0
	if b != nil && sameEpoch(b.Epoch, before) {
		n = sort.Search(len(h.s), func(i int) bool { return !b.End.Covers(h.s[i].pos) })
	}
	h.s = h.s[:n]
}

// add records a look at the primary. Looks come in the order of sending.
func (h *samples) add(pos tidegate.Position, sent int64) {
	if n := len(h.s); n > 0 {
		last := &h.s[n-1]
		if sent <= last.sent {
			return
		}
		if last.pos.Covers(pos) {
			// Nothing was committed in between: covering the same position now
			// proves a later moment.
			last.sent = sent
			return
		}
	}
	if len(h.s) == maxSamples {
		h.thin()
	}
	h.s = append(h.s, sample{pos, sent})
}

// thin drops every second sample of the older half.
func (h *samples) thin() {
	half := len(h.s) / 2
	k := 0
	for i := range h.s {
		if i < half && i%2 == 1 {
			continue
		}
		h.s[k] = h.s[i]
		k++
	}
	h.s = h.s[:k]
}

// current returns the send time of the newest look at the primary that applied
// covers, or zero.
func (h *samples) current(applied tidegate.Position) int64 {
	i := sort.Search(len(h.s), func(i int) bool { return !applied.Covers(h.s[i].pos) })
	if i == 0 {
		return 0
	}
	return h.s[i-1].sent
}
