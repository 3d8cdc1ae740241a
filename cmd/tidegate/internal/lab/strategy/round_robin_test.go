package strategy_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

func TestStrategies(t *testing.T) {
	t.Parallel()
	for _, name := range strategy.Names() {
		s, err := strategy.Find(name)
		if err != nil || s.Name() != name || s.About() == "" {
			t.Errorf("%s: found %v, %v", name, s, err)
		}
		if !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(name) {
			t.Errorf("name %q", name)
		}
	}
	if _, err := strategy.Find("coin-toss"); err == nil {
		t.Error("there is a strategy coin-toss")
	}
}

// newCluster starts a cluster with the lab's table and an unprivileged role.
func newCluster(t *testing.T) (*pgcluster.Cluster, strategy.Nodes) {
	t.Helper()
	c := pgcluster.ForTest(t, pgcluster.Config{Replicas: 2})
	sql := fmt.Sprintf(`create role app login; create table %[1]s (k bigint primary key, v bigint not null);
		insert into %[1]s select k, 0 from generate_series(0, 9) k; grant select, update on %[1]s to app`, strategy.Table)
	if _, err := c.Primary().SQL(t.Context(), "", sql); err != nil {
		t.Fatal(err)
	}
	if err := c.Primary().WaitCaughtUp(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	n := strategy.Nodes{Primary: c.Primary().DSN("app", "")}
	for _, r := range c.Replicas() {
		n.Replicas = append(n.Replicas, r.DSN("app", ""))
	}
	return c, n
}

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
