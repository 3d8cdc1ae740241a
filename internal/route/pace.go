package route

import (
	"slices"
	"sync"
	"time"

	"github.com/tidegatedb/tidegate/internal/chance"
	"github.com/tidegatedb/tidegate/internal/freshness"
)

const (
	// paceEvery is of how many reads one is timed: looking at the clock is a good part
	// of what a decision costs.
	paceEvery = 8
	// paceReads is how many are remembered of each node, paceEnough how many it takes to
	// judge by, and paceAge for how long they count.
	paceReads  = 32
	paceEnough = 12
	paceAge    = int64(10 * time.Second)
	// judgePaces is how often it is looked at.
	judgePaces = int64(100 * time.Millisecond)
	// A replica is slow whose median is slowTimes that of the quickest, and slowBy more,
	// if slowSure of all pairs of their reads say so, too: where half of the reads are long
	// and half are short, medians say nothing. It is slow no more below quickTimes.
	slowTimes, quickTimes = 3, 1.5
	slowBy                = int64(3 * time.Millisecond)
	slowSure              = .8
	// scoutEvery is of how many reads that would go around a slow replica one does not:
	// it finds out whether it still is. It is few enough for the 95th percentile.
	scoutEvery = 50
	// scoutAge is for how long a scout's read counts: half of them say that it is over.
	scoutAge     = paceAge / 2
	scoutsEnough = 4
	// A replica that nobody tries is slow for paceAge, and if it turns out to be slow
	// again within againWithin twice as long each time, up to longestSlow.
	againWithin = 6 * paceAge
	longestSlow = 16 * paceAge
)

// paces knows how long reads take on each node, from when their way was decided to their
// last row. A replica can have all that is written and answer late, with a cold cache, or
// a tired disk, or somebody's report: looks, which are answered from memory, do not show
// it. Reads of classes that say where they go are not timed: what goes to some nodes only
// says nothing of how these compare with others.
type paces struct {
	next  int64 // when they are judged again; under the ejection's mu
	nodes [MaxNodes]pace
}

// pace is one node's.
type pace struct {
	mu    sync.Mutex
	reads [paceReads]timed // a ring
	n     int              // how many it has seen
}

type timed struct{ took, at int64 }

// took takes a read in.
func (p *pace) took(took, now int64) {
	p.mu.Lock()
	p.reads[p.n%paceReads] = timed{took, now}
	p.n++
	p.mu.Unlock()
}

// forget makes the node one of which nothing is known.
func (p *pace) forget() {
	p.mu.Lock()
	p.n, p.reads = 0, [paceReads]timed{}
	p.mu.Unlock()
}

// recent returns, sorted, how long those reads took that still count; since is from
// when on they do.
func (p *pace) recent(since int64) []int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []int64
	for _, r := range p.reads[:min(p.n, paceReads)] {
		if r.at >= since {
			all = append(all, r.took)
		}
	}
	slices.Sort(all)
	return all
}

// pairsLater returns the part of the pairs in which a is longer than b.
func pairsLater(a, b []int64) float64 {
	n, j := 0, 0
	for _, x := range a { // both are sorted
		for j < len(b) && b[j] < x {
			j++
		}
		n += j
	}
	return float64(n) / float64(len(a)*len(b))
}

// JudgePaces finds out which replicas are slow, and returns those of which that has
// changed.
func (r *Router) JudgePaces(t *freshness.Table, now int64) (changed []int) {
	r.ejection.mu.Lock()
	defer r.ejection.mu.Unlock()
	p := &r.paces
	if now < p.next {
		return nil
	}
	p.next = now + judgePaces
	var reads [MaxNodes][]int64
	best := freshness.NoNode
	slow := r.slows.Load()
	for i := range t.Nodes {
		bit := uint64(1) << uint(i)
		if !t.Nodes[i].Usable {
			continue
		}
		age := paceAge
		if slow&bit != 0 {
			age = scoutAge
		}
		// What was read before it became slow, or quick, says nothing of now.
		since := max(now-age, r.ejection.states[i].slowSince)
		reads[i] = p.nodes[i].recent(since)
		if slow&bit != 0 && len(reads[i]) < scoutsEnough { // few go there
			reads[i] = p.nodes[i].recent(max(now-paceAge, r.ejection.states[i].slowSince))
		}
		if slow&bit == 0 && len(reads[i]) >= paceEnough && (best == freshness.NoNode || median(reads[i]) < median(reads[best])) {
			best = i
		}
	}
	for i := range t.Nodes {
		bit := uint64(1) << uint(i)
		was := slow&bit != 0
		s := &r.ejection.states[i]
		is := was && (!t.Nodes[i].Usable || r.stillSlow(reads[i], best, &reads, now-s.slowSince < s.slowFor)) ||
			!was && best != freshness.NoNode && i != best && isSlow(reads[i], reads[best])
		if is == was {
			continue
		}
		setBit(&r.slows, bit, is)
		if s.starts = 0; is {
			s.slowAgain(now)
		} else {
			s.starts = now
		}
		s.slowSince = now
		changed = append(changed, i)
	}
	return changed
}

// slowAgain sets how long a node that becomes slow is taken for slow without anybody
// having tried it: longer each time, if it was slow a while ago.
func (s *ejected) slowAgain(now int64) {
	if s.slowFor != 0 && now-s.slowSince < againWithin {
		s.slowFor = min(2*s.slowFor, longestSlow)
	} else {
		s.slowFor = paceAge
	}
}

func median(sorted []int64) int64 { return sorted[len(sorted)/2] }

// isSlow reports whether a replica with such reads is slow beside one with those.
func isSlow(reads, best []int64) bool {
	if len(reads) < paceEnough {
		return false
	}
	a, b := median(reads), median(best)
	return a > slowTimes*b && a > b+slowBy && pairsLater(reads, best) > slowSure
}

// stillSlow reports whether a slow replica remains one, by the scouts. Where no other can
// be compared with, it is as good as any. Where hardly anybody has tried it nobody knows,
// since sessions that read elsewhere stay there: then untried says it.
func (r *Router) stillSlow(reads []int64, best int, all *[MaxNodes][]int64, untried bool) bool {
	if best == freshness.NoNode {
		return false
	}
	if len(reads) < scoutsEnough {
		return untried
	}
	a, b := median(reads), median(all[best])
	return float64(a) > quickTimes*float64(b) && a > b+slowBy/2
}

// shun returns the replicas that a read goes around although they may have what it needs:
// slow ones, as long as there is another.
func (r *Router) shun(t *freshness.Table, out uint64) uint64 {
	slow := r.slows.Load()
	if slow == 0 { // short enough to be inlined
		return 0
	}
	return r.shunned(t, out, slow)
}

func (r *Router) shunned(t *freshness.Table, out, slow uint64) uint64 {
	if chance.Int64N(scoutEvery) == 0 {
		return 0
	}
	for i := range t.Nodes {
		if t.Nodes[i].Usable && (out|slow)>>uint(i)&1 == 0 {
			return slow
		}
	}
	return 0
}

// Slow reports whether reads go around a node because it answers late, and how long
// reads take there in the middle of those that were timed lately; zero if there are
// none.
func (r *Router) Slow(i int, now int64) (slow bool, took time.Duration) {
	if all := r.paces.nodes[i].recent(now - paceAge); len(all) > 0 {
		took = time.Duration(median(all))
	}
	return r.slows.Load()>>uint(i)&1 != 0, took
}
