package route

import (
	"sync"
	"time"

	"github.com/tidegatedb/tidegate/internal/chance"
	"github.com/tidegatedb/tidegate/internal/freshness"
)

const (
	// balanceEvery is how often reads are counted, balanceReads of how many at least: of
	// fewer chance makes the most.
	balanceEvery = int64(time.Second)
	balanceReads = 200
	// A node is heavy that has heavyTimes its fair part of the reads.
	heavyTimes = 1.15
	// moveEvery is of how many reads on a heavy node one leaves with its session, if
	// another one has what it needs at once.
	moveEvery = 32
	// balanceFor is for how long sessions move when a replica has come back, or is new.
	// Without an end a lone busy session would go to and fro.
	balanceFor = int64(time.Minute)
)

// balance gives a replica that has come back, or is new, its part of the sessions.
// Sessions stay where they read, and where few new ones come it would have next to none
// for as long as the others can bear it.
type balance struct {
	mu   sync.Mutex
	next int64
	// peers were there the last time; until is when the newest of them has had its time.
	peers uint64
	until int64
	seen  [MaxNodes]uint64 // up to where each node's reads are counted
}

// peers returns the replicas that reads choose among, as a bit set: those of the own
// zone, or all if there is none.
func (r *Router) peers(t *freshness.Table) uint64 {
	if local := r.comparable(t, true); local != 0 {
		return local
	}
	return r.comparable(t, false)
}

// Balance finds out which replicas have more than their part.
func (r *Router) Balance(t *freshness.Table, now int64) {
	b := &r.balance
	b.mu.Lock()
	defer b.mu.Unlock()
	local := r.peers(t)
	if local&^b.peers != 0 && b.next != 0 {
		b.until = now + balanceFor
	}
	b.peers = local
	if now >= b.until && r.heavy.Load() != 0 {
		r.heavy.Store(0) // also where too little is read to count anew
	}
	if now < b.next {
		return
	}
	var reads [MaxNodes]uint64
	var all uint64
	var weights int64
	for i := range t.Nodes {
		if local>>uint(i)&1 == 0 {
			continue
		}
		reads[i] = r.slots[i].flying.since(b.seen[i])
		all += reads[i]
		weights += r.slots[i].weight.Load()
	}
	if all < balanceReads {
		return
	}
	b.next = now + balanceEvery
	for i := range t.Nodes {
		fair := float64(all) * float64(r.slots[i].weight.Load()) / float64(weights)
		setBit(&r.heavy, 1<<uint(i), now < b.until && local>>uint(i)&1 != 0 && float64(reads[i]) > heavyTimes*fair)
		b.seen[i] = r.slots[i].flying.all()
	}
}

// comparable returns the replicas that are as good as each other, of the own zone or all.
func (r *Router) comparable(t *freshness.Table, local bool) (set uint64) {
	for i := range t.Nodes {
		if t.Nodes[i].Usable && (!local || r.slots[i].local.Load()) {
			set |= 1 << uint(i)
		}
	}
	return set &^ (r.outs.Load() | r.slows.Load() | r.apart.Load())
}

// moves reports whether a read leaves the node where its session reads for the sake of
// balance, if another one will do.
func (r *Router) moves(tk *Ticket, t *freshness.Table, node int) bool {
	if r.heavy.Load()>>uint(node)&1 == 0 { // short enough to be inlined
		return false
	}
	if chance.Int64N(moveEvery) == 0 {
		tk.move = ^r.peers(t) | 1<<uint(node)
	}
	return tk.move != 0
}
