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
	// Sources has one entry for each node that there is at the start.
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
	// Probed, if not nil, is called with the result of each probe when the table
	// has it. Calls come one at a time; each must return quickly.
	Probed func(Result)
}

// Result is the result of one probe.
type Result struct {
	Node           int
	Source         Source
	Sent, Received int64
	Err            error
	// Table is the newest table.
	Table *Table
}

// Watcher keeps a [Table] current. It is safe for concurrent use.
type Watcher struct {
	cfg   Config
	table atomic.Pointer[Table]
	// probers has an entry for each node of the table, nil where there is none any
	// more. It is replaced as a whole, under mu.
	probers atomic.Pointer[[]*prober]
	shown   *shownLook

	telling sync.Mutex // serialises calls of Probed

	mu      sync.Mutex // serialises publishing
	past    samples
	seen    histories
	pending pendingSet
	moments moments
	ctx     context.Context // nil before Start and after Close

	cancel context.CancelFunc
	wg     sync.WaitGroup
	first  chan struct{} // closed when every node of the start was probed once
	left   atomic.Int64
}

// New returns a watcher that has not started.
func New(cfg Config) *Watcher {
	w := &Watcher{cfg: cfg, first: make(chan struct{})}
	w.table.Store(&Table{Nodes: make([]Node, len(cfg.Sources)), Primary: NoNode, next: make(chan struct{})})
	w.left.Store(int64(len(cfg.Sources)))
	probers := make([]*prober, len(cfg.Sources))
	for i, s := range cfg.Sources {
		probers[i] = newProber(w, i, s)
		probers[i].counts = true
	}
	w.probers.Store(&probers)
	w.shown = newShownLook(w)
	return w
}

// Start begins to probe. The goroutines end when ctx does or Close is called.
func (w *Watcher) Start(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, w.cancel = context.WithCancel(ctx)
	w.ctx = ctx
	for _, p := range *w.probers.Load() {
		w.launch(p)
	}
	w.wg.Go(func() { w.shown.run(ctx) })
}

// launch starts a prober. The caller holds w.mu.
func (w *Watcher) launch(p *prober) {
	if w.ctx == nil || p == nil {
		return
	}
	ctx, cancel := context.WithCancel(w.ctx)
	p.cancel = cancel
	w.wg.Go(func() { p.run(ctx) })
}

// Close stops probing and waits until no goroutine of the watcher is left.
func (w *Watcher) Close() {
	w.mu.Lock()
	w.ctx = nil
	w.mu.Unlock()
	if w.cancel != nil {
		w.cancel()
	}
	w.wg.Wait()
}

// Set makes the source the node's, or takes the node away where it is nil. What
// was known of the node before is forgotten; a probe of it that is under way is
// cancelled and its result dropped. An index that the table does not have yet
// makes it longer.
func (w *Watcher) Set(node int, s Source) {
	w.mu.Lock()
	defer w.mu.Unlock()
	probers := append([]*prober(nil), *w.probers.Load()...)
	for len(probers) <= node {
		probers = append(probers, nil)
	}
	before := probers[node]
	probers[node] = nil
	if s != nil {
		probers[node] = newProber(w, node, s)
	}
	w.probers.Store(&probers)
	old := w.table.Load()
	t := old.clone()
	for len(t.Nodes) <= node {
		t.Nodes = append(t.Nodes, Node{})
	}
	t.Nodes[node] = Node{}
	w.settle(t)
	w.table.Store(t)
	close(old.next)
	if before != nil {
		before.stop()
	}
	w.launch(probers[node])
}

// prober returns the node's prober, or nil.
func (w *Watcher) prober(node int) *prober {
	if all := *w.probers.Load(); node >= 0 && node < len(all) {
		return all[node]
	}
	return nil
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
func (w *Watcher) Demand(node int, at int64) {
	if p := w.prober(node); p != nil {
		p.demand(at)
	}
}

// WantShown asks for a proof that the primary shows everything up to pos. The
// table's Shown grows when it is there.
func (w *Watcher) WantShown(pos tidegate.Position) { w.shown.want(pos) }

// WantSettled asks that probes of the primary report on these processes.
func (w *Watcher) WantSettled(processes []uint64) { w.pending.want(processes) }

// Silent reports whether a node has been asked and has not answered for much longer than
// it usually takes: it may hang, and it takes a while until that is a failure.
func (w *Watcher) Silent(node int, now int64) bool {
	p := w.prober(node)
	return p != nil && p.silent(now)
}

// Counts returns how many probes of a node were sent by the clock and on demand.
func (w *Watcher) Counts(node int) (ticks, demands uint64) {
	p := w.prober(node)
	if p == nil {
		return 0, 0
	}
	return p.ticks.Load(), p.demands.Load()
}

// publish replaces the table by a changed copy and wakes whoever waits. change
// says whether there is anything to publish.
func (w *Watcher) publish(change func(*Table) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.table.Load()
	t := old.clone()
	if !change(t) {
		return
	}
	w.table.Store(t)
	close(old.next)
}

// settle derives what follows from the table's observations. The caller holds w.mu.
func (w *Watcher) settle(t *Table) {
	before := t.Epoch
	if t.settle(&w.seen) {
		w.past.follow(t.Lineage.branch(before.Line), before)
	}
}

// observed takes in the result of one probe.
func (w *Watcher) observed(p *prober, o *Observation, sent, received int64, err error) {
	p.answered(err)
	node, known := p.node, false
	w.publish(func(t *Table) bool {
		if known = w.prober(node) == p; !known {
			return false // it was taken away meanwhile
		}
		n := &t.Nodes[node]
		if err != nil {
			if n.Err == nil {
				n.FailedSince = sent
			}
			n.Err = err
		} else {
			w.seen.learn(t, n, o)
			n.Err, n.FailedSince = nil, 0
			n.Obs, n.Applied, n.Incarnation, n.Sent = o, o.Applied, o.Incarnation, o.Sent
		}
		w.settle(t)
		switch {
		case err != nil:
		case t.Primary == node:
			w.past.add(o.Ceiling, o.Sent)
			t.lived(o)
			w.moments.note(t.Epoch, o.Applied, o.Received)
		case n.Usable:
			least, most := w.moments.bounds(t.Epoch, o)
			n.Delay = estimate(n.Delay, least, most)
		}
		for i := range t.Nodes {
			t.Nodes[i].Current = 0
			if t.Nodes[i].Usable {
				t.Nodes[i].Current = w.past.current(t.Nodes[i].Applied)
			}
		}
		return true
	})
	if known && w.cfg.Probed != nil {
		w.telling.Lock()
		w.cfg.Probed(Result{Node: node, Source: p.source, Sent: sent, Received: received, Err: err, Table: w.table.Load()})
		w.telling.Unlock()
	}
	p.known()
}

// jittered spreads the probes of many instances.
func jittered(d time.Duration) int64 {
	return int64(float64(d) * (0.9 + 0.2*chance.Float64()))
}

// probe sends one probe and publishes what it says.
func (w *Watcher) probe(ctx context.Context, p *prober, sent int64) error {
	c, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
	p.asking.Store(sent)
	o, err := p.source.Probe(c, w.pending.now(sent))
	p.asking.Store(0)
	if c.Err() == nil {
		p.took(mono.Now() - sent)
	}
	cancel()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		err = o.check()
	}
	o.Sent, o.Received = sent, mono.Now()
	w.observed(p, &o, sent, o.Received, err)
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
