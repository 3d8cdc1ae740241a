package fake

import (
	"slices"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// Node is one server of a [Cluster]. It is safe for concurrent use.
type Node struct {
	c      *Cluster
	index  int
	name   string
	server uint64

	// Guarded by c.mu.
	life    tidegate.Incarnation
	role    tidegate.Role
	line    uint64
	lineage *engine.Lineage // how line came about; never changed
	least   uint64          // the line at the last checkpoint
	origin  uint64          // in which life of which server line began
	// replayed is where a primary's replay ended in this life, zero if there was none.
	replayed tidegate.Position
	log      []commit // a replica's: what it has received
	flushed  int      // a primary's: what it streams
	applied  int      // a replica's: what it has published as applied
	visible  int      // a replica's: what it shows, not less
	floor    int      // what a crash leaves
	hidden   map[int]bool
	running  []*Process
	up       *Node
	delay    time.Duration
	crashed  time.Time

	down, hung, paused, cut, mute bool
}

// Name returns the node's name.
func (n *Node) Name() string { return n.name }

// Index returns the node's place in the cluster.
func (n *Node) Index() int { return n.index }

func (n *Node) with(f func()) {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	n.advance()
	f()
}

// newLife begins a new incarnation.
func (n *Node) newLife() {
	n.c.lives++
	n.life, n.replayed = tidegate.Incarnation(n.server<<32|n.c.lives), tidegate.Position{}
}

// advance brings a cluster that moves by itself up to the present.
func (n *Node) advance() {
	if n.c.cfg.Manual {
		return
	}
	if n.role == tidegate.RolePrimary {
		return
	}
	now := time.Now()
	if n.up != nil && n.up.role != tidegate.RolePrimary {
		n.up.advance()
	}
	n.receive(len(n.streamed()))
	if now.Before(n.crashed.Add(n.c.cfg.Recovery)) {
		return
	}
	for !n.paused && !n.down && n.applied < len(n.log) && !n.log[n.applied].at.Add(n.delay).After(now) {
		n.applied++
	}
	n.visible = n.applied
}

// streamed returns what the node's upstream has for it.
func (n *Node) streamed() []commit {
	if n.up == nil || n.up.down || n.down || n.cut || !n.follows(n.up) {
		return nil
	}
	if n.up.role == tidegate.RolePrimary {
		return n.up.log[:n.up.flushed]
	}
	return n.up.log
}

// follows reports whether the node's log is a beginning of the other's: a serial
// number stands at one place of one history only.
func (n *Node) follows(up *Node) bool {
	l := len(n.log)
	return l == 0 || l <= len(up.log) && up.log[l-1].serial == n.log[l-1].serial
}

func (n *Node) receive(count int) {
	from := n.streamed()
	if from == nil {
		return
	}
	n.line, n.lineage, n.origin = n.up.line, n.up.lineage, n.up.origin
	if to := min(len(from), len(n.log)+count); to > len(n.log) {
		n.log = from[:to:to]
	}
}

// show makes a commit visible on the primary.
func (n *Node) show(index int) {
	delete(n.hidden, index)
	n.c.shows = append(n.c.shows, show{n.log[index].serial, time.Now()})
}

// view returns what the node shows.
func (n *Node) view() View {
	v := make(View, n.c.serial/64+1)
	n.into(v)
	return v
}

// into adds what the node shows to a set that is large enough.
func (n *Node) into(v View) {
	top := n.visible
	if n.role == tidegate.RolePrimary {
		top = len(n.log)
	}
	some := len(n.hidden) > 0
	for i := range n.log[:top] {
		if s := n.log[i].serial; !some || !n.hidden[i] {
			v[s/64] |= 1 << (s % 64)
		}
	}
}

// newest returns the version of a key that the node shows, zero for none.
func (n *Node) newest(key int64) int64 {
	top := n.visible
	if n.role == tidegate.RolePrimary {
		top = len(n.log)
	}
	for i, c := range slices.Backward(n.log[:top]) {
		if c.key == key && !n.hidden[i] {
			return int64(c.serial)
		}
	}
	return 0
}

// View returns what the node shows now, past all routing.
func (n *Node) View() (v View) {
	n.with(func() { v = n.view() })
	return v
}

// Version returns the version of a key that the node shows now, past all
// routing.
func (n *Node) Version(key int64) (version int64) {
	n.with(func() { version = n.newest(key) })
	return version
}

// Incarnation returns the node's present life.
func (n *Node) Incarnation() (id tidegate.Incarnation) {
	n.with(func() { id = n.life })
	return id
}

// Role returns the node's role.
func (n *Node) Role() (r tidegate.Role) {
	n.with(func() { r = n.role })
	return r
}

// Line returns the branch of the history that the node is on.
func (n *Node) Line() (line uint64) {
	n.with(func() { line = n.line })
	return line
}

// Up reports whether the node runs.
func (n *Node) Up() (up bool) {
	n.with(func() { up = !n.down })
	return up
}

// Counts returns how many commits the node has in its log, has published as
// applied, and shows.
func (n *Node) Counts() (received, applied, visible int) {
	n.with(func() {
		received, applied, visible = len(n.log), n.applied, n.visible
		if n.role == tidegate.RolePrimary {
			applied, visible = n.flushed, len(n.log)-len(n.hidden)
		}
	})
	return received, applied, visible
}
