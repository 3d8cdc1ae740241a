package route

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/chance"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
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
	// Tags are what classes require or prefer. They do not change.
	Tags []string
	// Dedicated keeps the node for classes that require or prefer one of its tags.
	Dedicated bool
	// Of is what the caller knows the node by; see [Ticket.Of].
	Of any
}

// MaxNodes is the number of nodes of one cluster at any time: sets of nodes are
// bit sets.
const MaxNodes = 64

// Config configures a [Router].
type Config struct {
	// Cluster is the cluster's name.
	Cluster string
	// Nodes are those that there are at the start, by their index in the table.
	Nodes []Node
	// Zone is the zone of this process, or "".
	Zone string
	// Wait is the default bounded wait of causal and relaxed reads.
	Wait time.Duration
	// ProofWait bounds the wait for a proof that the primary shows what the
	// session has seen; the caller's deadline clips it.
	ProofWait time.Duration
	// LongestLag is how old a replica's state may be for a session that has no mark, and
	// at all. Zero or less means any age.
	LongestLag time.Duration
	// MostLag is how far a replica may be behind, in the engine's unit. Zero means any
	// distance.
	MostLag uint64
	// Fallbacks bounds the reads that are on the primary for want of a replica. Zero
	// means no bound.
	Fallbacks int
	// FixedFallbacks keeps the bound what it is, whatever becomes of the writes.
	FixedFallbacks bool
	// FallbackWait is how long such a read may queue for its turn.
	FallbackWait time.Duration
	// FallbackShare is the part of the reads that may want to be such reads within the last
	// FallbackWindow. Zero or less, or one, means all.
	FallbackShare  float64
	FallbackWindow time.Duration
	// Foreign says what becomes of reads whose session must see what is foreign.
	Foreign tidegate.ForeignPolicy
	// PrimaryWait is how long a read that belongs on the primary may wait for one.
	PrimaryWait time.Duration
	// Unserved, if not nil, is told of a class that requires tags which no node has, when
	// that is found out. It may be told again when nodes have changed.
	Unserved func(tidegate.Class)
}

// Facts is what the router asks of the watcher.
type Facts interface {
	Table() *freshness.Table
	Demand(node int, at int64)
	WantShown(pos tidegate.Position)
	WantSettled(processes []uint64)
	// Silent reports whether a node lets whoever asks it wait for much longer than usual.
	Silent(node int, now int64) bool
	// Since returns since when the primary has had a position, as far as is known.
	Since(epoch tidegate.Epoch, pos tidegate.Position) int64
}

// slot is a node's reads in flight and what hardly ever changes about it. Each
// has a cache line of its own: the counters are the only memory that reads of
// different sessions share for writing.
type slot struct {
	flying tally
	weight atomic.Int64 // times fullWeight
	hash   atomic.Uint64
	node   atomic.Pointer[Node]
	local  atomic.Bool // in the router's zone, or the router has none
	_      [28]byte
}

// Router picks nodes. It is safe for concurrent use.
type Router struct {
	cfg     Config
	facts   Facts
	rollout atomic.Pointer[tidegate.Rollout] // nil routes all
	// fallbacks is nil without a bound.
	fallbacks *limiter
	// outs and late are bit sets of the nodes that are out, and of those that are for
	// their lag; slows of those that answer late, and apart of those that are dedicated.
	// They are not beside what is written all the time.
	outs, late, slows, apart atomic.Uint64
	// heavy are those that have more than their part of the reads.
	heavy atomic.Uint64
	// ranked are the late nodes, those that are least behind first; nil is none.
	ranked   atomic.Pointer[[]int]
	fits     fits
	floor    atomic.Pointer[floor] // nil is none
	slots    [MaxNodes]slot
	_        [64]byte // what is above is only read
	ejection ejection
	floors   floors
	share    share
	paces    paces
	balance  balance
	stats    Stats
}

// Stats counts what happened to reads since the start.
type Stats struct {
	// Waits counts reads that waited for proof, Fallbacks causal and relaxed
	// reads that went to the primary, Unproven reads answered without proof,
	// Sessionless causal reads without a session, Refused reads that failed with
	// a NotFreshError, Changed sessions whose requirement could not be judged.
	Waits, Fallbacks, Unproven, Sessionless, Refused, Changed atomic.Uint64
	// Predicted counts causal reads that did not wait because replicas were
	// expected to need longer; Shadowed and ShadowReplica the reads under
	// tidegate.RolloutShadow and those of them that a replica would have answered.
	Predicted, Shadowed, ShadowReplica atomic.Uint64
	// Queued counts reads that waited for room on the primary, Shed those that got none or
	// were not to have any, Stale relaxed reads that were answered beyond their budget.
	Queued, Shed, Stale atomic.Uint64
	// Verdicts counts what sessions were found to require of another history, by what had
	// become of it. One that is to be reported is counted again with each read until it is.
	Verdicts [tidegate.Verdicts]atomic.Uint64
	// Retries counts attempts after which a read began again, by what had failed them.
	Retries [tidegate.RetryCauses]atomic.Uint64
}

