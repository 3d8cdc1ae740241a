package pgxgate_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// rewinding are the settings under which the visible state of a standby goes
// back when it crashes: pages stay in memory, restart points are far apart.
var rewinding = map[string]string{
	"shared_buffers": "256MB", "bgwriter_lru_maxpages": "0", "checkpoint_timeout": "1h", "max_wal_size": "8GB", "restart_after_crash": "on",
}

// TestBackendKilledUnderLoad kills one backend of a replica with signal 9 again
// and again. Its visible state goes back each time; no session may see that.
func TestBackendKilledUnderLoad(t *testing.T) {
	c := ownCluster(t, pgcluster.Config{Replicas: 2, Settings: rewinding})
	db := open(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	var reads, failures, back atomic.Int64
	wg.Go(func() {
		w, _ := inSession(t)
		for i := int64(1); ctx.Err() == nil; i++ {
			_, _ = db.Write().Exec(w, update, 1, i)
		}
	})
	for range 4 {
		wg.Go(func() {
			s, seen := inSession(t)
			newest := int64(0)
			for ctx.Err() == nil {
				var v int64
				if err := db.Read(tidegate.Causal).QueryRow(s, get, 1).Scan(&v); err != nil {
					failures.Add(1)
					continue
				}
				reads.Add(1)
				if v < newest {
					d, _ := seen.Last()
					t.Errorf("went back from %d to %d: %v", newest, v, d)
				}
				newest = v
			}
		})
	}
	victim := c.Replicas()[0]
	// The opportunity: somebody who looks at the victim alone sees it go back.
	look := func() (v int64) {
		out, err := ask(context.Background(), victim, "select v from kv where k = 1")
		if err != nil {
			return -1
		}
		v, _ = strconv.ParseInt(out, 10, 64)
		return v
	}
	sql(t, c.Primary(), "create table bulk (k bigint)")
	for range 3 {
		// Recovery starts at the last restart point: far back, if much has been
		// replayed since and nothing of it was written out.
		sql(t, c.Primary(), "checkpoint")
		at := sql(t, c.Primary(), "select pg_current_wal_flush_lsn()")
		eventually(t, "replay of the checkpoint", func() bool {
			return sql(t, victim, "select pg_last_wal_replay_lsn() >= '"+at+"'") == "t"
		})
		sql(t, victim, "checkpoint")
		sql(t, c.Primary(), "insert into bulk select generate_series(1, 100000)")
		at = sql(t, c.Primary(), "select pg_current_wal_flush_lsn()")
		eventually(t, "replay of the bulk", func() bool {
			return sql(t, victim, "select pg_last_wal_replay_lsn() >= '"+at+"'") == "t"
		})
		before := look()
		pid, err := strconv.Atoi(sql(t, victim, "select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() limit 1"))
		if err != nil {
			t.Fatal(err)
		}
		if err := victim.KillBackend(pid); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the victim to answer again", func() bool {
			v := look()
			if v >= 0 && v < before {
				back.Add(1)
			}
			return v >= 0
		})
		eventually(t, "the victim to catch up", func() bool { return look() > before })
	}
	cancel()
	wg.Wait()
	t.Logf("%d reads, %d failed, the victim was seen to go back %d times", reads.Load(), failures.Load(), back.Load())
	if reads.Load() < 500 || back.Load() == 0 {
		t.Errorf("too little happened to prove anything")
	}
}

func TestStartsWithANodeDown(t *testing.T) {
	c := cluster(t)
	l := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	dead := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	db := open(t, c, func(cfg *pgxgate.Config) {
		cfg.Nodes = append([]pgxgate.Node{{Name: "dead", DSN: "host=127.0.0.1 port=" + strconv.Itoa(dead) + " user=app dbname=postgres sslmode=disable"}}, cfg.Nodes...)
	})
	ctx, _ := inSession(t)
	k := key(t)
	for i := range int64(20) {
		must[any](t)(db.Write().Exec(ctx, update, k, i))
		var v int64
		if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&v); err != nil || v != i {
			t.Fatal(v, err)
		}
	}
	t.Log(db.Explain(ctx, tidegate.Causal))
}

