package pgcluster_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// query runs SQL that must succeed.
func query(t *testing.T, s *pgcluster.Server, sql string) string {
	t.Helper()
	out, err := s.SQL(t.Context(), "", sql)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// openFolder is a t.TempDir that the servers' user can enter when root tests.
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pgcluster-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// mustBeEmpty checks that clusters in a parent folder have left nothing.
func mustBeEmpty(t *testing.T, parent string) {
	t.Helper()
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
	if pids, err := pgcluster.ProcessesIn(parent); err != nil || len(pids) > 0 {
		t.Errorf("processes are left: %v, %v", pids, err)
	}
}

func TestStartReplicatesAndStopLeavesNothing(t *testing.T) {
	inst := pgcluster.InstallForTest(t)
	parent := openFolder(t)
	begin := time.Now()
	c, err := pgcluster.Start(t.Context(), pgcluster.Config{
		Install:         inst,
		Replicas:        2,
		Parent:          parent,
		Settings:        map[string]string{"work_mem": "5MB"},
		PrimarySettings: map[string]string{"application_name": `a'b\c`},
		ReplicaSettings: map[string]string{"work_mem": "7MB"},
	})
	if err != nil {
		t.Fatal(err)
	}
	started := time.Since(begin)
	if got := query(t, c.Primary(), "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"); got != "2" {
		t.Errorf("%s replicas stream, want 2", got)
	}
	query(t, c.Primary(), "CREATE TABLE tide (n int); INSERT INTO tide VALUES (41), (42);")
	if err := c.Primary().WaitCaughtUp(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	for _, r := range c.Replicas() {
		if got := query(t, r, "SELECT n FROM tide ORDER BY n; SELECT pg_is_in_recovery()"); got != "41\n42\nt" {
			t.Errorf("%s shows %q", r.Name, got)
		}
		if got := query(t, r, "SHOW work_mem; SHOW fsync; SHOW cluster_name"); got != "7MB\noff\n"+r.Name {
			t.Errorf("%s is set to %q", r.Name, got)
		}
	}
	if got := query(t, c.Primary(), "SHOW work_mem; SELECT reset_val FROM pg_settings WHERE name = 'application_name'"); !strings.HasPrefix(got, "5MB\n") {
		t.Errorf("the primary is set to %q", got)
	}
	if got := query(t, c.Primary(), "SHOW listen_addresses"); got != "127.0.0.1" {
		t.Errorf("the primary listens on %q", got)
	}
	if pids, err := pgcluster.ProcessesIn(c.Dir); err != nil || len(pids) < 3 {
		t.Errorf("processes %v, %v: the check for what is left would see nothing", pids, err)
	}

	if err := c.Replicas()[0].Suspend(); err != nil { // which is no reason to take long
		t.Fatal(err)
	}
	begin = time.Now()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := c.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if took := time.Since(begin); took > 6*time.Second {
		t.Errorf("stopped in %v", took)
	}
	t.Logf("%v: started a primary and two replicas in %v, stopped them in %v", inst, started, time.Since(begin))
	mustBeEmpty(t, parent)
	if err := c.Primary().Start(t.Context()); !errors.Is(err, pgcluster.ErrStopped) {
		t.Errorf("Start after Stop: %v, want ErrStopped", err)
	}
	if c.Primary().Alive() {
		t.Error("alive after Stop")
	}
}

func TestFailedStartLeavesNothing(t *testing.T) {
	inst := pgcluster.InstallForTest(t)
	t.Log(inst)
	for name, cfg := range map[string]pgcluster.Config{
		"primary": {PrimarySettings: map[string]string{"shared_buffers": "nonsense"}},
		"replica": {ReplicaSettings: map[string]string{"shared_buffers": "nonsense"}, Replicas: 2},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Install, cfg.Parent = inst, openFolder(t)
			_, err := pgcluster.Start(t.Context(), cfg)
			if err == nil || !strings.Contains(err.Error(), `invalid value for parameter "shared_buffers": "nonsense"`) {
				t.Errorf("the error does not quote the server's log: %v", err)
			}
			mustBeEmpty(t, cfg.Parent)
		})
	}
}

func TestCancelledStartLeavesNothing(t *testing.T) {
	inst := pgcluster.InstallForTest(t)
	t.Log(inst)
	// The first line comes before initdb runs, the second when the primary does.
	for _, line := range []int{1, 2} {
		t.Run(strconv.Itoa(line), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			parent := openFolder(t)
			lines := 0
			_, err := pgcluster.Start(ctx, pgcluster.Config{Install: inst, Replicas: 1, Parent: parent, Log: func(string) {
				if lines++; lines == line {
					cancel()
				}
			}})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error is %v, want context.Canceled", err)
			}
			mustBeEmpty(t, parent)
		})
	}
}

