package engine

import (
	"sync"

	"github.com/tidegatedb/tidegate"
)

// unserved are the classes of which was logged that they require tags that no node has,
// by name.
type unserved struct {
	mu   sync.Mutex
	told map[string]bool
}

// warnUnserved logs once that a class requires tags that no node has. Nodes can change, so
// it is no error.
func (c *Core) warnUnserved(class tidegate.Class) {
	u := &c.unserved
	u.mu.Lock()
	told := u.told[class.Name()]
	if u.told == nil {
		u.told = map[string]bool{}
	}
	u.told[class.Name()] = true
	u.mu.Unlock()
	if told {
		return
	}
	require, _ := class.Tags()
	c.cfg.Logger.Warn("no node has the tags that the class requires: no replica answers it", "cluster", c.cfg.Cluster, "class", class.Name(), "tags", require)
}
