package engine

import (
	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/route"
)

// SetFloor makes every read of this process that goes to a replica, of any class, with a
// session and without, need one that has what the token requires of this cluster: from the
// next read on, and for sessions that stay where they read too. A process that was deployed
// with a migration sets the migration's token, and reads from no replica that lacks it.
//
// A floor only rises: with what was set before it asks for both. A token without a mark of
// this cluster changes nothing. A mark is judged as a session's is: one of another history,
// also after a failover, is dropped as soon as a look at the primary has shown that, and
// told as a [tidegate.FloorDropped]; until it can be judged no replica will do. Reads wait
// for replicas and go to the primary as ever.
func (c *Core) SetFloor(token tidegate.Token) {
	var marks []tidegate.Mark
	for _, m := range token.Marks() {
		if m.Cluster == c.cfg.Cluster {
			marks = append(marks, m)
		}
	}
	if len(marks) == 0 && token.CatchesUp() {
		marks = []tidegate.Mark{{Cluster: c.cfg.Cluster, CatchUp: true}}
	}
	if len(marks) == 0 {
		return
	}
	l, _ := c.open(0, marks).(*ledger.Ledger)
	c.floorMu.Lock()
	defer c.floorMu.Unlock()
	c.floored(c.router.RaiseFloor(l))
}

// judgeFloor looks at the floor after a look at a node. c.news is not locked: its hooks
// are told.
func (c *Core) judgeFloor() {
	if !c.router.FloorUnsure() {
		return
	}
	c.floorMu.Lock()
	defer c.floorMu.Unlock()
	c.floored(c.router.JudgeFloor())
}

// floored tells what has become of the floor; c.floorMu is held, so that it is told in
// order.
func (c *Core) floored(n route.FloorNews) {
	if n.Dropped {
		c.news.tell(tidegate.Change{Kind: tidegate.FloorDropped, Epoch: n.Epoch, Floor: n.Mark})
	}
	if n.Raised {
		c.news.tell(tidegate.Change{Kind: tidegate.FloorRaised, Epoch: n.Epoch, Floor: n.Mark})
	}
}
