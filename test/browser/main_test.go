// Package browser runs httpgate's cookies in a real browser: Chromium, over TLS,
// through a balancer, to two instances of an application on a PostgreSQL primary
// whose replicas lack every write.
package browser

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/tidegatedb/tidegate/internal/pgcluster"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// The tests share one browser, in which each has a jar and a cache of its own, and
// one cluster, in which each has rows of its own.
var (
	theBrowser = sync.OnceValues(startBrowser)
	theServers = sync.OnceValues(startServers)
	stops      []func() error // in the order of starting; the tests have ended when it is read
	stopsMu    sync.Mutex
)

// atEnd has something stopped after all tests.
func atEnd(stop func() error) {
	stopsMu.Lock()
	defer stopsMu.Unlock()
	stops = append(stops, stop)
}

func TestMain(m *testing.M) {
	before := runtime.NumGoroutine()
	code := m.Run()
	for i := len(stops) - 1; i >= 0; i-- {
		if err := stops[i](); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if leaked := leak(before); code == 0 && leaked != "" {
		fmt.Fprintln(os.Stderr, leaked)
		code = 1
	}
	os.Exit(code)
}

// leak describes goroutines that the tests have left.
func leak(before int) string {
	// One that has done its work may still be on its way out.
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		if runtime.NumGoroutine() <= before {
			return ""
		}
	}
	stacks := make([]byte, 1<<20)
	return "goroutines are left:\n" + string(stacks[:runtime.Stack(stacks, true)])
}

// limit bounds the life of a tab, and the start of what is shared. Nothing takes
// nearly as long; a browser that hangs must not hang the run.
const limit = 2 * time.Minute

// needs skips a test when there is no browser or no PostgreSQL, or fails it where
// they are required.
func needs(t *testing.T) {
	t.Helper()
	needChromium(t)
	pgcluster.InstallForTest(t)
}

// tab returns a new tab with a jar and a cache of its own, as the context that
// chromedp knows it by. It is closed when the test ends.
func tab(t *testing.T) context.Context {
	t.Helper()
	parent, err := theBrowser()
	if err != nil {
		t.Fatal(err)
	}
	ctx, closeTab := chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
	t.Cleanup(closeTab)
	late := time.AfterFunc(limit, closeTab)
	t.Cleanup(func() { late.Stop() })
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal("opening a tab: ", err)
	}
	return ctx
}

// servers are a cluster whose replicas replay nothing, and how the instances of
// the application reach it.
type servers struct {
	cluster *pgcluster.Cluster
	dbs     [2]*pgxgate.DB
}

// notes is how many rows there are.
const notes = 500

var setup = fmt.Sprintf(`
create role app login;
create table notes (id bigint primary key, body text not null);
insert into notes select i, 'old' from generate_series(1, %d) i;
grant all on notes to app;
`, notes)

// startServers starts the cluster, stops the replay of its replicas, and opens a
// database for each instance.
func startServers() (*servers, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cluster, err := pgcluster.Start(ctx, pgcluster.Config{Replicas: 2})
	if err != nil {
		return nil, err
	}
	atEnd(cluster.Stop)
	if _, err := cluster.Primary().SQL(ctx, "", setup); err != nil {
		return nil, err
	}
	if err := cluster.Primary().WaitCaughtUp(ctx, len(cluster.Replicas())); err != nil {
		return nil, err
	}
	for _, replica := range cluster.Replicas() {
		if err := pauseReplay(ctx, replica); err != nil {
			return nil, err
		}
	}
	s := &servers{cluster: cluster}
	for i := range s.dbs {
		// The replicas are paused before the instances are there, so that none can prove
		// how old they are: visitors are to read there all the same.
		cfg := pgxgate.Config{Cluster: "main", LongestLag: -1}
		for _, server := range cluster.Servers() {
			cfg.Nodes = append(cfg.Nodes, pgxgate.Node{Name: server.Name, DSN: server.DSN("app", "postgres")})
		}
		db, err := pgxgate.Open(ctx, cfg)
		if err != nil {
			return nil, err
		}
		atEnd(func() error { db.Close(); return nil })
		s.dbs[i] = db
	}
	return s, nil
}

// pauseReplay returns when the replica has stopped: it may finish a record first.
func pauseReplay(ctx context.Context, replica *pgcluster.Server) error {
	_, err := replica.SQL(ctx, "", "select pg_wal_replay_pause()")
	for state := ""; err == nil && state != "paused"; {
		state, err = replica.SQL(ctx, "", "select pg_get_wal_replay_pause_state()")
	}
	return err
}
