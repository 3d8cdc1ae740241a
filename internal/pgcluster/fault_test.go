package pgcluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// session opens a session that stays until it is ended from the server's side,
// and returns its process id. Its end is awaited when the test ends.
func session(t *testing.T, s *pgcluster.Server) int {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := s.SQL(t.Context(), "", "SELECT pg_sleep(3600)"); err == nil {
			t.Error("the session was not ended")
		}
	}()
	t.Cleanup(func() { <-done })
	for {
		out := query(t, s, "SELECT pid FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(3600)' AND pid <> pg_backend_pid()")
		if pid, err := strconv.Atoi(out); err == nil {
			return pid
		}
	}
}

// TestFaults breaks one cluster in ways that it gets over.
func TestFaults(t *testing.T) {
	c := pgcluster.ForTest(t, pgcluster.Config{Replicas: 1})
	for name, test := range map[string]func(*testing.T, *pgcluster.Cluster){
		"kill and start":   testKillAndStart,
		"kill a backend":   testKillBackend,
		"without upstream": testReplicaWithoutUpstream,
		"suspend":          testSuspend,
	} {
		if !t.Run(name, func(t *testing.T) { test(t, c) }) {
			return // the others would meet a cluster in no known state
		}
	}
}

func testKillAndStart(t *testing.T, c *pgcluster.Cluster) {
	for _, s := range c.Servers() {
		session(t, s)
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		if s.Alive() {
			t.Errorf("%s is alive after Kill", s.Name)
		}
		pids, err := pgcluster.ProcessesIn(s.DataDir)
		if err != nil || len(pids) > 0 {
			t.Errorf("%s leaves processes %v, %v", s.Name, pids, err)
		}
		if err := s.Kill(); err != nil {
			t.Errorf("a second Kill: %v", err)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !s.Alive() {
			t.Errorf("%s is not alive after Start", s.Name)
		}
	}
	query(t, c.Primary(), "CREATE TABLE after_kill AS SELECT 42 AS n")
	if err := c.Primary().WaitCaughtUp(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if got := query(t, c.Replicas()[0], "SELECT n FROM after_kill"); got != "42" {
		t.Errorf("the replica shows %q", got)
	}
}

// A server whose process was killed by someone else starts again, too.
func testStartAfterDeathFromOutside(t *testing.T, p *pgcluster.Server) {
	text, err := os.ReadFile(p.DataDir + "/postmaster.pid")
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
	if err != nil {
		t.Fatal(err)
	}
	server, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	// Its children end by themselves when they notice.
	for p.Alive() || len(processes(t, p.DataDir)) > 0 {
		time.Sleep(time.Millisecond)
	}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	query(t, p, "SELECT 1")
}

func processes(t *testing.T, folder string) []int {
	t.Helper()
	pids, err := pgcluster.ProcessesIn(folder)
	if err != nil {
		t.Fatal(err)
	}
	return pids
}

func testKillBackend(t *testing.T, c *pgcluster.Cluster) {
	p := c.Primary()
	// Recovery after a crash empties an unlogged table: its mark.
	query(t, p, "CREATE UNLOGGED TABLE foam AS SELECT 1")
	started := query(t, p, "SELECT pg_postmaster_start_time()")
	if err := p.KillBackend(session(t, p)); err != nil {
		t.Fatal(err)
	}
	if err := p.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := query(t, p, "SELECT count(*) FROM foam; SELECT pg_postmaster_start_time()"); got != "0\n"+started {
		t.Errorf("got %q: there was no recovery, or another server", got)
	}

	r := c.Replicas()[0]
	if err := r.KillBackend(session(t, r)); err != nil {
		t.Fatal(err)
	}
	if err := r.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.WaitCaughtUp(t.Context(), 1); err != nil {
		t.Fatal(err)
	}

	for _, pid := range []int{os.Getpid(), 1, 0, -1} {
		if err := p.KillBackend(pid); err == nil || !strings.Contains(err.Error(), "no process of this server") {
			t.Errorf("KillBackend(%d): %v", pid, err)
		}
	}
}

func testSuspend(t *testing.T, c *pgcluster.Cluster) {
	r := c.Replicas()[0]
	started := query(t, r, "SELECT pg_postmaster_start_time()")
	for range 2 { // twice is no error
		if err := r.Suspend(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if out, err := r.SQL(ctx, "", "SELECT 1"); !errors.Is(err, context.DeadlineExceeded) || !r.Alive() {
		t.Errorf("answers %q, %v; alive: %v", out, err, r.Alive())
	}
	for range 2 {
		if err := r.Resume(); err != nil {
			t.Fatal(err)
		}
	}
	if got := query(t, r, "SELECT pg_postmaster_start_time()"); got != started {
		t.Errorf("started at %s, before at %s", got, started)
	}
	if err := c.Primary().WaitCaughtUp(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Suspend(), r.Kill()); err != nil {
		t.Fatal(err)
	}
	if err := r.Suspend(); err == nil {
		t.Error("a server that does not run is suspended")
	}
	if err := r.Resume(); err == nil {
		t.Error("a server that does not run goes on")
	}
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	query(t, r, "SELECT 1")
}

func TestPromote(t *testing.T) {
	c := pgcluster.ForTest(t, pgcluster.Config{Replicas: 2})
	r1, r2 := c.Replicas()[0], c.Replicas()[1]
	if err := c.Primary().Kill(); err != nil {
		t.Fatal(err)
	}
	if err := r1.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	query(t, r1, "CREATE TABLE tide AS SELECT 42 AS n")
	if err := r2.Follow(r1); err != nil {
		t.Fatal(err)
	}
	if err := r1.WaitCaughtUp(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if got := query(t, r2, "SELECT n FROM tide"); got != "42" {
		t.Errorf("the other replica shows %q", got)
	}
	if err := r1.Promote(t.Context()); err == nil {
		t.Error("a primary can be promoted")
	}
}

// A replica that is cut off still starts and takes reads.
func testReplicaWithoutUpstream(t *testing.T, c *pgcluster.Cluster) {
	r := c.Replicas()[0]
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := r.Set(map[string]string{"primary_conninfo": ""}); err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := query(t, r, "SELECT count(*) FROM pg_stat_wal_receiver"); got != "0" {
		t.Error("the replica streams")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := c.Primary().WaitCaughtUp(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v, want the context's", err)
	}
	if err := r.Follow(c.Primary()); err != nil {
		t.Fatal(err)
	}
	if err := c.Primary().WaitCaughtUp(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
}

func testCPU(t *testing.T, p *pgcluster.Server) {
	if _, err := p.CPU(); errors.Is(err, pgcluster.ErrUnsupported) {
		t.Skip(err)
	}
	cpu := func() time.Duration {
		t.Helper()
		d, err := p.CPU()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	// Reads all along, from which no fault may hide time.
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for last := time.Duration(0); ; {
			select {
			case <-stop:
				return
			default:
			}
			now, err := p.CPU()
			if err != nil || now < last {
				t.Errorf("CPU went from %v to %v, %v", last, now, err)
				return
			}
			last = now
			time.Sleep(time.Millisecond)
		}
	})
	burn := func() {
		t.Helper()
		query(t, p, "SET max_parallel_workers_per_gather = 0; SELECT count(*) FROM generate_series(1, 300000) a WHERE md5(a::text) = ''")
	}
	at := []time.Duration{cpu()}
	for name, restart := range map[string]func() error{
		"fast":      func() error { return p.Stop(pgcluster.Fast) },
		"immediate": func() error { return p.Stop(pgcluster.Immediate) },
		"kill":      p.Kill,
	} {
		before := cpu()
		burn()
		after := cpu()
		if after-before < 50*time.Millisecond {
			t.Errorf("a heavy query took %v of CPU", after-before)
		}
		if err := restart(); err != nil {
			t.Fatal(err)
		}
		stopped := cpu()
		if stopped < after || stopped != cpu() {
			t.Errorf("%s: %v before, %v after, then %v", name, after, stopped, cpu())
		}
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		at = append(at, after, stopped, cpu())
	}
	close(stop)
	wg.Wait()
	t.Log(fmt.Sprint(at))
}
