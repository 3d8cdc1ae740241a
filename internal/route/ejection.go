package route

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/chance"
	"github.com/tidegatedb/tidegate/internal/freshness"
)

const (
	// patienceWithProbes is how long a node's probes fail before its return is one from
	// an ejection. It is not used from the first failure on.
	patienceWithProbes = int64(time.Second)
	// returnAfter is how long an ejected node must be well before it is used again, on
	// average: instances spread over half as much and half as much again.
	returnAfter = int64(200 * time.Millisecond)
	// slowStart is how long a node that returns takes to its full share.
	slowStart = int64(time.Second)
	// fullWeight is by what weights are multiplied, so that a node of weight 1 can
	// have a part of its share.
	fullWeight = 16
	// hysteresis is the part of a bound below which a node returns.
	hysteresis = 2
)

// Ejection says why a replica is out, and since when.
type Ejection struct {
	// Why is why it is out, EjectionNone if it is in.
	Why tidegate.EjectionReason
	// Since is when it went out, or came back.
	Since int64
}

// ejection is the part of the policy that looks at whole nodes. The watcher's facts are
// judged with each result of a probe; reads look at the outcome only.
type ejection struct {
	mu     sync.Mutex
	states [MaxNodes]ejected
}

// ejected is what is remembered of one node.
type ejected struct {
	Ejection
	// returns is when the node is in again, if it is well until then; zero while it is not.
	returns int64
	// starts is when its slow start began, zero when that is over.
	starts int64
	// slowSince is when the node became slow, or was no more.
	slowSince int64
	// slowFor is how long it is taken for slow while nobody tries it.
	slowFor int64
	// unproven is since when the node has been usable without a proof of its age.
	unproven int64
}

// Judge looks at all nodes and returns those that went out or came back.
func (r *Router) Judge(t *freshness.Table, now int64) (changed []int) {
	e := &r.ejection
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range t.Nodes {
		s := &e.states[i]
		was := s.Why
		r.judge(t, i, s, now)
		if s.Why != was {
			changed = append(changed, i)
		}
	}
	r.rank(t)
	return changed
}

// judge looks at one node.
func (r *Router) judge(t *freshness.Table, i int, s *ejected, now int64) {
	why, well := r.condition(t, i, s, now)
	switch {
	case why != tidegate.EjectionNone:
		s.returns = 0
		if s.Why == tidegate.EjectionNone || s.Why != why && why == tidegate.EjectionFailing {
			s.Why, s.Since, s.starts = why, now, 0
		}
	case s.Why == tidegate.EjectionNone:
	case !well:
		s.returns = 0
	case s.returns == 0:
		s.returns = now + returnAfter/2 + chance.Int64N(returnAfter)
	case now >= s.returns:
		s.Ejection, s.returns, s.starts = Ejection{Since: now}, 0, now
	}
	bit := uint64(1) << uint(i)
	hangs := r.hangs(t, i, now)
	setBit(&r.late, bit, s.Why == tidegate.EjectionLag && !hangs)
	setBit(&r.outs, bit, s.Why != tidegate.EjectionNone || hangs)
	r.ramp(i, s, now)
}

// hangs reports whether the node is silent and reads have somewhere else to go. What is
// sent to a node that hangs comes back when it likes, and that it hangs is a failure
// only when a look at it has timed out. It is no ejection: it is over with the answer.
func (r *Router) hangs(t *freshness.Table, i int, now int64) bool {
	if !t.Nodes[i].Usable || !r.facts.Silent(i, now) {
		return false
	}
	for j := range t.Nodes {
		if j != i && (t.Nodes[j].Usable && r.outs.Load()>>uint(j)&1 == 0 || j == t.Primary && t.Nodes[j].Err == nil) && !r.facts.Silent(j, now) {
			return true
		}
	}
	return false
}

func setBit(set *atomic.Uint64, bit uint64, on bool) {
	if is := set.Load()&bit != 0; is == on {
		return // every read looks at it: written only when it changes
	}
	if on {
		set.Or(bit)
	} else {
		set.And(^bit)
	}
}

// condition returns why the node must be out now, and whether it is well enough to
// return. In between it stays what it is.
func (r *Router) condition(t *freshness.Table, i int, s *ejected, now int64) (why tidegate.EjectionReason, well bool) {
	x := &t.Nodes[i]
	switch {
	case x.Obs == nil:
		return tidegate.EjectionNone, false // there was nothing to be left out
	case x.Err != nil && x.Obs.Role == tidegate.RoleReplica && now-x.FailedSince >= patienceWithProbes:
		return tidegate.EjectionFailing, false
	case x.Err == nil && x.Obs.Role == tidegate.RolePrimary:
		return tidegate.EjectionNone, true // it is another matter whether it is the primary
	case !x.Usable:
		return tidegate.EjectionNone, false
	}
	if t.PrimaryObs() == nil {
		// Nobody can tell how far it is behind, and reads that need nothing from the
		// primary go on.
		s.unproven = 0
		return tidegate.EjectionNone, s.Why == tidegate.EjectionFailing
	}
	if x.Current != 0 {
		s.unproven = 0
	} else if s.unproven == 0 {
		s.unproven = now
	}
	age := now - x.Current
	if x.Current == 0 {
		age = now - s.unproven
	}
	lag, known := t.Lag(i)
	bound, most := int64(r.cfg.LongestLag), r.cfg.MostLag
	if bound > 0 && age > bound || most > 0 && known && lag > most {
		return tidegate.EjectionLag, false
	}
	// One that did not answer was within the bounds, as far as is known.
	return tidegate.EjectionNone, s.Why == tidegate.EjectionFailing || (bound <= 0 || x.Current != 0 && age <= bound/hysteresis) && (most == 0 || known && lag <= most/hysteresis)
}

// ramp gives a node that has returned its share little by little.
func (r *Router) ramp(i int, s *ejected, now int64) {
	n := r.slots[i].node.Load()
	if n == nil {
		return
	}
	part := int64(fullWeight)
	if s.starts != 0 {
		if part = 1 + (now-s.starts)*(fullWeight-1)/slowStart; part >= fullWeight {
			part, s.starts = fullWeight, 0
		}
	}
	r.slots[i].weight.Store(int64(n.Weight) * part)
}

// Ejected returns whether a node is out, and its share of what it has at full weight.
func (r *Router) Ejected(i int) (e Ejection, share float64) {
	r.ejection.mu.Lock()
	e = r.ejection.states[i].Ejection
	r.ejection.mu.Unlock()
	if n := r.slots[i].node.Load(); n != nil && n.Weight > 0 {
		share = float64(r.slots[i].weight.Load()) / float64(n.Weight*fullWeight)
	}
	return e, share
}

// reset forgets what was known of a node: another has its index now.
func (r *Router) reset(i int) {
	r.ejection.mu.Lock()
	defer r.ejection.mu.Unlock()
	r.ejection.states[i] = ejected{}
	bit := uint64(1) << uint(i)
	setBit(&r.late, bit, false)
	setBit(&r.outs, bit, false)
	setBit(&r.slows, bit, false)
	setBit(&r.heavy, bit, false)
	r.paces.nodes[i].forget()
}
