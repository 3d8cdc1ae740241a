package strategy_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

func TestStrategies(t *testing.T) {
	t.Parallel()
	if got, want := strings.Join(strategy.Names(), " "), "primary-only round-robin sticky probe-per-read remote-apply tidegate"; got != want {
		t.Errorf("strategies are %s, want %s", got, want)
	}
	names := strategy.Names()
	for _, s := range slices.Concat(strategy.Carriers(), strategy.Limits(), strategy.Throttles()) {
		names = append(names, s.Name())
	}
	for _, name := range append(names, strategy.Usual()...) {
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

// replay pauses or resumes what the replicas replay.
func replay(t *testing.T, c *pgcluster.Cluster, how string) {
	t.Helper()
	for _, r := range c.Replicas() {
		if _, err := r.SQL(t.Context(), "", "select pg_wal_replay_"+how+"()"); err != nil {
			t.Fatal(err)
		}
	}
	if how == "resume" {
		if err := c.Primary().WaitCaughtUp(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
	}
}

// app is an open instance of a strategy.
type app struct {
	*testing.T
	strategy.Instance
}

func open(t *testing.T, s strategy.Strategy, number int, nodes strategy.Nodes) app {
	t.Helper()
	instance, err := s.Open(t.Context(), number, nodes, strategy.Config{PoolSize: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(instance.Close)
	return app{t, instance}
}

// read reads a row and returns the answer and the row's version.
func (a app) read(s *strategy.Session, key int64) (record.Answer, int64) {
	a.Helper()
	answer, err := a.Read(a.Context(), s, []int64{key})
	return answer, a.version(answer, key, err)
}

// readStrong is read for the newest answer.
func (a app) readStrong(s *strategy.Session, key int64) (record.Answer, int64) {
	a.Helper()
	answer, err := a.ReadStrong(a.Context(), s, []int64{key})
	return answer, a.version(answer, key, err)
}

func (a app) version(answer record.Answer, key int64, err error) int64 {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
	if len(answer.Rows) != 1 || answer.Rows[0].Key != key {
		a.Fatalf("asked for row %d: %+v", key, answer)
	}
	return answer.Rows[0].Version
}

func (a app) write(s *strategy.Session, key, version int64) {
	a.Helper()
	if err := a.Write(a.Context(), s, key, version); err != nil {
		a.Fatal(err)
	}
}
