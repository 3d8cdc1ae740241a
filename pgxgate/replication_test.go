package pgxgate_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// pair is a database of the primary and one replica, with sessions that write.
type pair struct {
	t       *testing.T
	cluster *pgcluster.Cluster
	replica *pgcluster.Server
	db      *pgxgate.DB
	ctx     context.Context // of the session that wrote last
	seen    *tidegate.Decisions
	token   tidegate.Token // what that session needs, and no more
	key     int64
	value   int64
}

func newPair(t *testing.T, c *pgcluster.Cluster, r *pgcluster.Server) *pair {
	p := &pair{t: t, cluster: c, replica: r, key: key(t)}
	p.db = open(t, c, func(cfg *pgxgate.Config) {
		cfg.Nodes = []pgxgate.Node{{Name: "primary", DSN: c.Primary().DSN("app", "postgres")}, {Name: r.Name, DSN: r.DSN("app", "postgres")}}
	})
	return p
}

// write writes in a new session.
func (p *pair) write() {
	p.t.Helper()
	p.value++
	p.ctx, p.seen = inSession(p.t)
	must[any](p.t)(p.db.Write().Exec(p.ctx, update, p.key, p.value))
	p.token = tidegate.SessionFrom(p.ctx).Token()
}

// read reads and returns where. What the session has written is there.
func (p *pair) read(class tidegate.Class) tidegate.Decision {
	p.t.Helper()
	v := int64(-1)
	if err := p.db.Read(class).QueryRow(p.ctx, get, p.key).Scan(&v); err != nil {
		p.t.Fatal(err)
	}
	d, _ := p.seen.Last()
	if class.Need() == tidegate.NeedCausal && v != p.value {
		p.t.Errorf("got %d, want %d: %v", v, p.value, d)
	}
	return d
}

// behind fails the test unless the session's reads are on the primary, since the replica
// does not show what it has written.
func (p *pair) behind() {
	p.t.Helper()
	for range 10 {
		if d := p.read(tidegate.Causal); d.Role != tidegate.RolePrimary || d.Unproven {
			p.t.Errorf("%v, want the primary", d)
		}
	}
	if v := sql(p.t, p.replica, "select v from kv where k = "+itoa(p.key)); v == itoa(p.value) {
		p.t.Errorf("the replica has %s: nothing could have gone wrong", v)
	}
}

// caughtUp waits until sessions that need what was written last read on the replica.
func (p *pair) caughtUp() {
	p.t.Helper()
	eventually(p.t, "a read on "+p.replica.Name, func() bool {
		// The primary writes by itself, too: whoever has read there needs that.
		p.ctx, p.seen = tidegate.Observe(tidegate.WithToken(p.t.Context(), p.token))
		return p.read(tidegate.Causal).Role == tidegate.RoleReplica
	})
}

// cut ends the replica's replication and waits until it has applied all that it had received.
func (p *pair) cut() {
	p.t.Helper()
	configure(p.t, p.replica, map[string]string{"primary_conninfo": ""})
	eventually(p.t, "the receiver to end", func() bool {
		return sql(p.t, p.replica, "select count(*) from pg_stat_wal_receiver") == "0"
	})
	eventually(p.t, "replay of what was received", func() bool {
		return sql(p.t, p.replica, "select pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn()") == "t"
	})
}

// follow makes the replica receive from a server.
func (p *pair) follow(upstream *pgcluster.Server) {
	p.t.Helper()
	if err := p.replica.Follow(upstream); err != nil {
		p.t.Fatal(err)
	}
	eventually(p.t, "a receiver", func() bool {
		return sql(p.t, p.replica, "select count(*) from pg_stat_wal_receiver where sender_port = "+itoa(int64(upstream.Port))) == "1"
	})
}

// configure changes settings of a running server.
func configure(t *testing.T, s *pgcluster.Server, settings map[string]string) {
	t.Helper()
	if err := s.Set(settings); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
}

// TestReplicationThatIsNotPlain: a replica is judged by what it has applied, wherever that
// comes from, and never by what it has received or lacks.
func TestReplicationThatIsNotPlain(t *testing.T) {
	c := ownCluster(t, pgcluster.Config{Replicas: 2, Settings: map[string]string{"autovacuum": "off"}, PrimarySettings: map[string]string{"archive_mode": "on"}})
	for _, x := range []struct {
		name string
		test func(t *testing.T, c *pgcluster.Cluster)
	}{
		{"the link is cut", testCutLink},
		{"no receiver, then no replay", testReceiverAndReplay},
		{"nothing received in this life", testNothingReceived},
		{"a cascade", testCascade},
		{"delayed replay", testDelayedReplay},
		{"an archive", testArchive},
	} {
		if !t.Run(x.name, func(t *testing.T) { x.test(t, c) }) {
			return // the others would meet a cluster in no known state
		}
	}
}

