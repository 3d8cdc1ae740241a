package strategy_test

import (
	"testing"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
)

// What a round-robin application does with healthy, broken and no replicas.
func TestRoundRobin(t *testing.T) {
	t.Parallel()
	cluster, nodes := newCluster(t)
	ctx := t.Context()
	instance, err := strategy.RoundRobin{}.Open(ctx, 0, nodes, strategy.Config{PoolSize: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer instance.Close()
	session := &strategy.Session{ID: 3}

	// reads counts who answers ten reads.
	reads := func() map[string]int {
		t.Helper()
		by := map[string]int{}
		for range 10 {
			answer, err := instance.Read(ctx, session, []int64{3, 4})
			if err != nil {
				t.Fatal(err)
			}
			if len(answer.Rows) != 2 {
				t.Fatalf("rows %v", answer.Rows)
			}
			if answer.Replica != (answer.Node != "primary") || answer.Fallback == answer.Replica {
				t.Fatalf("answer %+v", answer)
			}
			by[answer.Node]++
		}
		return by
	}

	if got := reads(); got["replica-1"] != 5 || got["replica-2"] != 5 {
		t.Errorf("healthy: %v", got)
	}
	if err := instance.Write(ctx, session, 3, 2); err != nil {
		t.Fatal(err)
	}
	if err := instance.Write(ctx, session, 3, 1); err == nil {
		t.Error("a write took the row back")
	}
	if err := instance.Write(ctx, session, 99, 1); err == nil {
		t.Error("a write to no row succeeded")
	}
	if err := cluster.Primary().WaitCaughtUp(ctx, 2); err != nil {
		t.Fatal(err)
	}
	answer, err := instance.Read(ctx, session, []int64{3})
	if want := (record.Row{Key: 3, Version: 2}); err != nil || len(answer.Rows) != 1 || answer.Rows[0] != want {
		t.Errorf("after the write: %+v, %v", answer, err)
	}

	// The first reads meet broken connections and go on to the other replica.
	if err := cluster.Replicas()[0].Kill(); err != nil {
		t.Fatal(err)
	}
	if got := reads(); got["replica-2"] != 10 {
		t.Errorf("one replica is down: %v", got)
	}
	if err := cluster.Replicas()[1].Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Replicas()[0].Start(ctx); err != nil {
		t.Fatal(err)
	}
	if got := reads(); got["replica-1"] != 10 {
		t.Errorf("the other replica is down: %v", got)
	}
	if err := cluster.Replicas()[0].Kill(); err != nil {
		t.Fatal(err)
	}
	if got := reads(); got["primary"] != 10 {
		t.Errorf("both replicas are down: %v", got)
	}
	if session.Token != "" {
		t.Errorf("token %q", session.Token)
	}
}
