package engine

import (
	"context"
	"sync"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/mono"
	"github.com/tidegatedb/tidegate/internal/route"
)

// news tells the hooks what is decided and what becomes known.
type news struct {
	cluster  string
	deciding []func(context.Context, tidegate.Decision)
	probing  []func(tidegate.Probe)
	changing []func(tidegate.Change)

	mu       sync.Mutex // serialises probing and changing, and guards what follows
	last     map[int]nodeState
	epoch    tidegate.Epoch
	conflict bool
}

// nodeState is what was told of a node.
type nodeState struct {
	role        tidegate.Role
	incarnation tidegate.Incarnation
	failing     bool
	fence       tidegate.Fence
}

func (n *news) open(cfg *Config) {
	n.cluster, n.last = cfg.Cluster, map[int]nodeState{}
	for _, h := range append([]tidegate.Hook{logHook(cfg.Logger.With("cluster", cfg.Cluster))}, cfg.Hooks...) {
		if h.Decided != nil {
			n.deciding = append(n.deciding, h.Decided)
		}
		if h.Probed != nil {
			n.probing = append(n.probing, h.Probed)
		}
		if h.Changed != nil {
			n.changing = append(n.changing, h.Changed)
		}
	}
}

func (n *news) tell(c tidegate.Change) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told(c)
}

// told tells of a change; n.mu is held.
func (n *news) told(c tidegate.Change) {
	c.Cluster = n.cluster
	for _, f := range n.changing {
		f(c)
	}
}

func (n *news) added(name string) { n.tell(tidegate.Change{Kind: tidegate.NodeAdded, Node: name}) }

func (n *news) removed(node int, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told(tidegate.Change{Kind: tidegate.NodeRemoved, Node: name, Role: n.last[node].role})
	delete(n.last, node)
}

// probed takes in the result of one probe.
func (c *Core) probed(r freshness.Result) {
	defer c.judgeFloor() // when n.mu is free again
	n := &c.news
	n.mu.Lock()
	defer n.mu.Unlock()
	// Under the lock: nothing is told of a node after its NodeRemoved.
	m := c.members.get(r.Node)
	if m == nil || m.Source != r.Source {
		return // taken away a moment ago
	}
	n.node(r.Node, m.Name, r.Table)
	c.fenced(r.Node, r.Table)
	for _, i := range c.router.Judge(r.Table, mono.Now()) {
		c.judged(i)
	}
	c.router.Balance(r.Table, mono.Now())
	for _, i := range c.router.JudgePaces(r.Table, mono.Now()) {
		c.paced(i)
	}
	n.history(r.Table)
	n.share(c.router.JudgeShare(r.Table, mono.Now()))
	if len(n.probing) == 0 {
		return
	}
	p := tidegate.Probe{Cluster: n.cluster, Node: m.Name, Err: r.Err, Took: time.Duration(r.Received - r.Sent)}
	if x := &r.Table.Nodes[r.Node]; r.Err == nil && x.Obs != nil {
		p.Role, p.Usable, p.Applied = x.Obs.Role, x.Usable, x.Applied
		p.Lag, p.LagKnown = r.Table.Lag(r.Node)
		if x.Current != 0 {
			p.Staleness, p.StalenessKnown = time.Duration(mono.Now()-x.Current), true
		}
	}
	for _, f := range n.probing {
		f(p)
	}
}

// fenced tells of the other nodes what a look at this one has changed: whether they are
// fenced depends on all of them. n.mu is held.
func (c *Core) fenced(looked int, t *freshness.Table) {
	for i := range t.Nodes {
		if m := c.members.get(i); i != looked && m != nil && t.Nodes[i].Fence != c.news.last[i].fence {
			c.news.node(i, m.Name, t)
		}
	}
}

// judged tells that a node went out or came back; n.mu is held.
func (c *Core) judged(i int) {
	m := c.members.get(i)
	if m == nil {
		return
	}
	x := tidegate.Change{Kind: tidegate.NodeReturned, Node: m.Name, Role: c.news.last[i].role}
	if e, _ := c.router.Ejected(i); e.Why != tidegate.EjectionNone {
		x.Kind, x.Ejection = tidegate.NodeEjected, e.Why
	}
	c.news.told(x)
}

// paced tells that a node has become slow, or is no more; n.mu is held.
func (c *Core) paced(i int) {
	m := c.members.get(i)
	if m == nil {
		return
	}
	x := tidegate.Change{Kind: tidegate.NodeQuick, Node: m.Name, Role: c.news.last[i].role}
	slow, took := c.router.Slow(i, mono.Now())
	if x.Took = took; slow {
		x.Kind = tidegate.NodeSlow
	}
	c.news.told(x)
}

// share tells when more reads want the primary than may, and when no more do; n.mu is
// held.
func (n *news) share(s route.ShareNews) {
	switch {
	case s.Changed && s.High:
		n.told(tidegate.Change{Kind: tidegate.FallbacksHigh, Share: s.Share})
	case s.Changed:
		n.told(tidegate.Change{Kind: tidegate.FallbacksNormal, Share: s.Share})
	}
}

// history tells what has changed for the whole cluster; n.mu is held.
func (n *news) history(t *freshness.Table) {
	if t.Epoch != n.epoch {
		before := n.epoch
		n.epoch = t.Epoch
		if before.Known() && !before.Same(t.Epoch) {
			n.told(tidegate.Change{Kind: tidegate.HistoryChanged, Epoch: t.Epoch, EpochBefore: before})
		}
	}
	if t.Conflict != n.conflict {
		n.conflict = t.Conflict
		kind := tidegate.ConflictOver
		if t.Conflict {
			kind = tidegate.PrimariesConflict
		}
		n.told(tidegate.Change{Kind: kind, Epoch: t.Epoch})
	}
}

// node tells what has changed about one node; n.mu is held.
func (n *news) node(i int, name string, t *freshness.Table) {
	x := &t.Nodes[i]
	was := n.last[i]
	is := nodeState{failing: x.Err != nil, role: was.role, incarnation: was.incarnation, fence: x.Fence}
	if x.Obs != nil {
		is.role, is.incarnation = x.Obs.Role, x.Obs.Incarnation
	}
	n.last[i] = is
	c := tidegate.Change{Node: name, Role: is.role, Before: was.role, Err: x.Err}
	tell := func(kind tidegate.ChangeKind) {
		c.Kind = kind
		n.told(c)
	}
	known := was.role != tidegate.RoleUnknown
	switch {
	case is.failing && !was.failing:
		tell(tidegate.NodeFailing)
	case known && !is.failing && was.failing:
		tell(tidegate.NodeAnswering)
	}
	if is.role != was.role {
		if known {
			tell(tidegate.RoleChanged)
		} else {
			tell(tidegate.NodeFound)
		}
	}
	if known && is.incarnation != was.incarnation {
		tell(tidegate.NodeRestarted)
	}
	if c.Fence = is.fence; is.fence != was.fence {
		if is.fence != tidegate.FenceNone {
			tell(tidegate.NodeFenced)
		} else {
			tell(tidegate.NodeUnfenced)
		}
	}
}
