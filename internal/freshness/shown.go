package freshness

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// A PostgreSQL primary flushes and streams a commit before it makes it visible,
// so a replica can show what the primary does not show yet (public analyses of
// replicated PostgreSQL call it a long fork). Before a session that has read
// from replicas is answered by the primary, the primary must be proven to show
// that much.
//
// The look is shared by everybody: it takes the primary's snapshot, then from a
// replica one list of the transactions that are committed there and not in the
// snapshot, then asks only the primary until it shows that list. Comparing both
// sides again and again would never end under load.

// shownLook proves what the primary shows, one look at a time, while somebody
// wants it.
type shownLook struct {
	w    *Watcher
	wake chan struct{}

	avoid int // the replica whose last look failed; used by run's goroutine only

	mu     sync.Mutex
	wanted tidegate.Position
	epoch  tidegate.Epoch // that wanted belongs to
	until  int64          // when the wish ends
	looks  uint64
}

func newShownLook(w *Watcher) *shownLook {
	return &shownLook{w: w, wake: make(chan struct{}, 1), avoid: NoNode}
}

func (l *shownLook) want(pos tidegate.Position) {
	now, epoch := mono.Now(), l.w.Table().Epoch
	l.mu.Lock()
	if now >= l.until || epoch != l.epoch {
		l.wanted, l.epoch = pos, epoch
	} else {
		l.wanted = l.wanted.Join(pos)
	}
	l.until = now + int64(l.w.cfg.ProofWait)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// open returns what is wanted and not yet proven.
func (l *shownLook) open(t *Table) (tidegate.Position, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wanted, mono.Now() < l.until && t.Epoch == l.epoch && !t.Shown.Covers(l.wanted)
}

func (l *shownLook) prover(t *Table, node int) Prover {
	if node == NoNode || t.Nodes[node].Err != nil {
		return nil
	}
	of := l.w.prober(node)
	if of == nil {
		return nil
	}
	p, _ := of.source.(Prover)
	return p
}

func (l *shownLook) run(ctx context.Context) {
	misses := 0
	for ctx.Err() == nil {
		t := l.w.Table()
		want, ok := l.open(t)
		if !ok {
			misses = 0
			select {
			case <-l.wake:
			case <-ctx.Done():
			}
			continue
		}
		if primary := l.prover(t, t.Primary); primary != nil {
			l.look(ctx, t, primary, want, misses)
		}
		if l.w.Table().Shown.Covers(want) {
			misses = 0
			continue
		}
		misses++
		l.askAgain(ctx, t, misses)
	}
}

// look proves what is wanted, or as much of it as can be proven: the wish is
// shared, and nothing may ever have what the greediest of its makers wants.
func (l *shownLook) look(ctx context.Context, t *Table, primary Prover, want tidegate.Position, misses int) {
	if replica := l.covering(t, want); replica != NoNode {
		l.byReplica(ctx, t, primary, replica)
		return
	}
	if misses < 2 {
		return
	}
	if replica := l.covering(t, tidegate.Position{}); replica != NoNode && !t.Shown.Covers(t.Nodes[replica].Applied) {
		l.byReplica(ctx, t, primary, replica)
	}
	// No replica has it: the transactions that were open on the primary decide,
	// which one idle writer can hold up for long.
	l.byOpen(ctx, t, primary, want)
}

// covering returns the usable replica with the newest position that covers want;
// not the one whose last look failed, if there is another.
func (l *shownLook) covering(t *Table, want tidegate.Position) int {
	best := NoNode
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if !n.Usable || !n.Applied.Covers(want) || l.prover(t, i) == nil {
			continue
		}
		if best == NoNode || best == l.avoid || i != l.avoid && n.Applied.Covers(t.Nodes[best].Applied) {
			best = i
		}
	}
	return best
}

// askAgain waits for a newer table, asking the replicas and the primary for it,
// each time a little more patiently.
func (l *shownLook) askAgain(ctx context.Context, t *Table, misses int) {
	at := mono.Now()
	if misses > 1 {
		at += int64(500*time.Microsecond) << min(misses-2, 4)
	}
	for i := range t.Nodes {
		if t.Nodes[i].Usable || i == t.Primary {
			l.w.Demand(i, at)
		}
	}
	timer := time.NewTimer(20 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-t.next:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// byReplica proves what a replica has applied to be shown by the primary.
func (l *shownLook) byReplica(ctx context.Context, t *Table, primary Prover, replica int) {
	l.avoid = replica
	ctx, cancel := context.WithTimeout(ctx, l.w.cfg.ProofWait)
	defer cancel()
	l.count()
	there := l.prover(t, replica)
	// The node can have been replaced by another with its index since then.
	if now := l.w.Table(); there == nil || l.prover(now, replica) != there || !now.Nodes[replica].Usable || now.Epoch != t.Epoch {
		return
	}
	snapshot, err := primary.Snapshot(ctx)
	if err != nil {
		return
	}
	pos, missing, err := there.Committed(ctx, snapshot)
	if err != nil {
		return
	}
	if !l.poll(ctx, t, func() (bool, error) {
		if missing == nil {
			return true, nil
		}
		return primary.Shows(ctx, missing)
	}) {
		return
	}
	l.avoid = NoNode
	l.proven(t, pos)
}

// errReplicaCovers ends the wait for open transactions: a replica has caught up,
// and its way does not depend on idle writers.
var errReplicaCovers = errors.New("freshness: a replica covers the position now")

// byOpen proves by waiting for the end of every transaction that was open when
// the primary's durable position was taken.
func (l *shownLook) byOpen(ctx context.Context, t *Table, primary Prover, want tidegate.Position) {
	ctx, cancel := context.WithTimeout(ctx, l.w.cfg.ProofWait)
	defer cancel()
	l.count()
	pos, open, err := primary.Open(ctx)
	if err != nil || !pos.Covers(want) && (t.Shown.Covers(pos) || l.covering(t, tidegate.Position{}) != NoNode) {
		return
	}
	if !l.poll(ctx, t, func() (bool, error) {
		if open == nil {
			return true, nil
		}
		if l.covering(l.w.Table(), want) != NoNode {
			return false, errReplicaCovers
		}
		return primary.Ended(ctx, open)
	}) {
		return
	}
	l.proven(t, pos)
}

func (l *shownLook) count() {
	l.mu.Lock()
	l.looks++
	l.mu.Unlock()
}

// proven publishes the proof, unless the history has changed under it.
func (l *shownLook) proven(t *Table, pos tidegate.Position) {
	if l.w.Table().Shown.Covers(pos) {
		return
	}
	l.w.publish(func(n *Table) bool {
		if n.Epoch != t.Epoch || n.Primary != t.Primary || n.Nodes[n.Primary].Obs.Server != t.Nodes[t.Primary].Obs.Server {
			return false
		}
		n.Shown = n.Shown.Join(pos)
		return true
	})
}

// poll asks until the answer is yes; at once a few times, then up to every 5 ms.
// It gives up when the primary or its history is not that of t any more.
func (l *shownLook) poll(ctx context.Context, t *Table, ask func() (bool, error)) bool {
	for try := 0; ; try++ {
		if now := l.w.Table(); now.Epoch != t.Epoch || now.Primary != t.Primary {
			return false
		}
		ok, err := ask()
		if ok || err != nil {
			return ok && err == nil
		}
		if try >= 3 {
			timer := time.NewTimer(min(500*time.Microsecond<<min(try-3, 4), 5*time.Millisecond))
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return false
			}
		}
	}
}
