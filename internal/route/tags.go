package route

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
)

// fit is which nodes are for a class by its tags and theirs, as bit sets.
type fit struct {
	// barred are the nodes that the class does not use.
	barred uint64
	// second are those that it uses only when none of the others qualifies.
	second uint64
}

// maxFits bounds the classes whose fits are remembered: a class is held by that, and
// somebody may declare one for each request.
const maxFits = 128

// fits are those of the classes: found out with a class's first read, and again when
// nodes have changed.
type fits struct {
	mu    sync.Mutex // nodes do not change while a fit is found out
	known atomic.Pointer[map[tidegate.Class]fit]
}

// tag takes over the node's tags. r.fits is locked.
func (r *Router) tag(i int, n *Node) {
	setBit(&r.apart, 1<<uint(i), n.Dedicated)
	r.fits.known.Store(nil)
}

// fitOf returns the class's fit. It is cheap but for the first time.
func (r *Router) fitOf(c tidegate.Class) fit {
	if known := r.fits.known.Load(); known != nil {
		if f, ok := (*known)[c]; ok {
			return f
		}
	}
	f, served := r.learn(c)
	if !served && r.cfg.Unserved != nil {
		r.cfg.Unserved(c)
	}
	return f
}

// learn finds out the class's fit and remembers it, and reports whether any node has
// the tags that it requires.
func (r *Router) learn(c tidegate.Class) (f fit, served bool) {
	s := &r.fits
	s.mu.Lock()
	defer s.mu.Unlock()
	require, prefer := c.Tags()
	asks := slices.Concat(require, prefer)
	f.second = ^uint64(0)
	for i := range r.slots {
		n, bit := r.slots[i].node.Load(), uint64(1)<<uint(i)
		switch {
		case n == nil || !n.carries(require) || n.Dedicated && !n.shares(asks):
			f.barred |= bit
			continue
		case n.carries(prefer):
			f.second &^= bit
		}
		served = true
	}
	if len(prefer) == 0 || f.second == ^uint64(0) {
		f.second = 0 // none comes first
	}
	next := map[tidegate.Class]fit{}
	if known := s.known.Load(); known != nil && len(*known) < maxFits {
		next = maps.Clone(*known)
	}
	next[c] = f
	s.known.Store(&next)
	return f, served || len(require) == 0
}

// carries reports whether the node has all of the tags.
func (n *Node) carries(tags []string) bool { return n.lacks(tags) == "" }

// lacks returns the first of the tags that the node has not, "" if it has all.
func (n *Node) lacks(tags []string) string {
	for _, tag := range tags {
		if !slices.Contains(n.Tags, tag) {
			return tag
		}
	}
	return ""
}

// shares reports whether the node has one of the tags.
func (n *Node) shares(tags []string) bool {
	return slices.ContainsFunc(tags, func(tag string) bool { return slices.Contains(n.Tags, tag) })
}

// barred returns the nodes that a class does not use, by its tags and theirs.
func (r *Router) barred(c tidegate.Class) uint64 {
	if c.Placed() {
		return r.fitOf(c).barred
	}
	return r.apart.Load()
}

// plain reports whether a class uses all nodes alike: that is what most reads look at.
func (r *Router) plain(c tidegate.Class) bool {
	return r.outs.Load()|r.apart.Load() == 0 && !c.Placed()
}

// usage returns the nodes that a read does not use, apart from those that have failed it:
// those that are barred to its class, and those that are out. One that is out for its lag
// is not for a read that takes any age, nor where the class keeps it in use. second are
// those for when none of the others qualifies.
func (r *Router) usage(c tidegate.Class) (avoid, second uint64) {
	f := fit{barred: r.apart.Load()}
	if c.Placed() {
		f = r.fitOf(c)
	}
	out := r.outs.Load()
	if _, anyAge := c.Budget(); anyAge {
		out &^= r.late.Load()
	} else if n := c.MinServing(); n > 0 && out != 0 {
		out &^= r.keep(n, f.barred, out)
	}
	return f.barred | out, f.second
}

// use notes what the ticket's read does not use. It comes behind the look at the table: the
// router knows a node's tags before the table has the node.
func (r *Router) use(tk *Ticket) { tk.avoid, tk.second = r.usage(tk.Class) }

// avoid returns what usage does, without what comes second.
func (r *Router) avoid(c tidegate.Class) uint64 {
	avoid, _ := r.usage(c)
	return avoid
}

// avoidAged returns what a read does not use that takes a replica of any age.
func (r *Router) avoidAged(c tidegate.Class) uint64 {
	return r.barred(c) | r.outs.Load()&^r.late.Load()
}

// best picks as spread does, among the preferred nodes first.
func (r *Router) best(t *freshness.Table, n *need) int {
	if n.second != 0 {
		first := *n
		first.exclude |= n.second
		if i := r.spread(t, &first); i != freshness.NoNode {
			return i
		}
	}
	return r.spread(t, n)
}

// pick picks for a causal read as pickCausal does, among the preferred nodes first. The
// ledger is locked.
func (r *Router) pick(l *ledger.Ledger, t *freshness.Table, n *need, asks *ledger.Asks) (int, tidegate.Reason, ledger.Status) {
	if n.second == 0 {
		return r.pickCausal(l, t, n, asks)
	}
	first := *n
	first.exclude |= n.second
	n.mark = l.Need().Join(n.floor)
	first.mark = n.mark
	if r.any(t, &first) && (staying(l, t, n) == staying(l, t, &first) || r.wouldLeave(l, t, first)) {
		var later ledger.Asks // nothing is awaited for these nodes
		if i, why, status := r.pickCausal(l, t, &first, &later); i != freshness.NoNode || status == ledger.Changed {
			return i, why, status
		}
	}
	return r.pickCausal(l, t, n, asks)
}

// wouldLeave reports whether a session that can stay would find one of the preferred nodes.
// It is tried on a copy: to bound what the session has seen can ask for more than there is
// where it stays.
func (r *Router) wouldLeave(l *ledger.Ledger, t *freshness.Table, first need) bool {
	var asks ledger.Asks
	i, _, _ := r.pickCausal(l.Copy(), t, &first, &asks)
	return i != freshness.NoNode
}

// any reports whether a node is eligible.
func (r *Router) any(t *freshness.Table, n *need) bool {
	for i := range t.Nodes {
		if r.eligible(t, i, n) {
			return true
		}
	}
	return false
}
