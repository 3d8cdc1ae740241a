package route

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
)

// littleLoaded is the number of reads in flight by which a node may exceed the
// least loaded one before affinity and first-read agreement give way.
const littleLoaded = 4

// Node is the policy's view of a node.
type Node struct {
	// Name is what decisions call the node.
	Name string
	// Zone is where it is; reads prefer the router's own zone.
	Zone string
	// Weight is its share of reads relative to the others; it must be positive.
	Weight int
}

// Config configures a [Router].
type Config struct {
	// Cluster is the cluster's name.
	Cluster string
	// Nodes has one entry for each node of the table.
	Nodes []Node
	// Zone is the zone of this process, or "".
	Zone string
	// Wait is the default bounded wait of causal and relaxed reads.
	Wait time.Duration
	// ProofWait bounds the wait for a proof that the primary shows what the
	// session has seen; the caller's deadline clips it.
	ProofWait time.Duration
}

// Facts is what the router asks of the watcher.
type Facts interface {
	Table() *freshness.Table
	Demand(node int, at int64)
	WantShown(pos tidegate.Position)
	WantSettled(processes []uint64)
}

// load counts a node's reads in flight. Each has a cache line of its own: the
// counters are the only memory that reads of different sessions share for
// writing.
type load struct {
	flying atomic.Int64
	_      [56]byte
}

// Router picks nodes. It is safe for concurrent use.
type Router struct {
	cfg    Config
	facts  Facts
	loads  []load
	weight []int64
	local  []bool
	hashes []uint64
	stats  Stats
}

// Stats counts what happened to reads since the start.
type Stats struct {
	// Waits counts reads that waited for proof, Fallbacks causal and relaxed
	// reads that went to the primary, Unproven reads answered without proof,
	// Sessionless causal reads without a session, Refused reads that failed with
	// a NotFreshError, Changed sessions whose requirement could not be judged.
	Waits, Fallbacks, Unproven, Sessionless, Refused, Changed atomic.Uint64
}

// New returns a router over the facts.
func New(cfg Config, facts Facts) *Router {
	r := &Router{cfg: cfg, facts: facts, loads: make([]load, len(cfg.Nodes))}
	for _, n := range cfg.Nodes {
		r.weight = append(r.weight, int64(n.Weight))
		r.local = append(r.local, cfg.Zone == "" || n.Zone == cfg.Zone)
		r.hashes = append(r.hashes, hashName(n.Name))
	}
	return r
}

// Stats returns the router's counters.
func (r *Router) Stats() *Stats { return &r.stats }

// Flying returns a node's reads in flight.
func (r *Router) Flying(node int) int64 { return r.loads[node].flying.Load() }

// hashName is FNV-1a: nodes keep their place in the rendezvous whatever their
// order in the configuration.
func hashName(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// mix is the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// need is what a replica must satisfy for one read.
type need struct {
	relaxed bool
	mark    tidegate.Position
	oldest  int64 // relaxed: the replica must be current at this time at least; 0 any
	exclude uint64
}

func (r *Router) eligible(t *freshness.Table, i int, n *need) bool {
	x := &t.Nodes[i]
	if !x.Usable || n.exclude&(1<<uint(i)) != 0 {
		return false
	}
	if n.relaxed {
		return n.oldest == math.MinInt64 || x.Current != 0 && x.Current >= n.oldest
	}
	return x.Applied.Covers(n.mark)
}

// lessLoaded compares reads in flight relative to weight: a has room where b has
// less.
func lessLoaded(a, wa, b, wb int64) bool { return (a+1)*wb < (b+1)*wa }

// spread picks among the eligible nodes: the least loaded of the own zone, ties
// broken at random; another zone only when the own one has none or is loaded
// clearly more.
func (r *Router) spread(t *freshness.Table, n *need) int {
	best, far := freshness.NoNode, freshness.NoNode
	var bestLoad, farLoad int64
	var ties uint32
	for i := range t.Nodes {
		if !r.eligible(t, i, n) {
			continue
		}
		f := r.loads[i].flying.Load()
		if !r.local[i] {
			if far == freshness.NoNode || lessLoaded(f, r.weight[i], farLoad, r.weight[far]) {
				far, farLoad = i, f
			}
			continue
		}
		switch {
		case best == freshness.NoNode || lessLoaded(f, r.weight[i], bestLoad, r.weight[best]):
			best, bestLoad, ties = i, f, 1
		case !lessLoaded(bestLoad, r.weight[best], f, r.weight[i]):
			// As loaded as the best: each of k ties is taken with chance 1/k.
			if ties++; rand.Uint32N(ties) == 0 {
				best, bestLoad = i, f
			}
		}
	}
	if best == freshness.NoNode || far != freshness.NoNode && bestLoad > farLoad+2*littleLoaded {
		return far
	}
	return best
}

// rendezvous picks for a session's first read: the highest weighted hash of its
// nonce among the little loaded, so that parallel first requests of one session
// agree and need not be resolved against each other.
func (r *Router) rendezvous(t *freshness.Table, n *need, nonce uint64) int {
	least := r.spread(t, n)
	if least == freshness.NoNode || nonce == 0 {
		return least
	}
	limit := r.loads[least].flying.Load() + littleLoaded
	best, score := freshness.NoNode, math.Inf(-1)
	for i := range t.Nodes {
		if r.local[i] != r.local[least] || !r.eligible(t, i, n) || r.loads[i].flying.Load() > limit {
			continue
		}
		// Weighted rendezvous hashing: -w / ln(u) with u uniform in (0, 1).
		u := (float64(mix(nonce^r.hashes[i])>>11) + .5) / (1 << 53)
		if s := -float64(r.weight[i]) / math.Log(u); s > score {
			best, score = i, s
		}
	}
	if best == freshness.NoNode {
		return least
	}
	return best
}

// crowded reports whether some eligible node has clearly more room than i.
func (r *Router) crowded(t *freshness.Table, i int, n *need) bool {
	f := r.loads[i].flying.Load()
	if f <= littleLoaded {
		return false
	}
	for j := range t.Nodes {
		if j != i && r.loads[j].flying.Load()*r.weight[i]+littleLoaded*r.weight[j] < f*r.weight[j] && r.eligible(t, j, n) {
			return true
		}
	}
	return false
}

// pickCausal picks for a causal read, or says what is missing. The ledger is
// locked.
func (r *Router) pickCausal(l *ledger.Ledger, t *freshness.Table, n *need, asks *ledger.Asks) (int, tidegate.Reason, ledger.Status) {
	// Staying asks for nothing and changes no token.
	stay := l.Stay(t)
	if stay != freshness.NoNode && n.exclude&(1<<uint(stay)) == 0 {
		n.mark = l.Mark()
		if !r.crowded(t, stay, n) {
			return stay, tidegate.ReasonStayed, ledger.Settled
		}
	} else {
		stay = freshness.NoNode
	}
	fresh := l.Fresh()
	status := l.Settle(t, asks)
	n.mark = l.Mark()
	switch {
	case status == ledger.Changed:
		return freshness.NoNode, tidegate.ReasonHistoryChanged, status
	case status == ledger.Open && stay != freshness.NoNode:
		// Leaving would have to wait for facts; a crowded replica answers sooner.
		return stay, tidegate.ReasonStayed, ledger.Settled
	case status == ledger.Open:
		return freshness.NoNode, tidegate.ReasonBehind, status
	}
	var i int
	if fresh {
		i = r.rendezvous(t, n, l.Nonce())
	} else {
		i = r.spread(t, n)
	}
	return i, tidegate.ReasonCovered, status
}
