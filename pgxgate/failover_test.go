package pgxgate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// fleet is a cluster that fails over, and what is told of it to a role.
type fleet struct {
	t    *testing.T
	c    *pgcluster.Cluster
	role string
	// r1 is promoted, r2 is the other replica.
	p, r1, r2 *pgcluster.Server
}

// roles are what a process can connect as, by what they may.
var roles = []string{"app", "monitor", "replication"}

// newFleet starts a cluster whose role may what its name says; "replication" may both.
func newFleet(t *testing.T, role string) *fleet {
	t.Helper()
	c := ownCluster(t, pgcluster.Config{Replicas: 2, Links: true})
	sql(t, c.Primary(), `create role monitor login in role pg_monitor; create role replication login replication in role pg_monitor;
		grant all on kv to monitor, replication`)
	caughtUp(t, c)
	return &fleet{t: t, c: c, role: role, p: c.Primary(), r1: c.Replicas()[0], r2: c.Replicas()[1]}
}

// open returns a database as the role.
func (f *fleet) open(change ...func(*pgxgate.Config)) *pgxgate.DB {
	return open(f.t, f.c, append([]func(*pgxgate.Config){func(cfg *pgxgate.Config) {
		for i, s := range f.c.Servers() {
			cfg.Nodes[i].DSN = s.DSN(f.role, "postgres")
		}
		cfg.PrimaryWait = 20 * time.Second
		cfg.LongestLag = -1
	}}, change...)...)
}

