package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
)

// silent is a source that does not answer.
type silent struct{ _ int }

func (*silent) Probe(ctx context.Context, _ []uint64) (Observation, error) {
	<-ctx.Done()
	return Observation{}, ctx.Err()
}

// A look's result can come when its node is gone, or has left its place to another.
// Nobody is told of it.
func TestNewsOfNodesThatAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		hook := tidegate.Hook{Probed: func(tidegate.Probe) { told++ }, Changed: func(c tidegate.Change) {
			if c.Kind == tidegate.NodeFound {
				told++
			}
		}}
		stays, gone, next := &silent{}, &silent{}, &silent{}
		c, err := New(Config{Cluster: "main", Nodes: []Node{{Name: "a", Source: stays}, {Name: "b", Source: gone}}, ProbeTimeout: time.Hour, Hooks: []tidegate.Hook{hook}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		table := &freshness.Table{Primary: freshness.NoNode, Nodes: make([]freshness.Node, 2)}
		table.Nodes[1].Obs = &Observation{Role: tidegate.RoleReplica, Incarnation: 7}
		late := func() int {
			told = 0
			c.probed(freshness.Result{Node: 1, Source: gone, Table: table})
			return told
		}
		if n := late(); n != 2 {
			t.Errorf("told %d times while it is there", n)
		}
		for _, nodes := range [][]Node{{{Name: "a", Source: stays}}, {{Name: "a", Source: stays}, {Name: "b", Source: next}}} {
			if _, err := c.SetNodes(nodes); err != nil {
				t.Fatal(err)
			}
			if n := late(); n != 0 {
				t.Errorf("%d nodes: told %d times of one that is gone", len(nodes), n)
			}
		}
	})
}
