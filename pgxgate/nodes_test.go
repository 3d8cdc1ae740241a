package pgxgate_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// marked returns the cluster's nodes with a name on their connections, so that a
// test finds its own on the servers.
func marked(c *pgcluster.Cluster, name string) []pgxgate.Node {
	all := nodes(c)
	for i := range all {
		all[i].DSN += " application_name=" + name
	}
	return all
}

// connections returns how many connections of that name a server has.
func connections(t *testing.T, s *pgcluster.Server, name string) int {
	t.Helper()
	n, err := strconv.Atoi(sql(t, s, "select count(*) from pg_stat_activity where application_name = '"+name+"'"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// backends returns the server processes of that name.
func backends(t *testing.T, s *pgcluster.Server, name string) string {
	t.Helper()
	return sql(t, s, "select string_agg(pid::text, ' ' order by pid) from pg_stat_activity where application_name = '"+name+"'")
}

// readsAt makes a causal read of a new session and returns its node.
func readsAt(t *testing.T, db *pgxgate.DB) string {
	t.Helper()
	ctx, seen := inSession(t)
	var v int64
	if err := db.Read(tidegate.Causal).QueryRow(ctx, get, 1).Scan(&v); err != nil {
		t.Fatal(err)
	}
	d, _ := seen.Last()
	return d.Node
}

func set(t *testing.T, db *pgxgate.DB, nodes ...pgxgate.Node) {
	t.Helper()
	if err := db.SetNodes(nodes); err != nil {
		t.Fatal(err)
	}
}

// Replicas come and go under load: the new one gets reads, no statement fails, no
// session misses what it wrote or saw, and the connections of the old one end.
func TestSetNodesUnderLoad(t *testing.T) {
	c := cluster(t)
	const name = "set_nodes_under_load"
	all := marked(c, name)
	db := open(t, c, func(cfg *pgxgate.Config) { cfg.Nodes = all[:2] })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	var reads atomic.Int64
	var at [2]atomic.Int64 // by replica
	for range 4 {
		k := key(t)
		wg.Go(func() {
			s, seen := inSession(t)
			written := int64(0)
			for i := int64(1); ctx.Err() == nil; i++ {
				if i%10 == 1 {
					written = i
					if _, err := db.Write().Exec(s, update, k, i); err != nil {
						t.Errorf("a write: %v", err)
						return
					}
				}
				var v int64
				if err := db.Read(tidegate.Causal).QueryRow(s, get, k).Scan(&v); err != nil || v != written {
					d, _ := seen.Last()
					t.Errorf("a read: %d after %d, error %v (%v)", v, written, err, d)
					return
				}
				reads.Add(1)
				d, _ := seen.Last()
				for j := range at {
					if d.Node == all[1+j].Name {
						at[j].Add(1)
					}
				}
				if i%50 == 0 {
					s, seen = inSession(t)
				}
			}
		})
	}
	// used waits until a replica gets reads.
	used := func(j int) {
		t.Helper()
		before := at[j].Load()
		eventually(t, "reads on "+all[1+j].Name, func() bool { return t.Failed() || at[j].Load() > before+100 })
	}
	used(0)
	for range 5 {
		set(t, db, all...)
		used(1)
		used(0)
		set(t, db, all[0], all[2])
		used(1)
		eventually(t, "the connections to end", func() bool { return connections(t, c.Replicas()[0], name) == 0 })
		set(t, db, all...)
		used(0)
		set(t, db, all[:2]...)
		eventually(t, "the connections to end", func() bool { return connections(t, c.Replicas()[1], name) == 0 })
	}
	cancel()
	wg.Wait()
	t.Logf("%d reads, %d and %d on replicas", reads.Load(), at[0].Load(), at[1].Load())
	for _, n := range db.Status().Nodes {
		if n.Flying != 0 {
			t.Errorf("%d reads are in flight on %s", n.Flying, n.Node)
		}
	}
}

// A node that is given as it was keeps its connections.
func TestSetNodesKeepsConnections(t *testing.T) {
	c := cluster(t)
	const name = "set_nodes_keeps"
	all := marked(c, name)
	db := open(t, c, func(cfg *pgxgate.Config) { cfg.Nodes = all })
	for _, n := range all[1:] {
		eventually(t, "a read on "+n.Name, func() bool { return readsAt(t, db) == n.Name })
	}
	ctx, _ := inSession(t)
	must[any](t)(db.Write().Exec(ctx, update, key(t), 1))
	var before []string
	for _, s := range c.Servers() {
		before = append(before, backends(t, s, name))
	}
	again := marked(c, name) // other strings of the same contents
	again[1].Weight, again[1].Zone = 5, "here"
	slices.Reverse(again)
	set(t, db, again...)
	for _, n := range all[1:] {
		eventually(t, "a read on "+n.Name, func() bool { return readsAt(t, db) == n.Name })
	}
	must[any](t)(db.Write().Exec(ctx, update, key(t), 1))
	for i, s := range c.Servers() {
		if now := backends(t, s, name); now != before[i] {
			t.Errorf("%s: the processes are %s, were %s", s.Name, now, before[i])
		}
	}
	if n := db.Status().Nodes[1]; n.Zone != "here" {
		t.Errorf("%+v", n)
	}
}

// A name that leads elsewhere is another node.
func TestSetNodesReplaces(t *testing.T) {
	c := cluster(t)
	const name = "set_nodes_replaces"
	all := marked(c, name)
	db := open(t, c, func(cfg *pgxgate.Config) { cfg.Nodes = all[:2] })
	port := func() (port string) {
		ctx, seen := inSession(t)
		if err := db.Read(tidegate.Causal).QueryRow(ctx, "select current_setting('port')").Scan(&port); err != nil {
			t.Fatal(err)
		}
		if d, _ := seen.Last(); d.Role == tidegate.RoleReplica && d.Node != all[1].Name {
			t.Errorf("the replica is called %s", d.Node)
		}
		return port
	}
	for i := range 6 {
		s := c.Replicas()[i%2]
		to := all[1+i%2]
		to.Name = all[1].Name
		set(t, db, all[0], to)
		eventually(t, "reads on "+s.Name, func() bool { return port() == strconv.Itoa(s.Port) })
		other := c.Replicas()[1-i%2]
		eventually(t, "the connections to end", func() bool { return connections(t, other, name) == 0 })
	}
}

// Without its primary a cluster goes on reading; with it back it writes again.
func TestSetNodesTakesThePrimaryAway(t *testing.T) {
	c := cluster(t)
	all := nodes(c)
	db := open(t, c)
	k := key(t)
	ctx, seen := inSession(t)
	must[any](t)(db.Write().Exec(ctx, update, k, 1))
	caughtUp(t, c)
	var v int64
	for round := range int64(3) {
		eventually(t, "a replica to have the write", func() bool {
			if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&v); err != nil {
				t.Fatal(err)
			}
			d, _ := seen.Last()
			return d.Role == tidegate.RoleReplica
		})
		set(t, db, all[1:]...)
		if _, err := db.Write().Exec(ctx, update, k, 99); !errors.Is(err, tidegate.ErrNoPrimary) {
			t.Errorf("a write without a primary: %v", err)
		}
		if _, err := db.Primary(); !errors.Is(err, tidegate.ErrNoPrimary) {
			t.Errorf("the primary's pool: %v", err)
		}
		if err := db.Read(held).QueryRow(ctx, get, k).Scan(&v); !errors.Is(err, tidegate.ErrNoPrimary) {
			t.Errorf("a strong read: %v", err)
		}
		for range 10 {
			if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&v); err != nil || v != 1+round {
				d, _ := seen.Last()
				t.Fatalf("%d, error %v (%v)", v, err, d)
			}
		}
		set(t, db, all...)
		eventually(t, "writes", func() bool {
			_, err := db.Write().Exec(ctx, update, k, 2+round)
			if err != nil && !errors.Is(err, tidegate.ErrNoPrimary) {
				t.Fatal(err)
			}
			return err == nil
		})
		if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&v); err != nil || v != 2+round {
			t.Fatal(v, err)
		}
	}
}