// promote promotes r1; r2 follows it unless it stays behind.
func (f *fleet) promote() {
	f.t.Helper()
	if err := f.r1.Promote(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) follow() {
	f.t.Helper()
	if err := f.r2.Follow(f.r1); err != nil {
		f.t.Fatal(err)
	}
}

// session is a session with what it was told last.
type session struct {
	s   *tidegate.Session
	ctx context.Context
	log *tidegate.Decisions
}

func newSession(t *testing.T, tokens ...tidegate.Token) *session {
	s := tidegate.NewSession(tokens...)
	ctx, log := tidegate.Observe(tidegate.WithSession(t.Context(), s))
	return &session{s, ctx, log}
}

func (s *session) write(t *testing.T, db *pgxgate.DB, k, v int64) {
	t.Helper()
	must[any](t)(db.Write().Exec(s.ctx, update, k, v))
}

// read makes a causal read of the key and returns its decision.
func (s *session) read(t *testing.T, db *pgxgate.DB, k int64) (int64, tidegate.Decision) {
	t.Helper()
	var v int64
	if err := db.Read(tidegate.Causal).QueryRow(s.ctx, get, k).Scan(&v); err != nil {
		t.Fatal(err)
	}
	d, _ := s.log.Last()
	return v, d
}

// wants reads and fails the test unless the value and the verdict are these.
func (s *session) wants(t *testing.T, db *pgxgate.DB, k, v int64, verdict tidegate.Verdict) tidegate.Decision {
	t.Helper()
	got, d := s.read(t, db, k)
	if told := d.Reason == tidegate.ReasonHistoryChanged; got != v || d.Verdict != verdict || told != (verdict != tidegate.VerdictNone) || d.Unproven != told {
		t.Errorf("got %d, %v; want %d, verdict %v", got, d, v, verdict)
	}
	return d
}

func usable(db *pgxgate.DB, name string) bool {
	for _, n := range db.Status().Nodes {
		if n.Node == name {
			return n.Usable
		}
	}
	return false
}

func fence(db *pgxgate.DB, name string) tidegate.Fence {
	for _, n := range db.Status().Nodes {
		if n.Node == name {
			return n.Fence
		}
	}
	return tidegate.FenceNone
}

// TestFailover: the primary dies and a replica that had everything is promoted. Reads that need
// nothing of the primary go on all the time, a write waits for the new one, and what sessions
// must see has survived: they are told of nothing, by a process that saw the promotion. One that
// was started later knows that only by REPLICATION.
func TestFailover(t *testing.T) {
	for _, role := range roles {
		t.Run(role, func(t *testing.T) {
			f := newFleet(t, role)
			db := f.open()
			k := key(t)
			writer, reader := newSession(t), newSession(t)
			writer.write(t, db, k, 1)
			for _, r := range f.c.Replicas() {
				eventually(t, "replay", func() bool { return sql(t, r, "select v from kv where k = "+itoa(k)) == "1" })
			}
			reader.wants(t, db, k, 1, tidegate.VerdictNone) // on a replica
			before := writer.s.Token()

			if err := f.p.Kill(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the primary's death to be known", func() bool { return db.Status().Nodes[0].Err != nil })
			for range 20 {
				if d := newSession(t).wants(t, db, k, 1, tidegate.VerdictNone); d.Role != tidegate.RoleReplica {
					t.Errorf("somebody new: %v", d)
				}
				if d := reader.wants(t, db, k, 1, tidegate.VerdictNone); d.Role != tidegate.RoleReplica {
					t.Errorf("a session that replicas cover: %v", d)
				}
			}
			waiter := newSession(t)
			wrote := make(chan error, 1)
			go func() {
				_, err := db.Write().Exec(waiter.ctx, update, k, 2)
				wrote <- err
			}()
			f.promote()
			promoted := time.Now()
			if err := <-wrote; err != nil {
				t.Fatal("the write that waited: ", err)
			}
			t.Logf("%s: written again %v after pg_promote had returned", role, time.Since(promoted))
			if got := db.Status().Primary; got != f.r1.Name {
				t.Errorf("the primary is %q", got)
			}
			waiter.wants(t, db, k, 2, tidegate.VerdictNone)
			for _, s := range []*session{writer, reader} {
				// The replica that nobody follows yet still has all that these need.
				if v, d := s.read(t, db, k); v < 1 || d.Unproven || d.Verdict != tidegate.VerdictNone {
					t.Errorf("what must be seen has survived: got %d, %v", v, d)
				}
			}

			// The other one follows.
			f.follow()
			writer.write(t, db, k, 3)
			eventually(t, "the other replica to follow", func() bool { return sql(t, f.r2, "select v from kv where k = "+itoa(k)) == "3" })
			if role == "app" {
				// It shows what it follows with its next restartpoint only.
				for _, s := range []*pgcluster.Server{f.r1, f.r2} {
					sql(t, s, "checkpoint")
				}
			}
			eventually(t, "it to be used", func() bool { return usable(db, f.r2.Name) })
			eventually(t, "a session's reads to go there", func() bool {
				d := newSession(t, writer.s.Token()).wants(t, db, k, 3, tidegate.VerdictNone)
				return d.Node == f.r2.Name
			})

			// A process that has seen nothing of it.
			late := f.open()
			want := tidegate.VerdictUnknown
			if role == "replication" {
				want = tidegate.VerdictNone
			}
			newSession(t, before).wants(t, late, k, 3, want)
		})
	}
}

// TestLossyFailover: a replica is promoted that lacks acknowledged writes. Whoever must see
// them is told, once, whether it wrote them or read them on the other replica; nobody else is.
// The other replica, past the fork, is fenced until it is rewound.
func TestLossyFailover(t *testing.T) {
	for _, role := range roles {
		t.Run(role, func(t *testing.T) {
			f := newFleet(t, role)
			db := f.open()
			k := key(t)
			early, late, reader := newSession(t), newSession(t), newSession(t)
			early.write(t, db, k, 1)
			caughtUp(t, f.c)
			f.r1.Link().Cut()
			late.write(t, db, k, 2)
			eventually(t, "the other replica to have it", func() bool { return sql(t, f.r2, "select v from kv where k = "+itoa(k)) == "2" })
			eventually(t, "a read there", func() bool {
				*reader = *newSession(t, tidegate.Token{})
				v, d := reader.read(t, db, k)
				return v == 2 && d.Node == f.r2.Name
			})
			if err := f.p.Kill(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the primary's death to be known", func() bool { return db.Status().Nodes[0].Err != nil })
			f.promote()
			f.r1.Link().Mend()
			newSession(t).write(t, db, key(t), 1) // waits for the new primary
			early.wants(t, db, k, 1, tidegate.VerdictNone)
			late.wants(t, db, k, 1, tidegate.VerdictLost)
			late.wants(t, db, k, 1, tidegate.VerdictNone)
			if v, d := reader.read(t, db, k); v != 1 || d.Reason != tidegate.ReasonHistoryChanged || d.Verdict == tidegate.VerdictNone {
				t.Errorf("a session that has seen what is lost: got %d, %v", v, d)
			}
			reader.wants(t, db, k, 1, tidegate.VerdictNone)
			if n := db.Stats().HistoryChanged; n != 2 {
				t.Errorf("%d sessions were told, want 2", n)
			}

			// Past the fork it can follow nobody.
			f.follow()
			for i := range int64(20) {
				s := newSession(t, late.s.Token())
				s.write(t, db, k, 10+i)
				if d := s.wants(t, db, k, 10+i, tidegate.VerdictNone); d.Node == f.r2.Name {
					t.Fatalf("read where there is what was lost: %v", d)
				}
			}
			if got := fence(db, f.r2.Name); got != tidegate.FenceDiverged && !(role == "app" && got == tidegate.FenceUnknownLine) {
				t.Errorf("the replica past the fork is fenced: %v", got)
			}
			if err := errors.Join(f.r2.Stop(pgcluster.Fast), f.r2.Rewind(t.Context(), f.r1)); err != nil {
				t.Fatal(err)
			}
			newSession(t).write(t, db, k, 99)
			eventually(t, "the rewound replica to have it", func() bool { return sql(t, f.r2, "select v from kv where k = "+itoa(k)) == "99" })
			if role == "app" {
				for _, s := range []*pgcluster.Server{f.r1, f.r2} {
					sql(t, s, "checkpoint")
				}
			}
			eventually(t, "the rewound replica to be used", func() bool { return usable(db, f.r2.Name) })
		})
	}
}

// TestTwoPrimaries: a replica is promoted while the old primary lives on. The higher timeline
// wins, and the loser is fenced; two of one timeline are a tie, in which nothing is written.
func TestTwoPrimaries(t *testing.T) {
	f := newFleet(t, "monitor")
	db := f.open(func(cfg *pgxgate.Config) { cfg.PrimaryWait = -1 })
	k := key(t)
	s := newSession(t)
	s.write(t, db, k, 1)
	caughtUp(t, f.c)
	f.promote()
	eventually(t, "the winner to be known", func() bool { return db.Status().Primary == f.r1.Name })
	if got := fence(db, f.p.Name); got != tidegate.FenceDeposed {
		t.Errorf("the old primary is fenced: %v", got)
	}
	for i := range int64(20) {
		s.write(t, db, k, 2+i)
	}
	if got := sql(t, f.p, "select v from kv where k = "+itoa(k)); got != "1" {
		t.Errorf("the old primary has got writes: %s", got)
	}
	// Whoever promotes the other one knows nothing of the first: it gets the same number.
	if err := f.r2.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the tie to be known", func() bool { return db.Status().Conflict })
	if _, err := db.Write().Exec(s.ctx, update, k, 100); !errors.Is(err, tidegate.ErrNoPrimary) {
		t.Errorf("a write in a tie: %v", err)
	}
	for _, n := range []string{f.r1.Name, f.r2.Name} {
		if got := fence(db, n); got != tidegate.FenceConflict {
			t.Errorf("%s is fenced: %v", n, got)
		}
	}
	if err := f.r2.Stop(pgcluster.Fast); err != nil {
		t.Fatal(err)
	}
	eventually(t, "writes to go on", func() bool { _, err := db.Write().Exec(s.ctx, update, k, 101); return err == nil })
	if v, _ := s.read(t, db, k); v != 101 {
		t.Errorf("got %d", v)
	}
}
