package freshness

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidegatedb/tidegate/internal/mono"
)

// maxBackoff is the longest interval between probes of a node that does not
// answer. A promotion or a return must be noticed within about a second.
const maxBackoff = time.Second

// prober asks one node, one probe at a time.
type prober struct {
	w      *Watcher
	node   int
	source Source
	cancel context.CancelFunc // guarded by the watcher's mu

	// counts tells that Ready waits for the first result, or for the node to be
	// taken away.
	counts bool
	first  sync.Once

	ticks, demands atomic.Uint64
	// asking is since when the node has been asked, zero while it is not; usual is how
	// long it takes to answer, or to say that it cannot.
	asking, usual atomic.Int64

	mu      sync.Mutex
	due     int64 // when the earliest demand wants a probe; 0 none
	failing bool
	// dry tells that the prober sleeps with an empty bucket, and wakes up by itself
	// when there is a token again: no demand can be served before.
	dry  bool
	wake chan struct{}
}

func newProber(w *Watcher, node int, s Source) *prober {
	return &prober{w: w, node: node, source: s, wake: make(chan struct{}, 1)}
}

func (p *prober) demand(at int64) {
	p.mu.Lock()
	earlier := !p.failing && (p.due == 0 || at < p.due)
	if earlier {
		p.due = at
	}
	// To wake a goroutine costs whoever does it microseconds, and behind a write that
	// is a part of the write.
	wake := earlier && !p.dry
	p.mu.Unlock()
	if wake {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// known notes that the node has been probed once, or will not be.
func (p *prober) known() {
	p.first.Do(func() {
		if p.counts && p.w.left.Add(-1) == 0 {
			close(p.w.first)
		}
	})
}

// stop ends the prober for good. The caller holds the watcher's mu.
func (p *prober) stop() {
	if p.cancel != nil {
		p.cancel()
	}
	p.known()
}

// answered notes how a probe ended. It comes before the table says so: whoever
// wakes up by that may demand the next one.
func (p *prober) answered(err error) {
	p.mu.Lock()
	p.failing = err != nil
	if p.failing {
		p.due = 0
	}
	p.mu.Unlock()
}

const (
	// silence is how long a node is asked before it counts as silent, and usualTimes
	// how many times as long as usual at least: it can be far away.
	silence    = int64(100 * time.Millisecond)
	usualTimes = 4
	// usualParts is the weight of what was usual, beside one new answer.
	usualParts = 7
)

// silent reports whether the node lets the one that asks it wait for much longer than
// usual.
func (p *prober) silent(now int64) bool {
	since := p.asking.Load()
	return since != 0 && now-since > max(silence, usualTimes*p.usual.Load())
}

// took notes how long the node took for its last answer.
func (p *prober) took(d int64) {
	if was := p.usual.Load(); was != 0 {
		d = (usualParts*was + d) / (usualParts + 1)
	}
	p.usual.Store(d)
}

// bucket bounds the demand probes of a node.
type bucket struct {
	rate, burst, tokens float64
	at                  int64
}

// ready returns when the next token is there: now, or a later time.
func (b *bucket) ready(now int64) int64 {
	b.tokens = min(b.burst, b.tokens+float64(now-b.at)*b.rate/1e9)
	b.at = now
	if b.tokens >= 1 {
		return now
	}
	return now + int64((1-b.tokens)/b.rate*1e9) + 1
}

// run probes until ctx ends.
func (p *prober) run(ctx context.Context) {
	cfg := &p.w.cfg
	b := bucket{rate: cfg.DemandRate, burst: float64(cfg.DemandBurst), tokens: float64(cfg.DemandBurst), at: mono.Now()}
	interval := cfg.Interval
	tick := mono.Now() // the first probe is due at once
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := mono.Now()
		p.mu.Lock()
		at, demanded := tick, false
		ready := b.ready(now)
		p.dry = p.due == 0 && ready > now
		switch {
		case p.due != 0:
			if d := max(p.due, ready); d < at {
				at, demanded = d, true
			}
		case p.dry:
			at = min(at, ready)
		}
		if at <= now && p.due <= now {
			// A demand that comes in from here on wants a probe sent after it, and
			// so does one that is not due yet.
			p.due = 0
		}
		p.mu.Unlock()
		if d := at - now; d > 0 {
			timer.Reset(time.Duration(d))
			select {
			case <-timer.C:
			case <-p.wake:
			case <-ctx.Done():
			}
			continue
		}
		if demanded {
			b.tokens--
			p.demands.Add(1)
		} else {
			p.ticks.Add(1)
		}
		err := p.w.probe(ctx, p, mono.Now())
		if err != nil {
			interval = min(interval*2, max(maxBackoff, cfg.Interval))
		} else {
			interval = cfg.Interval
		}
		tick = mono.Now() + jittered(interval)
	}
}