// What is in use on a node that goes ends as it would have; then its connections
// are closed.
func TestSetNodesWhileConnectionsAreHeld(t *testing.T) {
	c := cluster(t)
	const name = "set_nodes_held"
	all := marked(c, name)
	db := open(t, c, func(cfg *pgxgate.Config) { cfg.Nodes = all[:2] })
	ctx, _ := inSession(t)
	caughtUp(t, c)
	conn := must[*pgxgate.Conn](t)(db.Acquire(ctx, tidegate.Causal))
	rows, err := db.Read(tidegate.Causal).Query(ctx, "select i from generate_series(1, 100000) i")
	if err != nil || !rows.Next() {
		t.Fatal(err)
	}
	onPrimary := must[*pgxgate.Conn](t)(db.Acquire(ctx, held))
	if d := conn.Decision(); d.Node != all[1].Name {
		t.Fatalf("%v, want the replica", d)
	}
	set(t, db, all[2]) // everything else goes
	n := 1
	for rows.Next() {
		n++
	}
	if err := rows.Err(); err != nil || n != 100000 {
		t.Errorf("%d rows, %v", n, err)
	}
	for _, x := range []*pgxgate.Conn{conn, onPrimary} {
		var v int64
		if err := x.Conn().QueryRow(ctx, get, 1).Scan(&v); err != nil {
			t.Errorf("on a held connection: %v", err)
		}
	}
	if connections(t, c.Replicas()[0], name) == 0 {
		t.Error("the connection is gone and held")
	}
	conn.Release()
	onPrimary.Release()
	for _, s := range c.Servers()[:2] {
		eventually(t, "the connections to end", func() bool { return connections(t, s, name) == 0 })
	}
}

