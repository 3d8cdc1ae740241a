package freshness

import (
	"sort"
	"sync"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// What follows is an estimate, and only good for deciding how long to wait: how
// long a replica takes from the moment at which the primary has a position to the
// moment at which it has applied it. Nothing is ever proven by it.

const (
	// maxMoments and momentSpacing bound what is remembered: half a second at
	// least, which is longer than any read would wait.
	maxMoments    = 512
	momentSpacing = int64(time.Millisecond)
)

// moment says that the primary had pos at a time, as this process found out by a
// look, a captured write or a read there. It may have had it earlier.
type moment struct {
	pos tidegate.Position
	at  int64
}

// moments are the newest moments, oldest first. It is safe for concurrent use.
type moments struct {
	mu    sync.Mutex
	epoch tidegate.Epoch
	ring  [maxMoments]moment
	first int // index of the oldest
	n     int
}

func (m *moments) at(i int) *moment { return &m.ring[(m.first+i)%maxMoments] }

// note adds a moment. Those that tell hardly anything new are left out.
func (m *moments) note(epoch tidegate.Epoch, pos tidegate.Position, now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if epoch != m.epoch {
		m.epoch, m.first, m.n = epoch, 0, 0
	}
	if m.n > 0 {
		if last := m.at(m.n - 1); last.pos.Covers(pos) || now-last.at < momentSpacing {
			return
		}
	}
	if m.n == maxMoments {
		m.first = (m.first + 1) % maxMoments
		m.n--
	}
	*m.at(m.n) = moment{pos, now}
	m.n++
}

// uncovered returns the index of the first moment that applied does not cover. The
// caller holds m.mu.
func (m *moments) uncovered(applied tidegate.Position) int {
	return sort.Search(m.n, func(i int) bool { return !applied.Covers(m.at(i).pos) })
}

// when returns since when the primary is known to have had what covers pos, or now
// when it is not known.
func (m *moments) when(epoch tidegate.Epoch, pos tidegate.Position, now int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if epoch != m.epoch {
		return now
	}
	if i := sort.Search(m.n, func(i int) bool { return m.at(i).pos.Covers(pos) }); i < m.n {
		return m.at(i).at
	}
	return now
}

// bounds returns between what the delay of a replica lies that had applied that much
// when it was asked: least is zero, or most is negative, when nothing is known.
func (m *moments) bounds(epoch tidegate.Epoch, o *Observation) (least, most int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	most = -1
	if epoch != m.epoch {
		return 0, -1
	}
	i := m.uncovered(o.Applied)
	if i < m.n {
		least = max(0, o.Sent-m.at(i).at)
	}
	if i > 0 {
		most = max(0, o.Received-m.at(i-1).at)
	}
	return least, most
}

// estimate corrects an estimate by new bounds. A delay that turns out longer than
// expected is expected to be a little longer still: how long is not known before
// it is over.
func estimate(before, least, most int64) int64 {
	switch {
	case most >= 0 && most < before:
		return most
	case least > before && most >= 0:
		return min(least+least/4, max(least, most))
	case least > before:
		return least + least/4
	}
	return before
}

// Note tells that the primary of the epoch has the position now.
func (w *Watcher) Note(epoch tidegate.Epoch, pos tidegate.Position) {
	w.moments.note(epoch, pos, mono.Now())
}

// Since returns since when the primary of the epoch is known to have had the
// position; now when that is not known.
func (w *Watcher) Since(epoch tidegate.Epoch, pos tidegate.Position) int64 {
	return w.moments.when(epoch, pos, mono.Now())
}
