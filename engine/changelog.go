package engine

import (
	"log/slog"
	"sync"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
)

// changeLog logs what changed about nodes: roles, reachability, histories. Not
// positions: those change all the time.
type changeLog struct {
	logger *slog.Logger
	names  []string

	mu       sync.Mutex
	last     map[int]nodeState
	epoch    tidegate.Epoch
	conflict bool
}

type nodeState struct {
	role        tidegate.Role
	incarnation tidegate.Incarnation
	failing     bool
	seen        bool
}

func (c *changeLog) changed(node int, t *freshness.Table) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if node != freshness.NoNode {
		c.node(node, &t.Nodes[node])
	}
	if t.Epoch != c.epoch {
		if c.epoch.Known() {
			c.logger.Warn("history changed", "system", t.Epoch.System, "line", t.Epoch.Line, "before", c.epoch.Line)
		}
		c.epoch = t.Epoch
	}
	if t.Conflict != c.conflict {
		c.conflict = t.Conflict
		if t.Conflict {
			c.logger.Error("more than one primary of the same line in sight: writes are refused; stop the wrong one")
		} else {
			c.logger.Info("one primary again")
		}
	}
}

func (c *changeLog) node(node int, n *freshness.Node) {
	if c.last == nil {
		c.last = make(map[int]nodeState)
	}
	was := c.last[node]
	is := nodeState{failing: n.Err != nil, seen: true, role: was.role, incarnation: was.incarnation}
	if n.Obs != nil {
		is.role, is.incarnation = n.Obs.Role, n.Obs.Incarnation
	}
	c.last[node] = is
	log := c.logger.With("node", c.names[node])
	switch {
	case is.failing && !was.failing:
		log.Warn("node does not answer probes", "error", n.Err)
	case !is.failing && was.failing:
		log.Info("node answers probes again", "role", is.role)
	}
	switch {
	case is.role != was.role && was.role != tidegate.RoleUnknown:
		log.Warn("role changed", "role", is.role, "before", was.role)
	case is.role != was.role:
		log.Info("node found", "role", is.role)
	case is.incarnation != was.incarnation:
		log.Warn("node began a new life: what it showed before proves nothing", "role", is.role)
	}
}
