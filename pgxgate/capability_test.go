package pgxgate_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// lines is a log that a test reads.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(p))
	return len(p), nil
}

// TestReplicasThatRefuseTheirPosition: readers of some managed servers refuse the functions
// that freshness is proven by. That is said once for each, with what to do, and reads do
// without them at once; nothing is ejected and returns again and again.
func TestReplicasThatRefuseTheirPosition(t *testing.T) {
	c := cluster(t)
	// For this role the function is another one.
	sql(t, c.Primary(), `create role managed login; grant all on kv to managed; create schema refuses; grant usage on schema refuses to managed;
		create function refuses.pg_last_wal_replay_lsn() returns pg_lsn language plpgsql as
		$$ begin raise feature_not_supported using message = 'Function pg_last_wal_replay_lsn() is currently not supported'; end $$;
		alter role managed set search_path = refuses, pg_catalog, public`)
	afterwards(t, c.Primary(), "drop schema refuses cascade; drop owned by managed; drop role managed")
	caughtUp(t, c)

	var log lines
	var mu sync.Mutex
	changes := map[string][]tidegate.ChangeKind{}
	db := open(t, c, func(cfg *pgxgate.Config) {
		for i, s := range c.Servers() {
			cfg.Nodes[i].DSN = s.DSN("managed", "postgres")
		}
		cfg.ProbeInterval = 20 * time.Millisecond
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		cfg.Hooks = []tidegate.Hook{{Changed: func(x tidegate.Change) {
			mu.Lock()
			defer mu.Unlock()
			changes[x.Node] = append(changes[x.Node], x.Kind)
		}}}
	})
	k := key(t)
	for i := range int64(20) {
		ctx, seen := inSession(t)
		must[any](t)(db.Write().Exec(ctx, update, k, i))
		var v int64
		if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&v); err != nil || v != i {
			t.Fatal(v, err)
		}
		if d, _ := seen.Last(); d.Role != tidegate.RolePrimary || d.Reason != tidegate.ReasonNoReplica || d.Waited > 0 || d.Unproven {
			t.Fatalf("%v, want the primary at once", d)
		}
	}
	eventually(t, "replicas that only fail to be out by now", func() bool {
		for _, n := range db.Status().Nodes[1:] {
			if n.FailedFor < 1200*time.Millisecond {
				return false
			}
		}
		return true
	})
	for _, n := range db.Status().Nodes[1:] {
		if n.Usable || n.Err == nil || !strings.Contains(n.Err.Error(), "leave it out of Config.Nodes") {
			t.Errorf("%+v, want an error that says what to do", n)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	log.mu.Lock()
	defer log.mu.Unlock()
	for _, s := range c.Replicas() {
		said := 0
		for _, line := range log.all {
			if strings.Contains(line, s.Name) {
				said++
			}
		}
		if said != 1 || len(changes[s.Name]) != 1 {
			t.Errorf("%s: %d lines in the log, changes %v; want one", s.Name, said, changes[s.Name])
		}
	}
}
