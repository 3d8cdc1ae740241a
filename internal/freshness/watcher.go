package freshness

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/chance"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// Config configures a [Watcher]. All durations must be positive; the engine
// package fills in defaults and validates.
type Config struct {
	// Sources has one entry for each node.
	Sources []Source
	// Interval is the time between two probes of a node that nobody asked for.
	Interval time.Duration
	// Timeout bounds one probe, connecting included.
	Timeout time.Duration
	// DemandRate and DemandBurst bound the probes per second and node that were
	// asked for.
	DemandRate  float64
	DemandBurst int
	// ProofWait is how long a wish for a proof of what the primary shows lives.
	ProofWait time.Duration
	// Changed, if not nil, is called after each published table with the node
	// whose observation changed and the newest table. Calls come one at a time;
	// each must return quickly.
	Changed func(node int, t *Table)
}

// Watcher keeps a [Table] current. It is safe for concurrent use.
type Watcher struct {
	cfg     Config
	table   atomic.Pointer[Table]
	probers []*prober
	shown   *shownLook

	telling sync.Mutex // serialises calls of Changed

	mu      sync.Mutex // serialises publishing
	past    samples
	seen    histories
	pending pendingSet

	cancel context.CancelFunc
	wg     sync.WaitGroup
	first  chan struct{} // closed when every node was probed once
	left   atomic.Int64
}

// New returns a watcher that has not started.
func New(cfg Config) *Watcher {
	w := &Watcher{cfg: cfg, first: make(chan struct{})}
	w.table.Store(&Table{Nodes: make([]Node, len(cfg.Sources)), Primary: NoNode, next: make(chan struct{})})
	w.left.Store(int64(len(cfg.Sources)))
	for i, s := range cfg.Sources {
		w.probers = append(w.probers, newProber(w, i, s))
	}
	w.shown = newShownLook(w)
	return w
}

// Start begins to probe. The goroutines end when ctx does or Close is called.
func (w *Watcher) Start(ctx context.Context) {
	ctx, w.cancel = context.WithCancel(ctx)
	for _, p := range w.probers {
		w.wg.Go(func() { p.run(ctx) })
	}
	w.wg.Go(func() { w.shown.run(ctx) })
}

// Close stops probing and waits until no goroutine of the watcher is left.
func (w *Watcher) Close() {
	if w.cancel != nil {
		w.cancel()
	}
	w.wg.Wait()
}

// Table returns the newest table. It never is nil.
func (w *Watcher) Table() *Table { return w.table.Load() }

// First returns a channel that is closed when every node has been probed once,
// with whatever result.
func (w *Watcher) First() <-chan struct{} { return w.first }

// Demand asks for a probe of the node to be sent at the time or later, as soon
// as the node's budget allows. Demands are shared: whoever asks while one is
// under way that was sent before asks for the next one. A node whose probes fail
// is probed at its own pace only.
func (w *Watcher) Demand(node int, at int64) { w.probers[node].demand(at) }

// WantShown asks for a proof that the primary shows everything up to pos. The
// table's Shown grows when it is there.
func (w *Watcher) WantShown(pos tidegate.Position) { w.shown.want(pos) }

// WantSettled asks that probes of the primary report on these processes.
func (w *Watcher) WantSettled(processes []uint64) { w.pending.want(processes) }

// Counts returns how many probes of a node were sent by the clock and on demand.
func (w *Watcher) Counts(node int) (ticks, demands uint64) {
	p := w.probers[node]
	return p.ticks.Load(), p.demands.Load()
}

// publish replaces the table by a changed copy and wakes whoever waits.
func (w *Watcher) publish(node int, change func(*Table)) {
	w.mu.Lock()
	old := w.table.Load()
	t := old.clone()
	change(t)
	w.table.Store(t)
	w.mu.Unlock()
	close(old.next)
	if w.cfg.Changed != nil {
		w.telling.Lock()
		w.cfg.Changed(node, w.table.Load())
		w.telling.Unlock()
	}
}

// observed takes in the result of one probe.
func (w *Watcher) observed(node int, o *Observation, sent int64, err error) {
	p := w.probers[node]
	p.answered(err)
	w.publish(node, func(t *Table) {
		n := &t.Nodes[node]
		if err != nil {
			if n.Err == nil {
				n.FailedSince = sent
			}
			n.Err = err
		} else {
			n.Err, n.FailedSince = nil, 0
			n.Obs, n.Applied, n.Incarnation, n.Sent = o, o.Applied, o.Incarnation, o.Sent
		}
		before := t.Epoch
		t.settle(&w.seen)
		if t.Epoch != before {
			w.past.reset()
		}
		if err == nil && t.Primary == node {
			w.past.add(o.Ceiling, o.Sent)
		}
		for i := range t.Nodes {
			t.Nodes[i].Current = 0
			if t.Nodes[i].Usable {
				t.Nodes[i].Current = w.past.current(t.Nodes[i].Applied)
			}
		}
	})
	if !p.probed {
		p.probed = true
		if w.left.Add(-1) == 0 {
			close(w.first)
		}
	}
}

// jittered spreads the probes of many instances.
func jittered(d time.Duration) int64 {
	return int64(float64(d) * (0.9 + 0.2*chance.Float64()))
}

// probe sends one probe and publishes what it says.
func (w *Watcher) probe(ctx context.Context, p *prober, sent int64) error {
	c, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
	o, err := p.source.Probe(c, w.pending.now(sent))
	cancel()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		err = o.check()
	}
	o.Sent, o.Received = sent, mono.Now()
	w.observed(p.node, &o, sent, err)
	if err == nil && o.Role == tidegate.RolePrimary {
		w.pending.settled(&o)
	}
	return err
}

// errIncomplete is an observation that leaves something unknown: it proves
// nothing.
var errIncomplete = errors.New("freshness: the probe's answer leaves role, incarnation or system unknown")

func (o *Observation) check() error {
	if o.Role == tidegate.RoleUnknown || o.Incarnation == 0 || o.Epoch.System == 0 || o.Role == tidegate.RolePrimary && o.Epoch.Line == 0 {
		return errIncomplete
	}
	return nil
}