// TestReplicaDiesAndReturns: reads fail over before their first row, and the
// replica is used again when it is back.
func TestReplicaDiesAndReturns(t *testing.T) {
	c := ownCluster(t, pgcluster.Config{Replicas: 2})
	db := open(t, c)
	victim := c.Replicas()[0]
	read := func(ctx context.Context) {
		t.Helper()
		var v int64
		if err := db.Read(tidegate.Causal).QueryRow(ctx, get, 1).Scan(&v); err != nil {
			t.Fatal(err)
		}
	}
	used := func() bool {
		for range 20 {
			ctx, seen := inSession(t)
			read(ctx)
			if d, _ := seen.Last(); d.Node == victim.Name {
				return true
			}
		}
		return false
	}
	eventually(t, "the replica to be used to begin with", used)
	if err := victim.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		ctx, _ := inSession(t)
		read(ctx)
	}
	if err := victim.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica to be used again", used)
}

// TestRestartedReplicaWhileIdle: after a restart a replica does not know what it
// has received, and nothing is written that could tell. A session that read there
// must not get stuck on a bound that nobody reaches.
func TestRestartedReplicaWhileIdle(t *testing.T) {
	c := ownCluster(t, pgcluster.Config{Replicas: 2, Settings: map[string]string{"autovacuum": "off"}})
	db := open(t, c)
	lives := map[string]tidegate.Incarnation{}
	for _, n := range db.Status().Nodes {
		lives[n.Node] = n.Incarnation
	}
	for _, r := range c.Replicas() {
		if err := r.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "both replicas to be used in their new life", func() bool {
		n := 0
		for _, s := range db.Status().Nodes {
			if s.Role == tidegate.RoleReplica && s.Usable && s.Err == nil && s.Incarnation != lives[s.Node] {
				n++
			}
		}
		return n == 2
	})
	var v int64
	strong := tidegate.Strong("strong", "makes the session leave the replica")
	for range 10 {
		ctx, seen := inSession(t)
		for _, class := range []tidegate.Class{tidegate.Causal, strong, tidegate.Causal, strong, tidegate.Causal} {
			if err := db.Read(class).QueryRow(ctx, get, 1).Scan(&v); err != nil {
				t.Fatal(err)
			}
		}
		for _, d := range seen.All() {
			if d.Unproven || d.Waited > 500*time.Millisecond || d.Class == tidegate.Causal && d.Role != tidegate.RoleReplica {
				t.Fatalf("%v (received: %q and %q)", d, sql(t, c.Replicas()[0], "select pg_last_wal_receive_lsn()"), sql(t, c.Replicas()[1], "select pg_last_wal_receive_lsn()"))
			}
		}
	}
	t.Logf("received %q, replayed %q", sql(t, c.Replicas()[0], "select pg_last_wal_receive_lsn()"), sql(t, c.Replicas()[0], "select pg_last_wal_replay_lsn()"))
}

// TestPrimaryDown: writes fail at once and clearly, sessions that replicas cover
// are served on.
func TestPrimaryDown(t *testing.T) {
	c := ownCluster(t, pgcluster.Config{Replicas: 2})
	db := open(t, c, func(cfg *pgxgate.Config) { cfg.PrimaryWait = -1 })
	ctx, _ := inSession(t)
	must[any](t)(db.Write().Exec(ctx, update, 1, 42))
	for _, r := range c.Replicas() {
		eventually(t, "replay", func() bool { return sql(t, r, "select v from kv where k = 1") == "42" })
	}
	var v int64
	if err := db.Read(tidegate.Causal).QueryRow(ctx, get, 1).Scan(&v); err != nil {
		t.Fatal(err)
	}
	if err := c.Primary().Kill(); err != nil {
		t.Fatal(err)
	}
	for range 30 {
		start := time.Now()
		if _, err := db.Write().Exec(ctx, update, 1, 43); err == nil {
			t.Fatal("a write was accepted")
		} else if time.Since(start) > 5*time.Second {
			t.Fatalf("a write took %v to fail", time.Since(start))
		}
		fresh, _ := inSession(t)
		if err := db.Read(tidegate.Causal).QueryRow(fresh, get, 1).Scan(&v); err != nil || v != 42 {
			t.Fatalf("a session without a mark got %d, error %v", v, err)
		}
	}
	// The failed writes may have reached the server: their session must not be
	// answered as if nothing had happened.
	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	err := db.Read(tidegate.Causal).QueryRow(short, get, 1).Scan(&v)
	t.Logf("the writer's own read: %v", err)

	if err := c.Primary().Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "writes to work again", func() bool { _, err := db.Write().Exec(ctx, update, 1, 44); return err == nil })
	eventually(t, "the session to be answered", func() bool {
		return db.Read(tidegate.Causal).QueryRow(ctx, get, 1).Scan(&v) == nil && v == 44
	})
}

