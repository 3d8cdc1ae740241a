package fake

import (
	"slices"
	"time"

	"github.com/tidegatedb/tidegate"
)

// Process is a server process in the middle of a write. Whoever loses its
// connection to it does not know the outcome until it has ended.
type Process struct {
	n      *Node
	id     uint64
	key    int64
	serial int
	index  int
	ended  bool
}

// Begin begins a write on a primary; nothing is committed yet.
func (n *Node) Begin(key int64) *Process {
	p := &Process{n: n, key: key}
	n.with(func() {
		n.c.procs++
		p.id = n.c.procs
		p.ended = n.down || n.role != tidegate.RolePrimary
		if !p.ended {
			n.running = append(n.running, p)
		}
	})
	return p
}

// Flush commits: from now on replicas can receive the commit, or with Async when
// the node flushes. The primary does not show it before [Process.End]. It returns
// the commit's serial number, zero when the process is gone.
func (p *Process) Flush() (serial int) {
	n := p.n
	n.with(func() {
		defer func() { serial = p.serial }()
		if p.ended || p.serial != 0 {
			return
		}
		n.c.serial++
		p.serial, p.index = n.c.serial, len(n.log)
		n.log = append(n.log, commit{serial: p.serial, key: p.key, at: time.Now()})
		n.hidden[p.index] = true
		if !n.c.cfg.Async {
			n.flushed = len(n.log)
		}
	})
	return serial
}

// End ends the process: the primary shows what was committed.
func (p *Process) End() {
	p.n.with(func() {
		if p.ended {
			return
		}
		p.ended = true
		p.n.running = slices.DeleteFunc(p.n.running, func(q *Process) bool { return q == p })
		if p.serial != 0 {
			p.n.show(p.index)
		}
	})
}

// Ended reports whether the process is gone, and the serial number of what it
// has committed, zero for nothing.
func (p *Process) Ended() (ended bool, serial int) {
	p.n.with(func() { ended, serial = p.ended, p.serial })
	return ended, serial
}

// endProcesses ends all processes with the server. Recovery shows what they had
// flushed; the rest never was.
func (n *Node) endProcesses() {
	for _, p := range n.running {
		p.ended = true
		switch {
		case p.serial == 0:
		case p.index < len(n.log) && n.log[p.index].serial == p.serial:
			n.show(p.index)
		default:
			p.serial = 0
		}
	}
	n.running = nil
}
