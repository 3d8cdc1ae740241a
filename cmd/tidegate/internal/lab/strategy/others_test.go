package strategy_test

import (
	"testing"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// What the strategies do with replicas that replay nothing, on one cluster.
func TestOtherStrategies(t *testing.T) {
	t.Parallel()
	cluster, nodes := newCluster(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *pgcluster.Cluster, strategy.Nodes)
	}{
		{"primary-only", testPrimaryOnly},
		{"sticky", testSticky},
		{"probe-per-read", testProbePerRead},
		{"strong reads", testStrong},
		{"memory", testMemory},
		{"amnesia", testAmnesia},
	} {
		if !t.Run(test.name, func(t *testing.T) { test.run(t, cluster, nodes) }) {
			return // the next would meet a cluster in no known state
		}
	}
}

func testPrimaryOnly(t *testing.T, cluster *pgcluster.Cluster, nodes strategy.Nodes) {
	instance, err := strategy.PrimaryOnly{}.Open(t.Context(), 0, nodes, strategy.Config{PoolSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer instance.Close()
	a, s := app{t, instance}, &strategy.Session{ID: 1}
	replay(t, cluster, "pause")
	defer replay(t, cluster, "resume")
	a.write(s, 1, 1)
	if answer, version := a.read(s, 1); version != 1 || answer.Replica || answer.Fallback || answer.Reason != "always" {
		t.Errorf("version %d, %+v", version, answer)
	}
	// A connection that has broken costs no read.
	if _, err := cluster.Primary().SQL(t.Context(), "", "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'"); err != nil {
		t.Fatal(err)
	}
	a.read(s, 1)
}

// The pin comes with the write and holds on another instance; sessions that have
// not written go to replicas.
func testSticky(t *testing.T, cluster *pgcluster.Cluster, nodes strategy.Nodes) {
	one, other := open(t, strategy.Sticky{}, 0, nodes), open(t, strategy.Sticky{}, 1, nodes)
	s := &strategy.Session{ID: 2}
	if answer, _ := one.read(s, 2); !answer.Replica {
		t.Errorf("before the write: %+v", answer)
	}
	replay(t, cluster, "pause")
	defer replay(t, cluster, "resume")
	one.write(s, 2, 1)
	if answer, version := other.read(s, 2); version != 1 || answer.Replica || answer.Fallback || answer.Reason != "pinned" {
		t.Errorf("after the write: version %d, %+v", version, answer)
	}
	if answer, version := other.read(&strategy.Session{ID: 3}, 2); version != 0 || !answer.Replica {
		t.Errorf("another session: version %d, %+v", version, answer)
	}
	// A write that failed may have happened.
	unknown := &strategy.Session{ID: 4}
	if err := one.Write(t.Context(), unknown, 99, 1); err == nil {
		t.Error("a write to no row succeeded")
	}
	if answer, _ := one.read(unknown, 2); answer.Reason != "pinned" {
		t.Errorf("after a write that failed: %+v", answer)
	}
}

func testProbePerRead(t *testing.T, cluster *pgcluster.Cluster, nodes strategy.Nodes) {
	one, other := open(t, strategy.ProbePerRead{}, 0, nodes), open(t, strategy.ProbePerRead{}, 1, nodes)
	s := &strategy.Session{ID: 5}
	replay(t, cluster, "pause")
	one.write(s, 5, 1)
	for range 2 { // both replicas
		if answer, version := other.read(s, 5); version != 1 || answer.Replica || !answer.Fallback || answer.Reason != "behind" {
			t.Errorf("replicas replay nothing: version %d, %+v", version, answer)
		}
	}
	if answer, version := other.read(&strategy.Session{ID: 6}, 5); version != 0 || !answer.Replica {
		t.Errorf("another session: version %d, %+v", version, answer)
	}
	replay(t, cluster, "resume")
	for range 2 {
		if answer, version := other.read(s, 5); version != 1 || !answer.Replica {
			t.Errorf("replicas have caught up: version %d, %+v", version, answer)
		}
	}
}

// Every strategy gives the newest answer to a read that asks for it.
func testStrong(t *testing.T, cluster *pgcluster.Cluster, nodes strategy.Nodes) {
	replay(t, cluster, "pause")
	defer replay(t, cluster, "resume")
	writer := open(t, strategy.PrimaryOnly{}, 0, nodes)
	for i, st := range append(strategy.All(), strategy.Carriers()...) {
		a := open(t, st, 0, nodes)
		writer.write(&strategy.Session{ID: 6}, 6, int64(i+1))
		answer, version := a.readStrong(&strategy.Session{ID: 7}, 6)
		if version != int64(i+1) || answer.Replica || answer.Fallback || answer.Reason != "strong" {
			t.Errorf("%s: version %d of %d, %+v", st.Name(), version, i+1, answer)
		}
	}
}

// A session in memory goes on where it was, on its instance; an instance that
// does not know it lets it catch up.
func testMemory(t *testing.T, cluster *pgcluster.Cluster, nodes strategy.Nodes) {
	one, other := open(t, strategy.Memory{}, 0, nodes), open(t, strategy.Memory{}, 1, nodes)
	s := &strategy.Session{ID: 8}
	one.read(s, 8)
	replay(t, cluster, "pause")
	defer replay(t, cluster, "resume")
	one.write(s, 8, 1)
	for name, a := range map[string]app{"its instance": one, "a new instance": other} {
		if answer, version := a.read(s, 8); version != 1 || answer.Replica || answer.Unproven {
			t.Errorf("%s: version %d, %+v", name, version, answer)
		}
	}
	if s.Token != "" {
		t.Errorf("token %q", s.Token)
	}
	if _, bound := strategy.Strategy(strategy.Memory{}).(strategy.Homebound); !bound {
		t.Error("its sessions may hop")
	}
}

func testAmnesia(t *testing.T, cluster *pgcluster.Cluster, nodes strategy.Nodes) {
	naive := strategy.Memory{Forgets: true}
	one, other := open(t, naive, 0, nodes), open(t, naive, 1, nodes)
	s := &strategy.Session{ID: 9}
	replay(t, cluster, "pause")
	defer replay(t, cluster, "resume")
	one.write(s, 9, 1)
	if answer, version := one.read(s, 9); version != 1 || answer.Replica {
		t.Errorf("its instance: version %d, %+v", version, answer)
	}
	if answer, version := other.read(s, 9); version != 0 || !answer.Replica {
		t.Errorf("a new instance: version %d, %+v: it has lost nothing", version, answer)
	}
}
