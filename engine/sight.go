package engine

import (
	"math"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
)

// sight is what a throttle sees of one node.
type sight struct {
	node           int
	staleness      time.Duration
	stalenessKnown bool
	lag            uint64
	lagKnown       bool
	err            error
	// strain is how much of the mark in force is used up, by the worse measure; above
	// one it is passed.
	strain float64
}

// sight returns what is to be seen of a node, and whether it counts. since is when the
// call asked for looks, zero before. The caller holds th.mu.
func (th *Throttle) sight(t *freshness.Table, node int, now, since int64) (s sight, counts bool) {
	n := &t.Nodes[node]
	s = sight{node: node, err: n.Err, strain: math.Inf(1)}
	switch {
	case node == t.Primary, n.Obs != nil && n.Obs.Role == tidegate.RolePrimary:
		return s, false
	case n.Err != nil:
		return s, now-n.FailedSince < int64(th.cfg.AbsentAfter)
	case n.Obs == nil: // it has joined a moment ago
		return s, true
	case !n.Usable:
		return s, false
	}
	if n.Current != 0 {
		s.staleness, s.stalenessKnown = time.Duration(now-n.Current), true
	}
	s.lag, s.lagKnown = t.Lag(node)
	// Unlike an age, a lag does not grow by itself while nobody looks. While the job is
	// held what was seen since counts: the next look is on its way.
	p := t.PrimaryObs()
	lagCounts := s.lagKnown && p != nil && (now-min(p.Received, n.Obs.Received) <= th.gap || since != 0 && min(p.Sent, n.Sent) >= since)
	age, lag := th.cfg.MaxStaleness, th.cfg.MaxLag
	if th.held {
		age, lag = th.cfg.ResumeStaleness, th.cfg.ResumeLag
	}
	s.strain = max(part(float64(s.staleness), s.stalenessKnown, float64(age)), part(float64(s.lag), lagCounts, float64(lag)))
	return s, true
}

// part returns the part of a mark that is used up: nothing where there is no mark, all
// there is where it is not known.
func part(of float64, known bool, mark float64) float64 {
	switch {
	case mark == 0:
		return 0
	case !known:
		return math.Inf(1)
	}
	return of / mark
}
