package pgcluster_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// must fails the test when a step does.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// await asks a server until it gives that answer.
func await(t *testing.T, s *pgcluster.Server, sql, want string) {
	t.Helper()
	for got := ""; got != want; time.Sleep(5 * time.Millisecond) {
		got = query(t, s, sql)
	}
}

// mustBeStandby checks that a server is a standby of the other one, has all that
// it has, and is set as it was.
func mustBeStandby(t *testing.T, s, of *pgcluster.Server, port int, workMem string) {
	t.Helper()
	await(t, of, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND application_name = '"+s.Name+"'", "1")
	standbys, err := strconv.Atoi(query(t, of, "SELECT count(*) FROM pg_stat_replication"))
	must(t, err)
	must(t, of.WaitCaughtUp(t.Context(), standbys))
	want := strings.Join([]string{"t", strconv.Itoa(port), s.Name, workMem, "127.0.0.1"}, "\n")
	got := query(t, s, "SELECT pg_is_in_recovery(); SHOW port; SHOW cluster_name; SHOW work_mem; SHOW listen_addresses")
	if got != want || s.Port != port {
		t.Errorf("%s is set to %q, port %d, want %q", s.Name, got, s.Port, want)
	}
	const rows = "SELECT coalesce(string_agg(t, ',' ORDER BY t), '') FROM tide"
	if here, there := query(t, s, rows), query(t, of, rows); here != there || there == "" {
		t.Errorf("%s has %q, %s has %q", s.Name, here, of.Name, there)
	}
}

// TestRewind lets the primary's role go round, each time with another end of the
// old primary.
func TestRewind(t *testing.T) {
	c := pgcluster.ForTest(t, pgcluster.Config{Replicas: 2, Links: true,
		PrimarySettings: map[string]string{"work_mem": "5MB"}, ReplicaSettings: map[string]string{"work_mem": "7MB"}})
	p, r1, r2 := c.Primary(), c.Replicas()[0], c.Replicas()[1]
	query(t, p, "CREATE TABLE tide (t text); INSERT INTO tide VALUES ('both'); ALTER SYSTEM SET temp_buffers = '3MB'")
	must(t, p.WaitCaughtUp(t.Context(), 2))
	port := p.Port

	if err := p.Rewind(t.Context(), r1); err == nil || !strings.Contains(err.Error(), "stop or kill it first") {
		t.Errorf("a running server is rewound: %v", err)
	}
	must(t, r2.Stop(pgcluster.Fast))
	if err := r2.Rewind(t.Context(), r2); err == nil || !strings.Contains(err.Error(), "itself") {
		t.Errorf("a server is rewound to itself: %v", err)
	}
	must(t, r2.Start(t.Context()))

	// Killed, with a write that no standby has.
	for _, r := range c.Replicas() {
		r.Link().Cut()
	}
	query(t, p, "INSERT INTO tide VALUES ('lost at the kill')")
	must(t, p.Kill())
	must(t, r1.Promote(t.Context()))
	query(t, r1, "INSERT INTO tide VALUES ('from replica1')")
	r1.Link().Mend()
	r2.Link().Mend()
	must(t, r2.Follow(r1))
	if p.Link() != nil {
		t.Error("the primary has a link before it was a standby")
	}
	must(t, p.Rewind(t.Context(), r1))
	mustBeStandby(t, p, r1, port, "5MB")
	mustBeStandby(t, r2, r1, r2.Port, "7MB")
	if got := query(t, p, "SHOW temp_buffers"); got != "3MB" {
		t.Errorf("ALTER SYSTEM's setting is %s after the rewind", got)
	}
	if got := query(t, p, "SELECT count(*) FROM tide WHERE t LIKE 'lost%'"); got != "0" {
		t.Error("the write that was lost is still there")
	}

	// Stopped in order, with a write that no standby has: its standbys are cut off.
	p.Link().Cut()
	r2.Link().Cut()
	await(t, r1, "SELECT count(*) FROM pg_stat_replication", "0")
	query(t, r1, "INSERT INTO tide VALUES ('lost at the stop')")
	must(t, r1.Stop(pgcluster.Fast))
	must(t, p.Promote(t.Context()))
	p.Link().Mend()
	r2.Link().Mend()
	must(t, r2.Follow(p))
	must(t, r1.Rewind(t.Context(), p))
	mustBeStandby(t, r1, p, r1.Port, "7MB")
	if got := query(t, r1, "SELECT count(*) FROM tide WHERE t LIKE 'lost%'; SHOW temp_buffers"); got != "0\n8MB" {
		t.Errorf("after the rewind: %q; the source's ALTER SYSTEM may be in force, or the lost write be there", got)
	}

	// Stopped in order, and a standby has all of it: there is nothing to rewind.
	mustBeStandby(t, r2, p, r2.Port, "7MB")
	must(t, p.Stop(pgcluster.Fast))
	must(t, r2.Promote(t.Context()))
	must(t, p.Rewind(t.Context(), r2))
	mustBeStandby(t, p, r2, port, "5MB")

	// A standby of a standby: the source's own role must not come along.
	must(t, r1.Kill())
	must(t, r1.Rewind(t.Context(), p))
	mustBeStandbyOfStandby(t, r1, p)
}

func mustBeStandbyOfStandby(t *testing.T, s, of *pgcluster.Server) {
	t.Helper()
	await(t, of, "SELECT string_agg(application_name || ' ' || state, ',') FROM pg_stat_replication", s.Name+" streaming")
	if got := query(t, s, "SHOW port; SHOW cluster_name; SHOW work_mem"); got != strconv.Itoa(s.Port)+"\n"+s.Name+"\n7MB" {
		t.Errorf("%s is set to %q", s.Name, got)
	}
}

// TestPastTheFork: a standby that has more of the old timeline than the new one
// took over gets nothing more, until it is rewound. It is killed before: its data
// may not be past the fork then, but its log is.
func TestPastTheFork(t *testing.T) {
	c := pgcluster.ForTest(t, pgcluster.Config{Replicas: 2, Links: true})
	p, r1, r2 := c.Primary(), c.Replicas()[0], c.Replicas()[1]
	query(t, p, "CREATE TABLE tide (t text)")
	must(t, p.WaitCaughtUp(t.Context(), 2))
	r1.Link().Cut()
	await(t, p, "SELECT count(*) FROM pg_stat_replication", "1")
	query(t, p, "INSERT INTO tide VALUES ('past the fork')")
	must(t, p.WaitCaughtUp(t.Context(), 1))
	must(t, p.Kill())
	must(t, r1.Promote(t.Context()))
	query(t, r1, "INSERT INTO tide VALUES ('new history')")
	must(t, r2.Follow(r1))
	// It says so each time that it has tried.
	for text := ""; strings.Count(text, "before current recovery point") < 2; time.Sleep(5 * time.Millisecond) {
		log, err := os.ReadFile(r2.LogPath)
		must(t, err)
		text = string(log)
	}
	if got := query(t, r2, "SELECT t FROM tide"); got != "past the fork" {
		t.Errorf("it shows %q", got)
	}
	must(t, r2.Kill())
	must(t, r2.Rewind(t.Context(), r1))
	must(t, r1.WaitCaughtUp(t.Context(), 1))
	if got := query(t, r2, "SELECT t FROM tide"); got != "new history" {
		t.Errorf("after the rewind it shows %q", got)
	}
}

// TestRebuild makes servers anew that run, that are down, and that have lost their data.
func TestRebuild(t *testing.T) {
	c := pgcluster.ForTest(t, pgcluster.Config{Replicas: 1,
		PrimarySettings: map[string]string{"work_mem": "5MB"}, ReplicaSettings: map[string]string{"work_mem": "7MB"}})
	p, r := c.Primary(), c.Replicas()[0]
	port := p.Port
	query(t, p, "CREATE TABLE tide (t text); INSERT INTO tide VALUES ('both')")
	must(t, p.WaitCaughtUp(t.Context(), 1))
	must(t, r.Set(map[string]string{"log_min_messages": "notice"}))
	must(t, r.Suspend())
	must(t, r.Rebuild(t.Context(), p))
	mustBeStandby(t, r, p, r.Port, "7MB")
	if got := query(t, r, "SHOW log_min_messages"); got != "notice" {
		t.Errorf("Set's setting is %s after the rebuild", got)
	}
	must(t, r.Promote(t.Context()))
	query(t, r, "INSERT INTO tide VALUES ('from the replica')")
	query(t, p, "INSERT INTO tide VALUES ('lost')") // it runs on, a primary beside a primary
	must(t, p.Rebuild(t.Context(), r))
	mustBeStandby(t, p, r, port, "5MB")
	must(t, p.Stop(pgcluster.Fast))
	must(t, os.RemoveAll(p.DataDir))
	must(t, p.Rebuild(t.Context(), r))
	mustBeStandby(t, p, r, port, "5MB")

	if err := r.Rebuild(t.Context(), r); err == nil || !strings.Contains(err.Error(), "itself") || !r.Alive() {
		t.Errorf("a server is rebuilt from itself: %v; alive: %v", err, r.Alive())
	}
	must(t, r.Kill())
	if err := p.Rebuild(t.Context(), r); err == nil || !strings.Contains(err.Error(), "pg_basebackup") {
		t.Errorf("rebuilt from a server that is down: %v", err)
	}
	must(t, r.Start(t.Context()))
	must(t, p.Rebuild(t.Context(), r))
	mustBeStandby(t, p, r, port, "5MB")
}
