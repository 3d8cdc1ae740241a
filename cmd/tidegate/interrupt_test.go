package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// program is a running tidegate.
type program struct {
	*testing.T
	cmd      *exec.Cmd
	out, err bytes.Buffer
}

// startLab starts a lab that would run for a minute, with its cluster in the
// folder, and returns when the load has begun.
func startLab(t *testing.T, folder string) *program {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Who runs the tests may ignore it, and the program would then do so too.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	known := ports(folder)
	p := &program{T: t, cmd: exec.Command(exe, "lab", "--scenario", "lag-spike", "--strategies", "round-robin", "--duration", "1m")}
	p.cmd.Env = append(os.Environ(), asProgram+"=1", "TMPDIR="+folder)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !serving(ctx, folder, known) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
			t.Fatalf("the load did not begin: %s", p.err.String())
		}
	}
	return p
}

// end sends the signal and returns the exit status. A terminal that is closed tells
// of it more than once.
func (p *program) end(sig syscall.Signal) int {
	p.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.Fatal(err)
	}
	began := time.Now()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.cmd.Wait() // the status says it all
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for waiting := true; waiting; {
		select {
		case <-ended:
			waiting = false
		case <-tick.C:
			if sig == syscall.SIGHUP {
				_ = p.cmd.Process.Signal(sig) // it may have ended
			}
		}
	}
	p.Logf("ended %v after %v", time.Since(began).Round(time.Millisecond), sig)
	return p.cmd.ProcessState.ExitCode()
}

// ports are those of the primaries that have a folder in this one.
func ports(folder string) map[string]bool {
	found := map[string]bool{}
	files, _ := filepath.Glob(filepath.Join(folder, "*", "primary", "postmaster.pid"))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		if lines := strings.Split(string(text), "\n"); len(lines) > 3 {
			found[lines[3]] = true
		}
	}
	return found
}

// serving reports whether a primary that was not known has got writes.
func serving(ctx context.Context, folder string, known map[string]bool) bool {
	for port := range ports(folder) {
		if known[port] {
			continue
		}
		conn, err := pgx.Connect(ctx, fmt.Sprintf("host=127.0.0.1 port=%s user=postgres sslmode=disable", port))
		if err != nil {
			continue
		}
		var written bool
		err = conn.QueryRow(ctx, "select exists (select from lab_rows where v > 0)").Scan(&written)
		_ = conn.Close(ctx)
		if err == nil && written {
			return true
		}
	}
	return false
}

// Whatever ends a run, nothing of it stays: at once when it is asked to end, and
// with the next run when it was killed.
func TestNothingStays(t *testing.T) {
	t.Parallel()
	pgcluster.InstallForTest(t)
	folder := t.TempDir()
	// The servers run as another user when the test runs as root.
	for _, f := range []string{folder, filepath.Dir(folder)} {
		if err := os.Chmod(f, 0o755); err != nil {
			t.Fatal(err)
		}
	}

	killed := startLab(t, folder)
	killed.end(syscall.SIGKILL)
	if entries, _ := os.ReadDir(folder); len(entries) == 0 {
		t.Fatal("the killed run left nothing: the test looks at the wrong place")
	}

	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP} {
		p := startLab(t, folder)
		if status := p.end(sig); status != exitUsage {
			t.Errorf("%v: status %d", sig, status)
		}
		if out := p.out.String(); !strings.Contains(out, "no verdict: interrupted") || !strings.Contains(out, "Did sessions see the past?") {
			t.Errorf("%v: stdout:\n%s\nstderr:\n%s", sig, out, p.err.String())
		}
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			t.Errorf("%v: %s stayed", sig, e.Name())
		}
	}
}