// New returns a router over the facts.
func New(cfg Config, facts Facts) *Router {
	r := &Router{cfg: cfg, facts: facts}
	if cfg.Fallbacks > 0 {
		r.fallbacks = newLimiter(cfg.Fallbacks, cfg.FixedFallbacks)
	}
	for i := range cfg.Nodes {
		r.Set(i, cfg.Nodes[i])
	}
	return r
}

// Set makes n the node with that index. Reads in flight on the one before it go
// on, and are counted as this one's until they end.
func (r *Router) Set(i int, n Node) {
	r.fits.mu.Lock()
	defer r.fits.mu.Unlock()
	s := &r.slots[i]
	if was := s.node.Load(); was == nil || was.Of != n.Of {
		r.reset(i)
	}
	s.weight.Store(int64(n.Weight) * fullWeight)
	s.hash.Store(hashName(n.Name))
	s.local.Store(r.cfg.Zone == "" || n.Zone == r.cfg.Zone)
	s.node.Store(&n)
	r.tag(i, &n)
}

// Stats returns the router's counters.
func (r *Router) Stats() *Stats { return &r.stats }

// Flying returns a node's reads in flight.
func (r *Router) Flying(node int) int64 { return r.slots[node].flying.Load() }

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
	// floor is a part of mark, also for relaxed reads, which have no other.
	floor tidegate.Position
	// oldest is when the replica must be current at least. It is ageless where any age
	// will do; zero, for causal reads, asks for nothing.
	oldest  int64
	exclude uint64
	// second are nodes that are used only when no other qualifies; see Router.best.
	second uint64
	// leave makes a session whose own reads crowd its replica wait for what it takes
	// to leave it, rather than stay: with reads in flight all the time it would never
	// be ready to. One that others crowd out stays until it need not wait.
	leave bool
}

// ageless is the time that every replica is current at.
const ageless = math.MinInt64

// oldest returns the time that a replica must be current at for a relaxed class.
func oldest(c tidegate.Class, now int64) int64 {
	if budget, anyAge := c.Budget(); !anyAge {
		return now - int64(budget)
	}
	return ageless
}

func (r *Router) eligible(t *freshness.Table, i int, n *need) bool {
	x := &t.Nodes[i]
	if !x.Usable || n.exclude&(1<<uint(i)) != 0 {
		return false
	}
	if n.relaxed {
		return x.Applied.Covers(n.floor) && within(x, n.oldest)
	}
	return x.Applied.Covers(n.mark) && (n.oldest == 0 || within(x, n.oldest))
}

// oldestFor returns when a replica must be current at least for a causal read of a
// session. One that has a mark needs the mark. One that has none may have forgotten one,
// with its token, that was too old: so a token lives longer than LongestLag, and what
// the session had written before that is there. The ledger is locked.
func (r *Router) oldestFor(l *ledger.Ledger) int64 {
	if r.cfg.LongestLag > 0 && l.Fresh() {
		return mono.Now() - int64(r.cfg.LongestLag)
	}
	return 0
}

// within reports whether a replica is proven to be current at a time.
func within(x *freshness.Node, oldest int64) bool {
	return oldest == ageless || x.Current != 0 && x.Current >= oldest
}

// ties are the least loaded of the nodes that were offered, by reads in flight
// relative to weight.
type ties struct {
	nodes uint64 // a bit set
	// load and weight are those of the first of them; total is the weight of all.
	load, weight, total int64
}

func (s *ties) offer(i int, load, weight int64) {
	a, b := load*s.weight, s.load*weight
	switch {
	case s.nodes == 0 || a < b:
		*s = ties{1 << uint(i), load, weight, weight}
	case a == b:
		s.nodes |= 1 << uint(i)
		s.total += weight
	}
}

// draw lets chance decide by weight, so that shares are kept also where hardly
// anything is in flight.
func (s *ties) draw(r *Router) int {
	if s.nodes == 0 {
		return freshness.NoNode
	}
	m := s.nodes
	if m&(m-1) != 0 {
		// Up to the last one: weights can have been lowered since they were added up.
		for at := chance.Int64N(s.total); m&(m-1) != 0; m &= m - 1 {
			if at -= r.slots[bits.TrailingZeros64(m)].weight.Load(); at < 0 {
				break
			}
		}
	}
	return bits.TrailingZeros64(m)
}

