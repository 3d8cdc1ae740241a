package redisserver_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/internal/redisserver"
)

// ask sends one command and returns the first line of the answer.
func ask(ctx context.Context, addr, command string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		conn.SetDeadline(deadline)
	}
	if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line), err
}

func must(ctx context.Context, t *testing.T, s *redisserver.Server, command, want string) {
	t.Helper()
	if got, err := ask(ctx, s.Addr, command); err != nil || got != want {
		t.Fatalf("%s: %q, %v; want %q", command, got, err, want)
	}
}

func TestKilledServerStartsAgainWhereItWas(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := redisserver.ForTest(ctx, t)
	must(ctx, t, s, "SET a 1", "+OK")
	must(ctx, t, s, "SAVE", "+OK")
	must(ctx, t, s, "SET b 2", "+OK")
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(ctx, s.Addr, "PING"); err == nil {
		t.Error("a killed server answers")
	}
	if err := s.Start(ctx); err != nil {
		t.Fatal(err)
	}
	must(ctx, t, s, "EXISTS a b", ":1")
	if err := s.Start(ctx); err == nil {
		t.Error("a server was started twice")
	}
}

func TestFrozenServerHangs(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := redisserver.ForTest(ctx, t)
	if err := s.Freeze(); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	var late net.Error
	if _, err := ask(short, s.Addr, "PING"); !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("a frozen server: %v", err)
	}
	if err := s.Thaw(); err != nil {
		t.Fatal(err)
	}
	must(ctx, t, s, "PING", "+PONG")
}

func TestFailedStartQuotesTheLogAndLeavesNothing(t *testing.T) {
	inst := redisserver.InstallForTest(t)
	t.Setenv("TMPDIR", t.TempDir())
	_, err := redisserver.Start(t.Context(), inst, "--maxmemory", "nonsense")
	if err == nil || !strings.Contains(err.Error(), `>>> 'maxmemory`) {
		t.Errorf("the error does not quote what the server says: %v", err)
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestServerEndsWithItsOwner(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("NOT TESTED: only Linux ends a process with its parent")
	}
	t.Parallel()
	redisserver.InstallForTest(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), envOwner+"=1", "TMPDIR="+t.TempDir())
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	addr, _, _ := strings.Cut(line, " ")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ask(t.Context(), addr, "PING"); got != "+PONG" {
		t.Fatalf("%q, %v: there is nothing to test", got, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	for deadline := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		if _, err := ask(t.Context(), addr, "PING"); err != nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the server has outlived its owner")
		}
	}
}

func TestFindTakesWhatIsNamed(t *testing.T) {
	inst := redisserver.InstallForTest(t)
	t.Setenv(redisserver.EnvBin, inst.Program)
	if got, err := redisserver.Find(); err != nil || got != inst {
		t.Errorf("%v, %v; want %v", got, err, inst)
	}
	for name, script := range map[string]string{"old": "echo Redis server v=6.2.1 sha=0", "other": "echo hello", "silent": "exit 1"} {
		program := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv(redisserver.EnvBin, program)
		if got, err := redisserver.Find(); !errors.Is(err, redisserver.ErrNotFound) || !strings.Contains(err.Error(), redisserver.EnvBin) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// recorder is a test that only notes what happens to it.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Skipf(format string, args ...any)  { r.skipped = fmt.Sprintf(format, args...) }
func (r *recorder) Fatalf(format string, args ...any) { r.failed = fmt.Sprintf(format, args...) }

func TestMissingServerIsNeverQuiet(t *testing.T) {
	t.Setenv(redisserver.EnvBin, filepath.Join(t.TempDir(), "none"))
	t.Setenv(redisserver.EnvRequire, "")
	r := &recorder{TB: t}
	redisserver.InstallForTest(r)
	if !strings.Contains(r.skipped, "NOT TESTED") || r.failed != "" {
		t.Errorf("skipped %q, failed %q", r.skipped, r.failed)
	}
	t.Setenv(redisserver.EnvRequire, "1")
	r = &recorder{TB: t}
	redisserver.InstallForTest(r)
	if r.skipped != "" || !strings.Contains(r.failed, redisserver.EnvRequire) {
		t.Errorf("skipped %q, failed %q", r.skipped, r.failed)
	}
}

func TestEnginesAreLogged(t *testing.T) {
	inst := redisserver.InstallForTest(t)
	log := filepath.Join(t.TempDir(), "log")
	t.Setenv(redisserver.EnvEnginesLog, log)
	redisserver.InstallForTest(t)
	redisserver.InstallForTest(t)
	line := inst.Product + " " + inst.Version + "\n"
	if got, err := os.ReadFile(log); err != nil || string(got) != line+line {
		t.Errorf("%q, %v; want %q twice", got, err, line)
	}
}
