package engine

import (
	"sync"
	"sync/atomic"

	"github.com/tidegatedb/tidegate"
)

// members are the nodes that there are now, by their index. An index stays a
// node's for as long as it is one; then it becomes free for another.
type members struct {
	mu     sync.Mutex // serialises changes
	list   [MaxNodes]atomic.Pointer[Node]
	before [2]atomic.Uint64 // probes of nodes that are gone
}

func (m *members) get(i int) *Node {
	if i < 0 || i >= MaxNodes {
		return nil
	}
	return m.list[i].Load()
}

func (m *members) set(i int, n *Node) { m.list[i].Store(n) }

// free returns the lowest index that is nobody's: the table is as long as the
// highest that was ever used. The caller holds m.mu and knows that there is one.
func (m *members) free() int {
	i := 0
	for m.list[i].Load() != nil {
		i++
	}
	return i
}

// past returns the probes by the clock and on demand of nodes that are gone.
func (m *members) past() [2]uint64 { return [2]uint64{m.before[0].Load(), m.before[1].Load()} }

// SetNodes makes the nodes of the cluster these. A node that was there before,
// with the same source, keeps what is known of it, and takes over its new name, zone,
// weight and tags. One that is not listed any more gets no further reads; those in flight
// on it end as they would have. Sources are compared with ==: they must be pointers or
// the like. It returns the sources that are not used any more; the adapter closes what
// belongs to them.
//
// A node with a new source is nobody's primary before its first look. Where that gap
// matters, add the new one and remove the old one later.
//
// Errors wrap [tidegate.ErrConfig], and [tidegate.ErrClosed] after Close; nothing
// has changed then.
func (c *Core) SetNodes(nodes []Node) (left []Source, err error) {
	nodes = complete(nodes)
	if err := validateNodes(nodes); err != nil {
		return nil, err
	}
	m := &c.members
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.Closed() {
		return nil, tidegate.ErrClosed
	}
	listed := map[Source]*Node{}
	for i := range nodes {
		listed[nodes[i].Source] = &nodes[i]
	}
	for i := range m.list {
		n := m.get(i)
		if n == nil {
			continue
		}
		if now := listed[n.Source]; now != nil {
			delete(listed, n.Source)
			if !now.equal(n) {
				m.list[i].Store(now)
				c.router.Set(i, now.policy())
			}
			if now.Name != n.Name {
				c.news.removed(i, n.Name)
				c.news.added(now.Name)
			}
			continue
		}
		left = append(left, n.Source)
		ticks, demands := c.watcher.Counts(i)
		m.before[0].Add(ticks)
		m.before[1].Add(demands)
		m.list[i].Store(nil)
		c.watcher.Set(i, nil)
		c.news.removed(i, n.Name)
	}
	for i := range nodes {
		n := &nodes[i]
		if listed[n.Source] == nil {
			continue
		}
		at := m.free()
		// The router first: as soon as the table has it, reads may go there.
		m.list[at].Store(n)
		c.router.Set(at, n.policy())
		c.news.added(n.Name)
		c.watcher.Set(at, n.Source)
	}
	return left, nil
}

// SetRollout changes which reads are routed, from the next read on.
func (c *Core) SetRollout(r tidegate.Rollout) {
	c.members.mu.Lock()
	defer c.members.mu.Unlock()
	if r != c.router.Rollout() {
		c.router.SetRollout(r)
		c.news.tell(tidegate.Change{Kind: tidegate.RolloutChanged, Rollout: r})
	}
}

// Rollout returns which reads are routed.
func (c *Core) Rollout() tidegate.Rollout { return c.router.Rollout() }