func TestStartCancelledInInitdbLeavesNothing(t *testing.T) {
	inst := pgcluster.InstallForTest(t)
	t.Log(inst)
	parent := openFolder(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		awaitFile(filepath.Join(parent, "*", "primary", "PG_VERSION"))
		cancel()
	}()
	_, err := pgcluster.Start(ctx, pgcluster.Config{Install: inst, Parent: parent})
	<-done
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want context.Canceled", err)
	}
	mustBeEmpty(t, parent)
}

// awaitFile returns when a file matches; initdb writes PG_VERSION early.
func awaitFile(pattern string) {
	for {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func TestStopWhileServersAreUsed(t *testing.T) {
	inst := pgcluster.InstallForTest(t)
	t.Log(inst)
	parent := openFolder(t)
	c, err := pgcluster.Start(t.Context(), pgcluster.Config{Install: inst, Parent: parent})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Primary().Stop(pgcluster.Immediate); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for c.Primary().Start(t.Context()) == nil {
			if err := c.Primary().Stop(pgcluster.Fast); err != nil && !errors.Is(err, pgcluster.ErrStopped) {
				t.Error(err)
			}
		}
	})
	wg.Go(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	mustBeEmpty(t, parent)
}

// TestServer does to one server what needs no cluster of its own, in a folder
// with a path too long for Unix sockets.
func TestServer(t *testing.T) {
	parent := filepath.Join(openFolder(t), strings.Repeat("x", 100))
	if err := os.Mkdir(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	p := pgcluster.ForTest(t, pgcluster.Config{Parent: parent}).Primary()
	for name, test := range map[string]func(*testing.T, *pgcluster.Server){
		"SQL":           testSQL,
		"Set":           testSet,
		"Restart":       testRestart,
		"death outside": testStartAfterDeathFromOutside,
		"CPU":           testCPU,
	} {
		if !t.Run(name, func(t *testing.T) { test(t, p) }) {
			return // the others would meet a server in no known state
		}
	}
}

func testRestart(t *testing.T, p *pgcluster.Server) {
	port := p.Port
	query(t, p, "CREATE TABLE tide (n int)")
	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := query(t, p, "SHOW port"); got != strconv.Itoa(port) || p.Port != port {
		t.Errorf("port %s, was %d", got, port)
	}
	if err := p.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "runs already") {
		t.Errorf("a second Start: %v", err)
	}

	// Someone else takes the port while the server is down.
	if err := p.Stop(pgcluster.Fast); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "port is taken") {
		t.Errorf("Start on a taken port: %v", err)
	}
	l.Close()
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	query(t, p, "SELECT * FROM tide")
}

func testSet(t *testing.T, p *pgcluster.Server) {
	if err := p.Stop(pgcluster.Fast); err != nil {
		t.Fatal(err)
	}
	if err := p.Set(map[string]string{"work_mem": "9MB"}); err != nil {
		t.Fatal(err)
	}
	if err := p.Reload(); err == nil {
		t.Error("Reload of a stopped server succeeds")
	}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := query(t, p, "SHOW work_mem"); got != "9MB" {
		t.Errorf("work_mem is %s", got)
	}
	if err := p.Set(map[string]string{"port": "1"}); err == nil {
		t.Error("the port can be set")
	}
}

func testSQL(t *testing.T, p *pgcluster.Server) {
	// Neither of the two can run in a transaction with others.
	query(t, p, "CREATE DATABASE \"a b'c\"; VACUUM")
	if got, err := p.SQL(t.Context(), "a b'c", "SELECT current_database(), 2"); err != nil || got != "a b'c|2" {
		t.Errorf("got %q, %v", got, err)
	}
	_, err := p.SQL(t.Context(), "", "SELECT 1; SELECT nonsense; CREATE TABLE never()")
	if err == nil || !strings.Contains(err.Error(), `column "nonsense" does not exist`) || !strings.Contains(err.Error(), "primary") {
		t.Errorf("error is %v", err)
	}
	if got := query(t, p, "SELECT to_regclass('never') IS NULL"); got != "t" {
		t.Error("SQL goes on after an error")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.SQL(ctx, "", "SELECT pg_sleep(60)"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v, want the context's", err)
	}
}
