package fake

import (
	"slices"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// SetDelay sets how long the replica takes to apply a commit.
func (n *Node) SetDelay(d time.Duration) { n.with(func() { n.delay = d }) }

// Pause stops replay; what was received goes on being received.
func (n *Node) Pause() { n.with(func() { n.paused = true }) }

// Resume lets replay go on.
func (n *Node) Resume() { n.with(func() { n.paused = false }) }

// Cut cuts the replication link: nothing is received any more, so that soon all
// that was received is applied.
func (n *Node) Cut() { n.with(func() { n.cut = true }) }

// Mend restores the replication link.
func (n *Node) Mend() { n.with(func() { n.cut = false }) }

// Hang makes probes and new connections wait for ever, or no longer.
func (n *Node) Hang(hung bool) { n.with(func() { n.hung = hung }) }

// Mute makes a replica unable to tell its line, or able again.
func (n *Node) Mute(mute bool) { n.with(func() { n.mute = mute }) }

// Stop ends the server: connections die and new ones are refused.
func (n *Node) Stop() {
	n.with(func() {
		n.down = true
		n.endProcesses()
	})
}

// Start starts the server again where it cleanly stopped.
func (n *Node) Start() {
	n.with(func() {
		if n.down {
			n.down = false
			n.newLife()
			n.visible = n.applied
		}
	})
}

// Checkpoint makes the present state what a crash leaves at least.
func (n *Node) Checkpoint() { n.with(func() { n.floor, n.least = n.applied, n.line }) }

// Crash begins a new incarnation. A replica's visible state goes back by up to
// that many commits, not below its last checkpoint. A primary loses what it had
// not flushed and shows all that it had. Connections die.
func (n *Node) Crash(back int) {
	n.with(func() {
		n.newLife()
		if n.role == tidegate.RolePrimary {
			n.log = slices.Clip(n.log[:n.flushed])
			n.replayed = at(len(n.log))
			n.endProcesses()
			clear(n.hidden)
			return
		}
		n.crashed = time.Now()
		n.applied = max(min(n.floor, n.applied), n.applied-back)
		n.visible = n.applied
	})
}

// Promote makes a replica a primary with a line that no other promotion has had:
// it shows all that it had received. Its connections and its incarnation live on. So does the old
// primary, unless it is stopped.
func (n *Node) Promote() { n.with(func() { n.promote(n.c.line + 1) }) }

// PromoteApart is Promote by somebody who knows of no other promotion: the line is the
// one behind the replica's own, which another node can have, too. In a cluster that is
// nameless it does not begin where that one did.
func (n *Node) PromoteApart() {
	n.with(func() {
		line := n.line + 1
		if n.c.cfg.Nameless && n.c.begun[tidegate.Epoch{Line: line, Fork: at(len(n.log)).Number()}] {
			line = n.c.line + 1
		}
		n.promote(line)
	})
}

func (n *Node) promote(line uint64) {
	n.log = slices.Clip(n.log)
	n.replayed = at(len(n.log))
	branches := append(slices.Clone(n.lineage.Branches), engine.Branch{Epoch: tidegate.Epoch{System: n.c.system, Line: n.line}, End: n.replayed})
	n.line, n.origin, n.lineage = line, uint64(n.life), &engine.Lineage{Branches: branches, Complete: true}
	n.c.line = max(n.c.line, line)
	n.c.begun[tidegate.Epoch{Line: line, Fork: n.replayed.Number()}] = true
	n.role, n.up = tidegate.RolePrimary, nil
	n.flushed, n.applied, n.visible = len(n.log), len(n.log), len(n.log)
}

// Follow makes a replica receive from another node, and reports false when it
// cannot: it has what the other has not.
func (n *Node) Follow(up *Node) (ok bool) {
	n.with(func() {
		if ok = n.role == tidegate.RoleReplica && n != up && n.follows(up); ok {
			n.up = up
		}
	})
	return ok
}

// Rebuild makes the node a replica that begins a new life as a copy of another.
func (n *Node) Rebuild(up *Node) {
	n.with(func() {
		n.newLife()
		n.endProcesses()
		n.role, n.up, n.down, n.cut = tidegate.RoleReplica, up, false, false
		n.log = slices.Clip(up.log[:len(up.log):len(up.log)])
		if up.role == tidegate.RolePrimary {
			n.log = slices.Clip(up.log[:up.flushed:up.flushed])
		}
		n.line, n.lineage, n.origin, n.least, n.applied, n.visible, n.floor = up.line, up.lineage, up.origin, 0, len(n.log), len(n.log), 0
		clear(n.hidden)
	})
}

// Receive lets a replica that is moved by hand receive up to so many commits.
func (n *Node) Receive(count int) { n.with(func() { n.receive(count) }) }

// Show lets a replica that is moved by hand show one more commit that it has
// received, before it is published as applied. It reports whether there was one.
func (n *Node) Show() (ok bool) {
	n.with(func() {
		ok = n.role == tidegate.RoleReplica && !n.paused && n.visible < len(n.log) && n.visible-n.applied < n.c.cfg.Ahead
		if ok {
			n.visible++
		}
	})
	return ok
}

// Publish lets a replica that is moved by hand publish one more shown commit as
// applied. It reports whether there was one.
func (n *Node) Publish() (ok bool) {
	n.with(func() {
		ok = n.role == tidegate.RoleReplica && !n.paused && n.applied < n.visible
		if ok {
			n.applied++
		}
	})
	return ok
}

// Flush makes all that a primary has committed durable, and lets it be streamed.
func (n *Node) Flush() {
	n.with(func() {
		if n.role == tidegate.RolePrimary {
			n.flushed = len(n.log)
		}
	})
}
