package pgxgate_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// Tests that leave the cluster as they found it share one; those that break
// servers start their own.
var shared struct {
	once    sync.Once
	cluster *pgcluster.Cluster
	err     error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.cluster != nil {
		if err := shared.cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the shared cluster:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// setup is what each test finds on the primary.
const setup = `
create role app login;
create table kv (k bigint primary key, v bigint not null) with (fillfactor = 50);
insert into kv select i, 0 from generate_series(0, 999) i;
grant all on kv to app;
grant create on schema public to app;
`

// cluster returns the shared cluster of a primary and two replicas.
func cluster(t *testing.T) *pgcluster.Cluster {
	t.Helper()
	in := pgcluster.InstallForTest(t)
	shared.once.Do(func() {
		shared.cluster, shared.err = pgcluster.Start(context.Background(), pgcluster.Config{Install: in, Replicas: 2})
		if shared.err == nil {
			_, shared.err = ask(context.Background(), shared.cluster.Primary(), setup)
		}
		if shared.err == nil {
			shared.err = shared.cluster.Primary().WaitCaughtUp(context.Background(), len(shared.cluster.Replicas()))
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

// ownCluster returns a cluster that the test may break.
func ownCluster(t *testing.T, cfg pgcluster.Config) *pgcluster.Cluster {
	t.Helper()
	c := pgcluster.ForTest(t, cfg)
	sql(t, c.Primary(), setup)
	caughtUp(t, c)
	return c
}

// caughtUp waits until the replicas have what the primary has now.
func caughtUp(t *testing.T, c *pgcluster.Cluster) {
	t.Helper()
	if err := c.Primary().WaitCaughtUp(t.Context(), len(c.Replicas())); err != nil {
		t.Fatal(err)
	}
}

func nodes(c *pgcluster.Cluster) []pgxgate.Node {
	var all []pgxgate.Node
	for _, s := range c.Servers() {
		all = append(all, pgxgate.Node{Name: s.Name, DSN: s.DSN("app", "postgres")})
	}
	return all
}

// open returns a routed database over the cluster, as a role without privileges. What needs
// a primary fails at once where there is none.
func open(t *testing.T, c *pgcluster.Cluster, change ...func(*pgxgate.Config)) *pgxgate.DB {
	t.Helper()
	cfg := pgxgate.Config{Cluster: "main", Nodes: nodes(c), PrimaryWait: -1}
	for _, f := range change {
		f(&cfg)
	}
	db, err := pgxgate.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// inSession returns a context with a new session and its decisions.
func inSession(t *testing.T) (context.Context, *tidegate.Decisions) {
	return tidegate.Observe(tidegate.WithSession(t.Context(), tidegate.NewSession()))
}

var keys atomic.Int64

// key returns a row of kv that no other test uses.
func key(t *testing.T) int64 {
	k := keys.Add(1)
	if k > 999 {
		t.Fatal("the table has 1000 rows")
	}
	return k
}

// sql runs statements on a server as superuser and returns the first value of
// the last one.
func sql(t *testing.T, s *pgcluster.Server, text string) string {
	t.Helper()
	out, err := ask(t.Context(), s, text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func ask(ctx context.Context, s *pgcluster.Server, text string) (string, error) {
	c, err := pgconn.Connect(ctx, s.DSN("", "postgres"))
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close(context.Background()) }()
	all, err := c.Exec(ctx, text).ReadAll()
	if err != nil || len(all) == 0 {
		return "", err
	}
	if rows := all[len(all)-1].Rows; len(rows) > 0 && len(rows[0]) > 0 {
		return string(rows[0][0]), nil
	}
	return "", nil
}

// pause stops a replica from replaying until the test ends or resume is called.
func pause(t *testing.T, s *pgcluster.Server) (resume func()) {
	t.Helper()
	sql(t, s, "select pg_wal_replay_pause()")
	// The request is honoured between two records.
	eventually(t, "replay to pause", func() bool { return sql(t, s, "select pg_get_wal_replay_pause_state()") == "paused" })
	var once sync.Once
	resume = func() {
		once.Do(func() {
			if _, err := ask(context.Background(), s, "select pg_wal_replay_resume()"); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(resume)
	return resume
}

// eventually waits for something a server does in its own time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain for ", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