// All that it received is applied, which proves nothing: it may not have received all.
func testCutLink(t *testing.T, c *pgcluster.Cluster) {
	p := newPair(t, c, c.Replicas()[0])
	p.write()
	p.caughtUp()
	p.cut()
	p.write()
	p.behind()
	fresh := tidegate.Relaxed("cut-link", "test", tidegate.Within(200*time.Millisecond))
	// It is current until the primary's next look shows that it is not.
	eventually(t, "the replica to be older than the budget", func() bool { return p.read(fresh).Role == tidegate.RolePrimary })
	for range 20 {
		if d := p.read(fresh); d.Role != tidegate.RolePrimary {
			t.Errorf("%v, of a replica that was cut off longer ago", d)
		}
	}
	n := p.db.Status().Nodes[1]
	if received := sql(t, p.replica, "select pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn()"); received != "t" || !n.LagKnown || n.Lag == 0 {
		t.Errorf("received equals replayed: %s; status %+v", received, n)
	}
	p.follow(c.Primary())
	p.caughtUp()
}

// First nothing is received, then all is received and not applied.
func testReceiverAndReplay(t *testing.T, c *pgcluster.Cluster) {
	p := newPair(t, c, c.Replicas()[0])
	p.write()
	p.caughtUp()
	p.cut()
	p.write()
	p.behind()
	p.follow(c.Primary())
	p.caughtUp()
	resume := pause(t, p.replica)
	p.write()
	at := sql(t, c.Primary(), "select pg_current_wal_flush_lsn()")
	eventually(t, "the write to be received", func() bool { return sql(t, p.replica, "select pg_last_wal_receive_lsn() >= '"+at+"'") == "t" })
	p.behind()
	resume()
	p.caughtUp()
}

// A replica that was started without a receiver does not say what it has received, nor when
// it replayed anything: it serves what it has, and no more.
func testNothingReceived(t *testing.T, c *pgcluster.Cluster) {
	p := newPair(t, c, c.Replicas()[0])
	p.write()
	p.caughtUp()
	p.cut()
	if err := p.replica.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := sql(t, p.replica, "select pg_last_wal_receive_lsn() is null"); got != "t" {
		t.Fatalf("received is NULL: %s", got)
	}
	p.caughtUp() // it has what the session needs
	if n := p.db.Status().Nodes[1]; !n.Usable || n.Applied.IsZero() {
		t.Errorf("%+v", n)
	}
	p.write()
	p.behind()
	p.follow(c.Primary())
	p.caughtUp()
}

// Replay in the middle of a cascade does not hold up the end of it; the link there does.
func testCascade(t *testing.T, c *pgcluster.Cluster) {
	a, b := c.Replicas()[0], c.Replicas()[1]
	p := newPair(t, c, b)
	p.follow(a)
	p.write()
	p.caughtUp()
	resume := pause(t, a)
	p.write()
	p.caughtUp()
	if v := sql(t, a, "select v from kv where k = "+itoa(p.key)); v == itoa(p.value) {
		t.Errorf("%s is not paused", a.Name)
	}
	resume()
	upstream := newPair(t, c, a)
	upstream.cut()
	p.write()
	p.behind()
	upstream.follow(c.Primary())
	p.caughtUp()
	p.follow(c.Primary())
}

func testDelayedReplay(t *testing.T, c *pgcluster.Cluster) {
	const delay = 400 * time.Millisecond
	p := newPair(t, c, c.Replicas()[0])
	configure(t, p.replica, map[string]string{"recovery_min_apply_delay": itoa(delay.Milliseconds()) + "ms"})
	defer configure(t, p.replica, map[string]string{"recovery_min_apply_delay": "0"})
	eventually(t, "the delay to hold", func() bool {
		began := time.Now()
		p.write()
		at := sql(t, c.Primary(), "select pg_current_wal_flush_lsn()")
		eventually(t, "the write to be received", func() bool { return sql(t, p.replica, "select pg_last_wal_receive_lsn() >= '"+at+"'") == "t" })
		if sql(t, p.replica, "select v from kv where k = "+itoa(p.key)) == itoa(p.value) {
			return false // the setting has not arrived yet
		}
		p.caughtUp()
		return time.Since(began) > delay/2
	})
}

// The primary's log comes by files only. There is no receiver at all.
func testArchive(t *testing.T, c *pgcluster.Cluster) {
	p := newPair(t, c, c.Replicas()[0])
	folder, err := os.MkdirTemp("", "tidegate-archive")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o777); err != nil { // the servers may run as another user
		t.Fatal(err)
	}
	configure(t, c.Primary(), map[string]string{"archive_command": "cp %p " + folder + "/%f"})
	p.write()
	p.caughtUp()
	configure(t, p.replica, map[string]string{"restore_command": "cp " + folder + "/%f %p"})
	p.cut()
	if err := p.replica.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		p.write()
		p.behind()
		sql(t, c.Primary(), "select pg_switch_wal()")
		p.caughtUp()
		if got := sql(t, p.replica, "select (select count(*) from pg_stat_wal_receiver)::text || (pg_last_wal_receive_lsn() is null)"); got != "0true" {
			t.Errorf("receivers, and whether nothing was received: %s", got)
		}
	}
	if n := p.db.Status().Nodes[1]; !n.Usable || !n.LagKnown {
		t.Errorf("%+v", n)
	}
}