// spread picks among the eligible nodes: the least loaded of the own zone;
// another zone only when the own one has none or is loaded clearly more.
func (r *Router) spread(t *freshness.Table, n *need) int {
	var near, far ties
	for i := range t.Nodes {
		if !r.eligible(t, i, n) {
			continue
		}
		if s := &r.slots[i]; s.local.Load() {
			near.offer(i, s.flying.Load(), s.weight.Load())
		} else {
			far.offer(i, s.flying.Load(), s.weight.Load())
		}
	}
	if near.nodes == 0 || far.nodes != 0 && near.load > far.load+2*littleLoaded {
		return far.draw(r)
	}
	return near.draw(r)
}

// rendezvous picks for a session's first read: the highest weighted hash of its
// nonce among the little loaded, so that parallel first requests of one session
// agree and need not be resolved against each other.
func (r *Router) rendezvous(t *freshness.Table, n *need, nonce uint64) int {
	least := r.spread(t, n)
	if least == freshness.NoNode || nonce == 0 {
		return least
	}
	limit := r.Flying(least) + littleLoaded
	best, score := freshness.NoNode, math.Inf(-1)
	for i := range t.Nodes {
		s := &r.slots[i]
		if s.local.Load() != r.slots[least].local.Load() || !r.eligible(t, i, n) || s.flying.Load() > limit {
			continue
		}
		// Weighted rendezvous hashing: -w / ln(u) with u uniform in (0, 1).
		u := (float64(mix(nonce^s.hash.Load())>>11) + .5) / (1 << 53)
		if x := -float64(s.weight.Load()) / math.Log(u); x > score {
			best, score = i, x
		}
	}
	if best == freshness.NoNode {
		return least
	}
	return best
}

// room reports whether the slot is clearly less loaded than one of weight w with f
// reads in flight.
func (s *slot) room(f, w int64) bool {
	own := s.weight.Load()
	return s.flying.Load()*w+littleLoaded*own < f*own
}

// crowded reports whether some eligible node has clearly more room than i.
func (r *Router) crowded(t *freshness.Table, i int, n *need) bool {
	f, w := r.Flying(i), r.slots[i].weight.Load()
	for j := range t.Nodes {
		if s := &r.slots[j]; j != i && s.room(f, w) && r.eligible(t, j, n) {
			return true
		}
	}
	return false
}

// staying returns where the session can stay: what it has covers its own mark, and has to
// have the floor, too. The ledger is locked.
func staying(l *ledger.Ledger, t *freshness.Table, n *need) int {
	i := l.Stay(t, n.exclude)
	if i != freshness.NoNode && !t.Nodes[i].Applied.Covers(n.floor) {
		return freshness.NoNode
	}
	return i
}

// settle settles the books and counts what they say of another history. Whoever gets
// Changed asks them for the verdict. The ledger is locked.
func (r *Router) settle(l *ledger.Ledger, t *freshness.Table, asks *ledger.Asks) ledger.Status {
	status := l.Settle(t, asks)
	if status != ledger.Changed {
		if v := l.Verdict(); v != tidegate.VerdictNone {
			r.stats.Verdicts[v].Add(1)
		}
	}
	return status
}

// pickCausal picks for a causal read, or says what is missing. The ledger is
// locked.
func (r *Router) pickCausal(l *ledger.Ledger, t *freshness.Table, n *need, asks *ledger.Asks) (int, tidegate.Reason, ledger.Status) {
	// Staying asks for nothing and changes no token.
	n.mark = l.Need().Join(n.floor)
	stay := staying(l, t, n)
	if stay != freshness.NoNode && (r.Flying(stay) <= littleLoaded || !r.crowded(t, stay, n)) {
		return stay, tidegate.ReasonStayed, ledger.Settled
	}
	fresh := l.Fresh()
	if fresh {
		n.oldest = r.oldestFor(l)
	}
	status := r.settle(l, t, asks)
	if status == ledger.Changed {
		return freshness.NoNode, tidegate.ReasonHistoryChanged, status
	}
	n.mark = l.Need().Join(n.floor)
	i := freshness.NoNode
	switch {
	case status == ledger.Open && stay == freshness.NoNode:
		// The one entry that is left open may be where the session can stay.
		stay = staying(l, t, n)
	case status == ledger.Open && n.leave:
		return freshness.NoNode, tidegate.ReasonBehind, status
	case status == ledger.Open:
	case fresh:
		i = r.rendezvous(t, n, l.Nonce())
	default:
		i = r.spread(t, n)
	}
	if i == freshness.NoNode && stay != freshness.NoNode {
		// Leaving would have to wait for facts, or for a replica to catch up with
		// this one; a crowded replica answers sooner.
		return stay, tidegate.ReasonStayed, ledger.Settled
	}
	return i, tidegate.ReasonCovered, status
}