// With errors nothing changes.
func TestSetNodesRefuses(t *testing.T) {
	c := cluster(t)
	all := nodes(c)
	db := open(t, c)
	for says, given := range map[string][]pgxgate.Node{
		"Config.Nodes has 0":      nil,
		"Config.Nodes[1].DSN":     {all[0], {Name: "x"}},
		"Config.Nodes[0].DSN":     {{DSN: "port=none"}},
		"Config.Nodes[1].Name":    {all[0], all[0]},
		"Config.Nodes[2].Weight ": {all[0], all[1], {DSN: all[2].DSN, Weight: -1}},
	} {
		if err := db.SetNodes(given); !errors.Is(err, tidegate.ErrConfig) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want an error that says %q", err, says)
		}
		if got := names(db); len(got) != len(all) || db.Status().Primary != all[0].Name {
			t.Errorf("the nodes are %v", got)
		}
	}
	db.Close()
	if err := db.SetNodes(all); !errors.Is(err, tidegate.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// Nothing that SetNodes began is left after Close.
func TestSetNodesLeavesNothing(t *testing.T) {
	c := cluster(t)
	const name = "set_nodes_nothing"
	all := marked(c, name)
	before := runtime.NumGoroutine()
	db := open(t, c, func(cfg *pgxgate.Config) { cfg.Nodes = all })
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			s, _ := inSession(t)
			for ctx.Err() == nil {
				var v int64
				_ = db.Read(tidegate.Causal).QueryRow(s, get, 1).Scan(&v)
				_ = db.Read(held).QueryRow(s, get, 1).Scan(&v)
			}
		})
	}
	wg.Go(func() { // until it is closed
		for i := 0; ; i++ {
			if err := db.SetNodes(all[i%3:]); errors.Is(err, tidegate.ErrClosed) {
				return
			} else if err != nil {
				t.Error(err)
				return
			}
			readsOrNot(ctx, db)
		}
	})
	eventually(t, "some changes", func() bool { return db.Stats().Probes > 200 })
	db.Close()
	cancel()
	wg.Wait()
	eventually(t, "goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
	for _, s := range c.Servers() {
		eventually(t, "the connections to "+s.Name+" to end", func() bool { return connections(t, s, name) == 0 })
	}
}

// readsOrNot makes a read that may find no node.
func readsOrNot(ctx context.Context, db *pgxgate.DB) {
	var v int64
	_ = db.Read(tidegate.Causal).QueryRow(tidegate.WithSession(ctx, tidegate.NewSession()), get, 1).Scan(&v)
}

// Nodes that are all given anew, as with a new password, are connected to before the
// old ones are left: what is missing then is one look.
func TestSetNodesConnectsFirst(t *testing.T) {
	c := cluster(t)
	db := open(t, c, func(cfg *pgxgate.Config) { cfg.Nodes = marked(c, "set_nodes_before") })
	set(t, db, marked(c, "set_nodes_after")...)
	for _, s := range c.Servers() {
		if connections(t, s, "set_nodes_after") == 0 {
			t.Errorf("%s was left before there was a connection", s.Name)
		}
	}
	eventually(t, "the primary to be known again", func() bool { return db.Status().Primary != "" })
	ctx, _ := inSession(t)
	must[any](t)(db.Write().Exec(ctx, update, key(t), 1))
}

// A connection for probes that is cut says nothing of its node: the same look is
// made on another one.
func TestCutProbeConnection(t *testing.T) {
	c := cluster(t)
	const name = "cut_probe"
	var looks, failed [3]atomic.Int64
	db := open(t, c, func(cfg *pgxgate.Config) {
		cfg.Nodes = marked(c, name)
		cfg.ProbeInterval = 5 * time.Millisecond
		cfg.Hooks = []tidegate.Hook{{Probed: func(p tidegate.Probe) {
			i := slices.IndexFunc(cfg.Nodes, func(n pgxgate.Node) bool { return n.Name == p.Node })
			looks[i].Add(1)
			if p.Err != nil {
				failed[i].Add(1)
				t.Logf("%s: %v", p.Node, p.Err)
			}
		}}}
	})
	for i, s := range c.Servers() {
		cut := sql(t, s, "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = '"+name+"'")
		if cut == "0" {
			t.Fatalf("no connection to cut on %s", s.Name)
		}
		before := looks[i].Load()
		eventually(t, "more looks", func() bool { return looks[i].Load() > before+5 })
		if n := failed[i].Load(); n != 0 {
			t.Errorf("%s: %d of %d looks failed", s.Name, n, looks[i].Load())
		}
	}
	_ = db
}
