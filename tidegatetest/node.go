package tidegatetest

import (
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

// Node is one server of a [Cluster], for what a test does to it. It is safe for
// concurrent use.
type Node struct {
	c *Cluster
	n *fake.Node
}

// Name returns what decisions call the node.
func (n *Node) Name() string { return n.n.Name() }

// Role returns what the node is now, whatever the router knows.
func (n *Node) Role() tidegate.Role { return n.n.Role() }

// Get returns what the node itself shows, past all routing.
func (n *Node) Get(key string) (value string, ok bool) {
	return n.c.data.newest(n.c.data.writes(key), n.n.Version)
}

// Hold makes a replica apply nothing any more. It goes on answering.
func (n *Node) Hold() {
	n.c.t.Helper()
	if n.n.Role() == tidegate.RolePrimary {
		n.c.t.Errorf("tidegatetest: %s is the primary: there is no replication to hold back", n.Name())
		return
	}
	n.n.Pause()
}

// Release lets a replica that was held, or has crashed, apply again: at once all
// that its lag allows.
func (n *Node) Release() { n.n.Resume() }

// Cut cuts a replica off: it receives nothing any more, and goes on answering. What is
// written from then on is lost if it is promoted.
func (n *Node) Cut() { n.n.Cut() }

// Mend lets a replica that was cut off receive again.
func (n *Node) Mend() { n.n.Mend() }

// Lag makes a replica apply each write that much later.
func (n *Node) Lag(d time.Duration) { n.n.SetDelay(d) }

// Crash ends the node's life and begins a new one: connections die. A replica
// shows up to that many of the newest writes of all keys less, as recovery on a
// real server can, until [Node.Release].
func (n *Node) Crash(writes int) {
	if n.n.Role() == tidegate.RoleReplica {
		n.n.Pause()
	}
	n.n.Crash(writes)
}

// Stop ends the server: connections die, new ones are refused.
func (n *Node) Stop() { n.n.Stop() }

// Start starts a server that was stopped, in a new life. One whose history is not
// the primary's any more, such as a former primary, comes back as a new replica.
func (n *Node) Start() {
	if n.n.Up() {
		return
	}
	p := n.c.f.Primary()
	n.n.Start()
	if p != nil && p != n.n {
		n.follow(p)
	}
}

// Promote makes a replica the primary, after it has applied what it has received.
// The old primary is stopped and the other replicas follow the new one. What the replica
// has not received ([Node.Cut]) is lost. The router learns of it by its next look: see
// [Cluster.Probe].
func (n *Node) Promote() {
	n.c.t.Helper()
	if n.n.Role() != tidegate.RoleReplica || !n.n.Up() {
		n.c.t.Errorf("tidegatetest: %s is no running replica: only one of those can be promoted", n.Name())
		return
	}
	if old := n.c.f.Primary(); old != nil {
		old.Stop()
	}
	n.n.Promote()
	for _, o := range n.c.nodes {
		if o != n && o.n.Up() {
			o.follow(n.n)
		}
	}
}

// follow makes the node a replica of the new primary: as it is if its history is a
// part of that one's, else as a copy.
func (n *Node) follow(p *fake.Node) {
	if !n.n.Follow(p) {
		n.n.Rebuild(p)
	}
}
