package fake

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// Op is what somebody does to a node, for [Options.Delay].
type Op uint8

// The operations. Each is delayed once on its way to the node and once on its
// way back.
const (
	OpProbe Op = iota
	OpProof
	OpConnect
	OpRead
	OpWrite
	// OpShow is the time between the flush of a write and its being shown.
	OpShow
)

// The ways in which a node fails.
var (
	// ErrRefused is a node that is down.
	ErrRefused = errors.New("fake: connection refused")
	// ErrDead is a connection that died with its server's life.
	ErrDead = errors.New("fake: the connection is dead")
	// ErrBroken is a connection that broke in use: what was sent has happened.
	ErrBroken = errors.New("fake: the connection broke before the answer")
	// ErrNotPrimary is a write on a node that is no primary.
	ErrNotPrimary = errors.New("fake: cannot write, this is not a primary")
)

// link is how one instance reaches one node. It implements engine.Prover.
type link struct {
	n    *Node
	opts *Options
}

// leg is one way between the instance and the node.
func (l *link) leg(ctx context.Context, op Op) error {
	if l.opts.Delay == nil {
		return ctx.Err()
	}
	return sleep(ctx, l.opts.Delay(l.n, op))
}

// shortWay is how long a way is at most that only its end or a deadline ends:
// whoever gives up on the way learns of it there. That takes no timer.
const shortWay = 10 * time.Millisecond

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	if end, ok := ctx.Deadline(); d < shortWay && (!ok || d < time.Until(end)) {
		time.Sleep(d)
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask does something at the node, between the two ways.
func (l *link) ask(ctx context.Context, op Op, f func(n *Node)) error {
	if err := l.leg(ctx, op); err != nil {
		return err
	}
	if l.hangs() {
		<-ctx.Done()
		return ctx.Err()
	}
	var err error
	l.n.with(func() {
		if l.n.down {
			err = ErrRefused
			return
		}
		f(l.n)
	})
	if err != nil {
		return err
	}
	return l.leg(ctx, op)
}

func (l *link) hangs() (hung bool) {
	l.n.with(func() { hung = l.n.hung })
	return hung
}

// Probe implements engine.Source.
func (l *link) Probe(ctx context.Context, pending []uint64) (o engine.Observation, err error) {
	asked := time.Now()
	look := func() error { return l.ask(ctx, OpProbe, func(n *Node) { n.observe(&o, l.opts.Mistakes) }) }
	fate := func() error {
		if len(pending) == 0 {
			return nil
		}
		return l.ask(ctx, OpProbe, func(n *Node) { o.Asked, o.Running = pending, n.stillRunning(pending) })
	}
	if l.opts.Mistakes.PendingAfterPosition {
		fate, look = look, fate
	}
	if err = fate(); err == nil {
		err = look()
	}
	if l.opts.Probed != nil {
		l.opts.Probed(l.n, asked, &o, err)
	}
	return o, err
}

func (n *Node) stillRunning(pending []uint64) (running []uint64) {
	for _, p := range n.running {
		if slices.Contains(pending, p.id) {
			running = append(running, p.id)
		}
	}
	return running
}

// observe fills in what a probe says.
func (n *Node) observe(o *engine.Observation, m Mistakes) {
	o.Server, o.Incarnation, o.Role = n.server, n.life, n.role
	o.Epoch = tidegate.Epoch{System: n.c.system, Line: n.line}
	if !n.c.cfg.Nameless {
		o.Started = uint64(n.life)
	}
	if n.role == tidegate.RolePrimary {
		o.Applied, o.Bound, o.Ceiling = at(n.flushed), at(n.flushed), at(len(n.log))
		o.Head, o.Replayed = at(len(n.log)), n.replayed
		if !n.c.cfg.Untold {
			o.Lineage = n.lineage
		}
		if m.CeilingIsFlushed {
			o.Ceiling = o.Applied
		}
		return
	}
	o.Streamed = at(len(n.log))
	switch {
	case n.mute:
		o.Epoch.Line, o.LeastLine = 0, n.least
	case !n.c.cfg.Untold && n.line > 1:
		o.Epoch.Fork = n.lineage.Branches[len(n.lineage.Branches)-1].End.Number()
		if !n.c.cfg.Nameless {
			o.Epoch.Origin = n.origin
		}
	}
	o.Applied, o.Bound = at(n.applied), at(n.applied)
	switch {
	case m.BoundIsApplied || n.applied == len(n.log):
	case n.c.cfg.Ahead == 1:
		// The next commit may be shown, and nobody knows where it ends.
		o.Bound = tidegate.Beyond(uint64(n.applied) * stride)
	default:
		o.Bound = at(n.visible)
	}
}

// snapshot is what a primary shows: the commits of its log but the hidden ones.
type snapshot struct {
	top    int
	hidden []int
}

// Snapshot implements engine.Prover.
func (l *link) Snapshot(ctx context.Context) (engine.Snapshot, error) {
	var s snapshot
	err := l.ask(ctx, OpProof, func(n *Node) {
		s.top = len(n.log)
		for i := range n.hidden {
			s.hidden = append(s.hidden, i)
		}
	})
	return s, err
}

// Committed implements engine.Prover.
func (l *link) Committed(ctx context.Context, snap engine.Snapshot) (tidegate.Position, engine.Transactions, error) {
	s := snap.(snapshot)
	var missing []int
	var pos tidegate.Position
	err := l.ask(ctx, OpProof, func(n *Node) {
		pos = at(n.applied)
		for i, c := range n.log[:n.applied] {
			if i >= s.top || slices.Contains(s.hidden, i) {
				missing = append(missing, c.serial)
			}
		}
	})
	return pos, list(missing), err
}

// Shows implements engine.Prover.
func (l *link) Shows(ctx context.Context, t engine.Transactions) (ok bool, err error) {
	err = l.ask(ctx, OpProof, func(n *Node) {
		v := n.view()
		ok = !slices.ContainsFunc(t.([]int), func(serial int) bool { return !v.Has(serial) })
	})
	return ok, err
}

// Open implements engine.Prover.
func (l *link) Open(ctx context.Context) (tidegate.Position, engine.Transactions, error) {
	var open []int
	var pos tidegate.Position
	err := l.ask(ctx, OpProof, func(n *Node) {
		pos = at(n.flushed)
		for _, p := range n.running {
			open = append(open, int(p.id))
		}
	})
	return pos, list(open), err
}

// Ended implements engine.Prover.
func (l *link) Ended(ctx context.Context, t engine.Transactions) (ok bool, err error) {
	err = l.ask(ctx, OpProof, func(n *Node) {
		ok = !slices.ContainsFunc(n.running, func(p *Process) bool { return slices.Contains(t.([]int), int(p.id)) })
	})
	return ok, err
}

func list(l []int) engine.Transactions {
	if len(l) == 0 {
		return nil
	}
	return l
}

var _ engine.Prover = (*link)(nil)
