package pgxgate_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// TestConformance runs the suite for engines on a real cluster. Crashes that make
// a replica's state go back have a test of their own: they take a bulk load each.
func TestConformance(t *testing.T) {
	c := ownCluster(t, pgcluster.Config{Replicas: 2})
	sql(t, c.Primary(), "create table suite (k bigint primary key, v bigint not null); grant all on suite to app")
	h := &harness{cluster: c, conns: map[*pgcluster.Server]*pgx.Conn{}}
	t.Cleanup(h.close)
	enginetest.Run(t, h)
}

// harness gives the suite the same cluster again and again, with as many of its
// replicas as a subtest asks for.
type harness struct {
	cluster *pgcluster.Cluster

	mu    sync.Mutex
	conns map[*pgcluster.Server]*pgx.Conn // for the harness's own looks
}

const (
	suiteIterations = 100
	// briefest is the shortest life of a connection that leaves time to use it.
	briefest = 200 * time.Millisecond
)

func (h *harness) Iterations() int { return suiteIterations }

func (h *harness) Start(t *testing.T, replicas int) enginetest.Cluster {
	for _, r := range h.cluster.Replicas() {
		h.ask(t, r, "select pg_wal_replay_resume()")
	}
	h.ask(t, h.cluster.Primary(), "truncate suite")
	if err := h.cluster.Primary().WaitCaughtUp(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	return &suiteCluster{h, replicas}
}

func (h *harness) close() {
	for _, c := range h.conns {
		_ = c.Close(context.Background())
	}
}

// ask runs one statement on a server as superuser and returns its number, zero
// when it has none. Its connection is kept.
func (h *harness) ask(t *testing.T, s *pgcluster.Server, text string, args ...any) (n int64) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.conns[s]
	if c != nil && c.Ping(context.Background()) != nil {
		c = nil // the server has been restarted meanwhile
	}
	if c == nil {
		var err error
		if c, err = pgx.Connect(context.Background(), s.DSN("", "postgres")); err != nil {
			t.Error(err)
			return 0
		}
		h.conns[s] = c
	}
	rows, err := c.Query(context.Background(), text, append([]any{pgx.QueryExecModeExec}, args...)...)
	if err == nil {
		for rows.Next() {
			if v, e := rows.Values(); e == nil && len(v) == 1 {
				n, _ = v[0].(int64)
			}
		}
		err = rows.Err()
	}
	if err != nil {
		t.Errorf("%s: %v", text, err)
	}
	return n
}

const upsert = "insert into suite values ($1, 1) on conflict (k) do update set v = suite.v + 1 returning v"

type suiteCluster struct {
	*harness
	replicas int
}

func (c *suiteCluster) servers() []*pgcluster.Server { return c.cluster.Servers()[:1+c.replicas] }

func (c *suiteCluster) Open(ctx context.Context, o enginetest.Options) (enginetest.Gate, error) {
	g := &suiteGate{}
	cfg := pgxgate.Config{Cluster: "main", PrimaryWait: -1, Wait: o.Wait, ProofWait: o.ProofWait}
	for i, s := range c.servers() {
		p, err := pgxpool.ParseConfig(s.DSN("app", "postgres"))
		if err != nil {
			return nil, err
		}
		if o.ConnLife > 0 {
			p.MaxConnLifetime = max(o.ConnLife, briefest)
		}
		if i == 0 {
			p.ConnConfig.DialFunc = g.cut.dial
		}
		cfg.Nodes = append(cfg.Nodes, pgxgate.Node{Name: s.Name, Pool: p})
	}
	var err error
	if g.db, err = pgxgate.Open(ctx, cfg); err != nil {
		return nil, err
	}
	return g, nil
}

func (c *suiteCluster) Commit(t *testing.T, key int64) int64 {
	return c.ask(t, c.cluster.Primary(), upsert, key)
}