func TestNoPrimaryIsAnErrorOfWritesOnly(t *testing.T) {
	c := cluster(t)
	// With pg_monitor a replica can tell its timeline without the primary.
	sql(t, c.Primary(), "do $$ begin create role monitor login in role pg_monitor; grant all on kv to monitor; exception when duplicate_object then null; end $$")
	for _, r := range c.Replicas() {
		eventually(t, "the role to arrive", func() bool { return sql(t, r, "select count(*) from pg_roles where rolname = 'monitor'") == "1" })
	}
	var replicas []pgxgate.Node
	for _, r := range c.Replicas() {
		replicas = append(replicas, pgxgate.Node{DSN: r.DSN("monitor", "postgres")})
	}
	db := open(t, c, func(cfg *pgxgate.Config) { cfg.Nodes, cfg.LongestLag = replicas, -1 })
	ctx, _ := inSession(t)
	if _, err := db.Write().Exec(ctx, update, 1, 1); !errors.Is(err, tidegate.ErrNoPrimary) {
		t.Errorf("write: %v", err)
	}
	if _, err := db.Primary(); !errors.Is(err, tidegate.ErrNoPrimary) {
		t.Errorf("Primary: %v", err)
	}
	var v int64
	if err := db.Read(tidegate.Causal).QueryRow(ctx, get, 1).Scan(&v); err != nil {
		t.Errorf("a session without requirements: %v (%v)", err, db.Explain(ctx, tidegate.Causal))
	}
	if err := db.Read(tidegate.Strong("s", "test")).QueryRow(ctx, get, 1).Scan(&v); !errors.Is(err, tidegate.ErrNotFresh) || !errors.Is(err, tidegate.ErrNoPrimary) {
		t.Errorf("strong: %v", err)
	}
	// How old a replica is, nobody can tell here.
	strict := open(t, c, func(cfg *pgxgate.Config) { cfg.Nodes = replicas })
	fresh, _ := inSession(t)
	if err := strict.Read(tidegate.Causal).QueryRow(fresh, get, 1).Scan(&v); !errors.Is(err, tidegate.ErrNotFresh) || !errors.Is(err, tidegate.ErrNoPrimary) {
		t.Errorf("an age that cannot be proven: %v", err)
	}
}

// TestConnectionsLiveBriefly: a connection younger than every look at its node
// still finds its proof.
func TestConnectionsLiveBriefly(t *testing.T) {
	c := cluster(t)
	const life, enough = 500 * time.Millisecond, 8
	var born atomic.Int64
	db := open(t, c, func(cfg *pgxgate.Config) {
		for i := range cfg.Nodes {
			p := must[*pgxpool.Config](t)(pgxpool.ParseConfig(cfg.Nodes[i].DSN))
			p.MaxConnLifetime = life
			p.AfterConnect = func(context.Context, *pgx.Conn) error { born.Add(1); return nil }
			cfg.Nodes[i].Pool, cfg.Nodes[i].DSN = p, ""
		}
	})
	ctx, seen := inSession(t)
	k := key(t)
	i := int64(0)
	for start := time.Now(); born.Load() < enough && time.Since(start) < time.Minute; i++ {
		must[any](t)(db.Write().Exec(ctx, update, k, i))
		var v int64
		if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&v); err != nil || v != i {
			t.Fatal(v, err)
		}
	}
	for _, d := range seen.All() {
		if d.Unproven {
			t.Errorf("decision %v", d)
		}
	}
	t.Logf("%d writes and reads on %d connections", i, born.Load())
	if born.Load() < enough {
		t.Errorf("only %d connections were made", born.Load())
	}
}

