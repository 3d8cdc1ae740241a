package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
	"github.com/tidegatedb/tidegate/internal/route"
)

// afterWrite is when a captured write asks the replicas for a look: they have
// usually caught up by then, so that the read that follows finds it done.
const afterWrite = int64(time.Millisecond)

// Core routes the reads of one cluster in one process. It is safe for concurrent
// use.
type Core struct {
	cfg      Config
	watcher  *freshness.Watcher
	router   *route.Router
	open     func(nonce uint64, marks []tidegate.Mark) tidegate.Ledger
	news     news
	members  members
	unserved unserved
	// floorMu keeps what is told of the floor in order.
	floorMu sync.Mutex
	// sessionlessWrites counts writes that no session will know of.
	sessionlessWrites atomic.Uint64
	// suspects counts writes whose session has read from a replica before.
	suspects atomic.Uint64
	ages     ages

	closeOnce sync.Once
	closed    chan struct{}
	over      atomic.Bool // closed is
}

// New returns a core that is watching its nodes. It fails only for a
// configuration that makes no sense, with an error that wraps
// [tidegate.ErrConfig] and names the field: nodes may be unreachable. The caller
// must Close it.
func New(cfg Config) (*Core, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	for _, class := range tidegate.Classes() {
		if err := cfg.admits(class); err != nil {
			return nil, fmt.Errorf("%w: Config.LongestLag: %w", tidegate.ErrConfig, err)
		}
	}
	c := &Core{cfg: cfg, closed: make(chan struct{})}
	c.news.open(&cfg)
	sources := make([]Source, len(cfg.Nodes))
	nodes := make([]route.Node, len(cfg.Nodes))
	for i := range cfg.Nodes {
		sources[i], nodes[i] = cfg.Nodes[i].Source, cfg.Nodes[i].policy()
		c.members.set(i, &cfg.Nodes[i])
	}
	c.watcher = freshness.New(freshness.Config{
		Sources: sources, Interval: cfg.ProbeInterval, Timeout: cfg.ProbeTimeout, DemandRate: cfg.DemandRate,
		DemandBurst: cfg.DemandBurst, ProofWait: cfg.ProofWait, Probed: c.probed,
	})
	c.router = route.New(route.Config{Cluster: cfg.Cluster, Nodes: nodes, Zone: cfg.Zone, Wait: cfg.Wait, ProofWait: cfg.ProofWait,
		LongestLag: cfg.LongestLag, MostLag: cfg.MostLag, Fallbacks: cfg.Fallbacks, FixedFallbacks: cfg.FixedFallbacks, FallbackWait: cfg.FallbackWait,
		FallbackShare: cfg.FallbackShare, FallbackWindow: cfg.FallbackWindow, Foreign: cfg.Foreign, PrimaryWait: cfg.PrimaryWait, Unserved: c.warnUnserved}, c.watcher)
	c.router.SetRollout(cfg.Rollout)
	c.open = func(nonce uint64, marks []tidegate.Mark) tidegate.Ledger {
		l := ledger.New(cfg.Cluster, nonce, nil)
		l.Births(c.birth)
		if cfg.Foreign == tidegate.ForeignIgnore {
			l.IgnoreForeign()
		}
		l.Merge(marks)
		return l
	}
	c.watcher.Start(context.Background())
	return c, nil
}

// birth returns the history and the life of the primary that are known now.
func (c *Core) birth() (tidegate.Epoch, tidegate.Incarnation) {
	t := c.watcher.Table()
	return t.Epoch, incarnationOf(t.PrimaryObs())
}

// Ready waits until every node has been probed once, with whatever result, or
// until ctx ends.
func (c *Core) Ready(ctx context.Context) error {
	select {
	case <-c.watcher.First():
		return nil
	case <-c.closed:
		return tidegate.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close stops watching and waits until no goroutine of the core is left. Reads
// that wait fail with the caller's context or by their own limits.
func (c *Core) Close() {
	c.closeOnce.Do(func() {
		c.over.Store(true)
		close(c.closed)
		c.watcher.Close()
	})
}

// Closed reports whether Close has been called.
func (c *Core) Closed() bool { return c.over.Load() }

// Cluster returns the cluster's name.
func (c *Core) Cluster() string { return c.cfg.Cluster }

// NodeName returns a node's name, "" where there is none with that index.
func (c *Core) NodeName(node int) string {
	if n := c.members.get(node); n != nil {
		return n.Name
	}
	return ""
}

// Primary returns the source of the node that is known to be the primary, and
// whether there is one.
func (c *Core) Primary() (Source, bool) {
	_, source := c.primary()
	return source, source != nil
}

// Suspect asks for a look at the node at once: a connection or an error
// contradicts what the table says of it.
func (c *Core) Suspect(node int) { c.watcher.Demand(node, mono.Now()) }

// Now returns this process's monotonic time in nanoseconds, the clock of
// [Observation.Sent].
func Now() int64 { return mono.Now() }

// ledger returns the ledger of a session, nil without one.
func (c *Core) ledger(s *tidegate.Session) *ledger.Ledger {
	if s == nil {
		return nil
	}
	l, _ := s.Ledger(c.cfg.Cluster, c.open).(*ledger.Ledger)
	return l
}
