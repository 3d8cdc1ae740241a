package route

import (
	"sync"
	"sync/atomic"

	"github.com/tidegatedb/tidegate/internal/freshness"
)

const (
	// shareParts is how many parts the window has that the share is counted over.
	shareParts = 10
	// shareEnough is how many reads must have wanted to fall back within the window to
	// be told of: one of two in the night is no trend.
	shareEnough = 20
)

// share counts which part of the reads that replicas are there for wants the primary in
// their place: the sign that the replicas are of no use any more, also where the primary
// has room for all of them.
type share struct {
	wanted atomic.Uint64 // reads that wanted to fall back
	high   atomic.Bool   // more than may
	// instead are those of them that a replica answered after all.
	instead atomic.Uint64

	mu    sync.Mutex
	at    int64 // when the newest part began, zero before the first
	parts [shareParts]part
	newer int // the newest part
	// seen is up to where each node's reads are counted, and wantedSeen those that
	// wanted to fall back.
	seen                    [MaxNodes]uint64
	wantedSeen, insteadSeen uint64
}

// part is a part of the window.
type part struct{ replicas, wanted uint64 }

// ShareNews says what has become of the share of reads that want to fall back.
type ShareNews struct {
	// Changed tells that it is above what it may be now, or is no more: High says which.
	Changed, High bool
	// Share is what it is, of the reads that replicas are there for.
	Share float64
}

// JudgeShare takes in what has happened since the last call.
func (r *Router) JudgeShare(t *freshness.Table, now int64) ShareNews {
	if r.cfg.FallbackShare <= 0 || r.cfg.FallbackShare >= 1 {
		return ShareNews{}
	}
	s := &r.share
	s.mu.Lock()
	defer s.mu.Unlock()
	long := int64(r.cfg.FallbackWindow) / shareParts
	switch steps := (now - s.at) / long; {
	case s.at == 0:
		s.at = now
	case steps >= shareParts:
		s.parts, s.at = [shareParts]part{}, now
	default:
		for range steps {
			s.newer = (s.newer + 1) % shareParts
			s.parts[s.newer] = part{}
			s.at += long
		}
	}
	p := &s.parts[s.newer]
	for i := range t.Nodes {
		n := r.slots[i].flying.since(s.seen[i])
		s.seen[i] += n
		if i != t.Primary {
			p.replicas += n
		}
	}
	wanted := s.wanted.Load()
	p.wanted += wanted - s.wantedSeen
	s.wantedSeen = wanted
	// They count once.
	instead := s.instead.Load()
	p.replicas -= min(p.replicas, instead-s.insteadSeen)
	s.insteadSeen = instead

	n := ShareNews{High: s.high.Load()}
	var enough bool
	n.Share, enough = s.now()
	switch {
	case !n.High && n.Share > r.cfg.FallbackShare && enough,
		n.High && n.Share < r.cfg.FallbackShare/hysteresis:
		n.High, n.Changed = !n.High, true
		s.high.Store(n.High)
	}
	return n
}

// FallbackShare returns the share of reads that want to fall back, of the reads that
// replicas are there for, within the window, and whether that is more than it may be.
func (r *Router) FallbackShare() (share float64, high bool) {
	s := &r.share
	s.mu.Lock()
	defer s.mu.Unlock()
	share, _ = s.now()
	return share, s.high.Load()
}

// now returns the share, and whether it is of enough reads. s is locked.
func (s *share) now() (is float64, enough bool) {
	var all part
	for _, p := range s.parts {
		all.replicas += p.replicas
		all.wanted += p.wanted
	}
	if all.wanted == 0 {
		return 0, false
	}
	return float64(all.wanted) / float64(all.wanted+all.replicas), all.wanted >= shareEnough
}
