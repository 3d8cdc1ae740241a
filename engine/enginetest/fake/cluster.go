package fake

import (
	"fmt"
	"sync"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// stride is the distance of two commits' positions: the number behind a
// position is none that the history stops at.
const stride = 10

// at returns the position behind the first n commits of a log.
func at(n int) tidegate.Position { return tidegate.At(uint64(n) * stride) }

// Config configures a [Cluster].
type Config struct {
	// Replicas is the number of replicas; node 0 is the primary.
	Replicas int
	// Manual makes the cluster move only when it is told to.
	Manual bool
	// Delay is how long a replica takes to apply a commit.
	Delay time.Duration
	// Recovery is how long a replica applies nothing after a crash.
	Recovery time.Duration
	// Ahead is how many commits a replica can show beyond what it has published
	// as applied. Zero means 1. Only a cluster that is moved by hand uses it.
	Ahead int
	// Async lets commits be shown and acknowledged before they are flushed, until
	// [Node.Flush].
	Async bool
	// Untold keeps primaries from telling how their history came about, as they do to
	// roles without the privilege: what is known of it is then what was seen of it.
	Untold bool
	// Nameless keeps servers from telling their lives apart by anything but Incarnation:
	// two that are promoted at one position cannot be told apart.
	Nameless bool
}

// commit is one entry of a log. It never changes.
type commit struct {
	serial int
	key    int64
	at     time.Time // when it was flushed or, if Async, inserted
}

// Cluster is a primary and its replicas. It is safe for concurrent use.
type Cluster struct {
	cfg    Config
	system uint64

	mu     sync.Mutex
	nodes  []*Node
	serial int
	line   uint64                  // the highest of all so far
	begun  map[tidegate.Epoch]bool // which lines began where
	lives  uint64
	shows  []show
	procs  uint64

	scratch View // of Lacking
}

// show says when a commit was first shown by a primary.
type show struct {
	serial int
	at     time.Time
}

// New returns a cluster.
func New(cfg Config) *Cluster {
	if cfg.Ahead == 0 {
		cfg.Ahead = 1
	}
	c := &Cluster{cfg: cfg, system: 77, line: 1, begun: map[tidegate.Epoch]bool{}}
	for i := range 1 + cfg.Replicas {
		n := &Node{c: c, index: i, server: uint64(1000 + i), role: tidegate.RoleReplica, line: 1, least: 1, delay: cfg.Delay, hidden: map[int]bool{}}
		n.name = fmt.Sprintf("r%d", i)
		if i == 0 {
			n.name, n.role, n.lineage = "p", tidegate.RolePrimary, &engine.Lineage{Complete: true}
		} else {
			n.up = c.nodes[0]
		}
		if i > 0 {
			n.lineage = c.nodes[0].lineage
		}
		n.newLife()
		c.nodes = append(c.nodes, n)
	}
	return c
}

// Nodes returns the nodes; the first began as the primary.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// Primary returns the primary with the highest line, or nil.
func (c *Cluster) Primary() *Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	var p *Node
	for _, n := range c.nodes {
		if n.role == tidegate.RolePrimary && !n.down && (p == nil || n.line > p.line) {
			p = n
		}
	}
	return p
}

// Shown returns all commits that some primary showed before t.
func (c *Cluster) Shown(t time.Time) View {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		n.advance()
	}
	var v View
	for _, s := range c.shows {
		if s.at.Before(t) {
			v.Add(s.serial)
		}
	}
	return v
}

// Lacking reports whether a replica that runs lacks something of need: a read that
// needs it would be wrong there.
func (c *Cluster) Lacking(need View) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		if n.role != tidegate.RoleReplica || n.down {
			continue
		}
		n.advance()
		c.scratch = append(c.scratch[:0], make(View, c.serial/64+1)...)
		if n.into(c.scratch); c.scratch.Missing(need) != 0 {
			return true
		}
	}
	return false
}

// Commit commits a write of somebody whom no gate knows, and shows it.
func (c *Cluster) Commit(key int64) int {
	p := c.Primary().Begin(key)
	s := p.Flush()
	p.End()
	return s
}
