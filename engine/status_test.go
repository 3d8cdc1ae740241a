package engine_test

import (
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r, dead := primaryStub(1, 100), replicaStub(2, 60), replicaStub(3, 0)
		dead.err = errors.New("refused")
		c := core(t, engine.Config{Rollout: tidegate.RolloutShare(.5)}, p, r, dead)
		time.Sleep(time.Second)
		r.at(100)
		c.Suspect(1)
		time.Sleep(500 * time.Millisecond)
		ctx, _ := sessionAt(t.Context(), needs(70))
		begin(ctx, t, c, strong)
		s := c.Status()
		if s.Cluster != "main" || s.Epoch != epoch(1) || s.Primary != "a" || s.Conflict || s.Rollout != tidegate.RolloutShare(.5) || s.Stats != c.Stats() {
			t.Errorf("%+v", s)
		}
		want := []engine.NodeStatus{
			{
				Node: "a", Role: tidegate.RolePrimary, Epoch: epoch(1), Incarnation: 100, Applied: tidegate.At(100), ProbeAge: 1500 * time.Millisecond,
				Share: 1, Flying: 1, Probes: 1,
			},
			{
				Node: "b", Role: tidegate.RoleReplica, Usable: true, Epoch: epoch(1), Incarnation: 200, Applied: tidegate.At(100), ProbeAge: 500 * time.Millisecond,
				LagKnown: true, Staleness: 1500 * time.Millisecond, StalenessKnown: true, Share: 1, Probes: 1, DemandProbes: 1,
			},
			{Node: "c", ProbeAge: -1, Err: dead.err, FailedFor: 1500 * time.Millisecond, Share: 1, Probes: 1},
		}
		for i := range want {
			got := s.Nodes[i]
			if got.Delay = 0; !reflect.DeepEqual(got, want[i]) {
				t.Errorf("got  %+v\nwant %+v", got, want[i])
			}
		}
		if len(s.Nodes) != len(want) {
			t.Errorf("%d nodes", len(s.Nodes))
		}
	})
}

func TestStatusOfAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := core(t, engine.Config{}, primaryStub(1, 100), primaryStub(2, 100))
		if s := c.Status(); !s.Conflict || s.Primary != "" || s.Nodes[0].Usable {
			t.Errorf("%+v", s)
		}
	})
}