func (c *suiteCluster) Version(t *testing.T, replica int, key int64) int64 {
	return c.ask(t, c.cluster.Replicas()[replica], "select v from suite where k = $1", key)
}

func (c *suiteCluster) Name(replica int) string { return c.cluster.Replicas()[replica].Name }

// PauseReplica implements enginetest.Pauser. A request to pause is honoured in
// front of the next record, so there is no need to wait for it.
func (c *suiteCluster) PauseReplica(t *testing.T, replica int) {
	c.ask(t, c.cluster.Replicas()[replica], "select pg_wal_replay_pause()")
}

// ResumeReplica implements enginetest.Pauser.
func (c *suiteCluster) ResumeReplica(t *testing.T, replica int) {
	c.ask(t, c.cluster.Replicas()[replica], "select pg_wal_replay_resume()")
}

func stop(t *testing.T, s *pgcluster.Server) {
	if err := s.Stop(pgcluster.Fast); err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, s *pgcluster.Server) {
	if err := s.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// StopReplica implements enginetest.Stopper.
func (c *suiteCluster) StopReplica(t *testing.T, replica int) { stop(t, c.cluster.Replicas()[replica]) }

// StartReplica implements enginetest.Stopper.
func (c *suiteCluster) StartReplica(t *testing.T, replica int) {
	start(t, c.cluster.Replicas()[replica])
}

// StopPrimary implements enginetest.PrimaryStopper.
func (c *suiteCluster) StopPrimary(t *testing.T) { stop(t, c.cluster.Primary()) }

// StartPrimary implements enginetest.PrimaryStopper.
func (c *suiteCluster) StartPrimary(t *testing.T) { start(t, c.cluster.Primary()) }

// WriteInDoubt implements enginetest.Doubter: another transaction has inserted
// the same key, so that the write waits on the server while its connection is
// cut, and inserts its row when that transaction rolls back.
func (c *suiteCluster) WriteInDoubt(ctx context.Context, t *testing.T, g enginetest.Gate, key int64) (land func()) {
	t.Helper()
	gate := g.(*suiteGate)
	locker := must[*pgx.Conn](t)(pgx.Connect(ctx, c.cluster.Primary().DSN("app", "postgres")))
	t.Cleanup(func() { _ = locker.Close(context.Background()) })
	must[any](t)(locker.Exec(ctx, "begin"))
	must[any](t)(locker.Exec(ctx, "insert into suite values ($1, 1)", key))
	failed := make(chan error, 1)
	go func() { _, err := gate.Write(ctx, key); failed <- err }()
	eventually(t, "the write to wait", func() bool {
		return c.ask(t, c.cluster.Primary(), "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like 'insert into suite%'") > 0
	})
	gate.cut.set(true)
	if err := <-failed; err == nil {
		t.Fatal("the write in doubt was acknowledged")
	}
	gate.cut.set(false)
	return func() { must[any](t)(locker.Exec(context.Background(), "rollback")) }
}

type suiteGate struct {
	db  *pgxgate.DB
	cut cutter
}

func (g *suiteGate) Write(ctx context.Context, key int64) (v int64, err error) {
	err = g.db.Write().QueryRow(ctx, upsert, key).Scan(&v)
	return v, err
}

func (g *suiteGate) Read(ctx context.Context, class tidegate.Class, keys ...int64) (map[int64]int64, error) {
	rows, err := g.db.Read(class).Query(ctx, "select k, v from suite where k = any($1)", keys)
	if err != nil {
		return nil, err
	}
	all := map[int64]int64{}
	var k, v int64
	_, err = pgx.ForEachRow(rows, []any{&k, &v}, func() error {
		if _, twice := all[k]; twice {
			return fmt.Errorf("key %d came twice", k)
		}
		all[k] = v
		return nil
	})
	return all, err
}

func (g *suiteGate) Core() *engine.Core { return g.db.Core() }

func (g *suiteGate) Close() { g.db.Close() }