// cutter dials connections that can all be cut at once. None of them carries a
// cancel request, so that a server process whose client has gone goes on.
type cutter struct {
	mu    sync.Mutex
	conns []net.Conn
	cut   bool
}

// cancelRequest is the code of the message (protocol-message-formats in the
// manual).
const cancelRequest = 80877102

type uncancelling struct{ net.Conn }

func (c uncancelling) Write(b []byte) (int, error) {
	if len(b) >= 8 && binary.BigEndian.Uint32(b) == uint32(len(b)) && binary.BigEndian.Uint32(b[4:]) == cancelRequest {
		return 0, errors.New("no cancel requests here")
	}
	return c.Conn.Write(b)
}

func (x *cutter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cut {
		return nil, errors.New("cut")
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	x.conns = append(x.conns, c)
	return uncancelling{c}, nil
}

func (x *cutter) set(cut bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.cut = cut
	if cut {
		for _, c := range x.conns {
			_ = c.Close()
		}
		x.conns = nil
	}
}

// TestUnknownOutcome cuts the connection of a write that still waits on the
// server, and commits there later. Until then no answer to its session counts as
// proven: a "no" would not be final.
func TestUnknownOutcome(t *testing.T) {
	c := cluster(t)
	var x cutter
	db := open(t, c, func(cfg *pgxgate.Config) {
		p := must[*pgxpool.Config](t)(pgxpool.ParseConfig(cfg.Nodes[0].DSN))
		p.ConnConfig.DialFunc = x.dial
		cfg.Nodes[0].Pool, cfg.Nodes[0].DSN = p, ""
		cfg.ProofWait = 300 * time.Millisecond
	})
	k := key(t)
	locker := must[*pgxpool.Pool](t)(pgxpool.New(t.Context(), c.Primary().DSN("app", "postgres")))
	defer locker.Close()
	tx := must[pgx.Tx](t)(locker.Begin(t.Context()))
	defer func() { _ = tx.Rollback(context.Background()) }()
	must[any](t)(tx.Exec(t.Context(), "select 1 from kv where k = $1 for update", k))
	waiting := func() bool {
		return sql(t, c.Primary(), "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like 'update kv%'") == "1"
	}

	ctx, seen := inSession(t)
	sent := make(chan error, 1)
	go func() { _, err := db.Write().Exec(ctx, update, k, 77); sent <- err }()
	eventually(t, "the write to wait for the lock", waiting)
	x.set(true)
	if err := <-sent; err == nil {
		t.Fatal("the write was acknowledged")
	}
	x.set(false)
	eventually(t, "the primary to be watched again", func() bool { _, err := db.Write().Exec(t.Context(), update, key(t), 1); return err == nil })
	if !waiting() {
		t.Fatal("the server has given the write up: there is nothing to test")
	}
	token := tidegate.NewSession(tidegate.SessionFrom(ctx).Token())
	other, otherSeen := tidegate.Observe(tidegate.WithSession(t.Context(), token))
	var v int64
	for _, s := range []struct {
		ctx  context.Context
		seen *tidegate.Decisions
	}{{ctx, seen}, {other, otherSeen}} {
		if err := db.Read(tidegate.Causal).QueryRow(s.ctx, get, k).Scan(&v); err != nil {
			t.Fatal(err)
		}
		if d, _ := s.seen.Last(); !d.Unproven || !waiting() {
			t.Errorf("a read before the outcome was known: %d, %v", v, d)
		}
	}
	must[any](t)(struct{}{}, tx.Commit(t.Context()))
	for _, ctx := range []context.Context{ctx, other} {
		eventually(t, "a proven read", func() bool {
			v = 0
			if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&v); err != nil {
				t.Fatal(err)
			}
			last, _ := seen.Last()
			if ctx == other {
				last, _ = otherSeen.Last()
			}
			return !last.Unproven
		})
		if v != 77 {
			t.Errorf("got %d after the transaction that nobody heard of has committed", v)
		}
	}
}
