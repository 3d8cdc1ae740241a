package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

func TestThrottleHelp(t *testing.T) {
	t.Parallel()
	status, out, errOut := tidegate(t, "throttle", "--help")
	if status != exitOK || errOut != "" {
		t.Errorf("status %d, stderr %q", status, errOut)
	}
	for _, want := range []string{"while batch; do tidegate throttle", "$TIDEGATE_DSN", "--max-wait", "--json", "Exit status: 0 ", "; 1 ", "; 2 "} {
		if !strings.Contains(out, want) {
			t.Errorf("the help lacks %q:\n%s", want, out)
		}
	}
}

func TestThrottleUsageErrors(t *testing.T) {
	t.Setenv("TIDEGATE_DSN", "")
	const nobody = "host=127.0.0.1 port=1 user=nobody password=hush"
	for _, c := range []struct {
		args        []string
		names, next string
	}{
		{nil, "no server", "--dsn"},
		{[]string{"--dsn", nobody}, "127.0.0.1:1: ", "check the connection strings"},
		{[]string{"--dsn", "port=hush"}, "Nodes[0].DSN", "check port"},
		{[]string{"--dsn", nobody, "--max-staleness", "0s"}, "--max-staleness", "--max-lag"},
		{[]string{"--dsn", nobody, "--max-lag", "some"}, "--max-lag", "see tidegate throttle --help"},
	} {
		status, out, errOut := tidegate(t, append([]string{"throttle"}, c.args...)...)
		if status != exitUsage || out != "" {
			t.Errorf("%v: status %d, stdout %q", c.args, status, out)
		}
		if !strings.Contains(errOut, c.names) || !strings.Contains(errOut, c.next) || strings.Contains(errOut, "hush") {
			t.Errorf("%v: stderr lacks %q or %q, or tells a secret:\n%s", c.args, c.names, c.next, errOut)
		}
	}
}

// seen is what --json says.
type seen struct {
	Permitted, Waited bool
	WaitedMS          float64 `json:"waited_ms"`
	Primary, Reason   *string
	Replicas          []struct {
		Node        string
		Usable      bool
		StalenessMS *float64 `json:"staleness_ms"`
		LagBytes    *uint64  `json:"lag_bytes"`
		Error       *string
	}
}

func decode(t *testing.T, out string) (s seen) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(out))
	if err := d.Decode(&s); err != nil || d.More() {
		t.Fatalf("%v in %q", err, out)
	}
	return s
}

func statement(t *testing.T, s *pgcluster.Server, sql string) {
	t.Helper()
	if _, err := s.SQL(t.Context(), "postgres", sql); err != nil {
		t.Fatal(err)
	}
}

// A script runs it as another process: it ends at once, with its own status when its
// time is over, and when the lag is.
func TestThrottle(t *testing.T) {
	t.Parallel()
	c := pgcluster.ForTest(t, pgcluster.Config{Replicas: 2})
	statement(t, c.Primary(), "create role job login; create table bulk (v text)")
	if err := c.Primary().WaitCaughtUp(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	var names, lines []string
	for _, s := range c.Servers() {
		names, lines = append(names, fmt.Sprintf("127.0.0.1:%d", s.Port)), append(lines, s.DSN("job", "postgres"))
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// program runs the command with the servers in its environment.
	program := func(args ...string) (status int, out, errOut string) {
		var stdout, stderr strings.Builder
		cmd := exec.CommandContext(t.Context(), exe, append([]string{"throttle"}, args...)...)
		cmd.Env = append(os.Environ(), asProgram+"=1", "TIDEGATE_DSN="+strings.Join(lines, "\n"))
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); cmd.ProcessState == nil {
			t.Error(err)
			return -1, "", ""
		}
		return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
	}

	status, out, errOut := program("--max-staleness", "10s", "--json")
	if s := decode(t, out); status != exitOK || errOut != "" || !s.Permitted || s.Reason != nil || *s.Primary != names[0] || len(s.Replicas) != 2 ||
		!s.Replicas[0].Usable || s.Replicas[1].Node != names[2] || s.Replicas[1].StalenessMS == nil || *s.Replicas[1].LagBytes != 0 {
		t.Errorf("status %d, stderr %q, %s", status, errOut, out)
	}
	if status, out, errOut := program("--max-staleness", "10s"); status != exitOK || errOut != "" || !strings.HasPrefix(out, "the next batch may go; waited ") || strings.Count(out, " bytes behind") != 2 {
		t.Errorf("status %d, stderr %q, %s", status, errOut, out)
	}

	// Paused, and a megabyte behind.
	paused := c.Replicas()[1]
	statement(t, paused, "select pg_wal_replay_pause()")
	statement(t, c.Primary(), "insert into bulk select repeat('x', 1000) from generate_series(1, 2000)")
	behind := []string{"--max-staleness", "0s", "--max-lag", "1000000", "--max-wait"}
	status, out, errOut = program(append(behind, "300ms", "--json")...)
	if s := decode(t, out); status != exitFailed || errOut != "" || s.Permitted || !s.Waited || s.WaitedMS < 300 || !strings.Contains(*s.Reason, names[2]+" is ") || *s.Replicas[1].LagBytes < 1_000_000 {
		t.Errorf("status %d, stderr %q, %s", status, errOut, out)
	}
	if status, out, errOut := program(append(behind, "300ms")...); status != exitFailed || out != "" || !strings.Contains(errOut, names[2]+" is ") {
		t.Errorf("status %d, stderr %q, %s", status, errOut, out)
	}
	if status, _, errOut := program(append(behind, "300ms", "--percentile", "50")...); status != exitOK {
		t.Errorf("the better one of two: status %d, stderr %q", status, errOut)
	}
	if status, _, errOut := program("--max-staleness", "0s", "--max-lag", "100000000", "--max-wait", "300ms"); status != exitOK {
		t.Errorf("old, and nobody asks for an age: status %d, stderr %q", status, errOut)
	}
	ended := make(chan string, 1)
	go func() {
		status, _, errOut := program(append(behind, "1m")...)
		ended <- fmt.Sprint(status, " ", errOut)
	}()
	waits(t, c.Primary())
	select {
	case got := <-ended:
		t.Fatalf("it ended with %q while the replica is paused", got)
	default:
	}
	statement(t, paused, "select pg_wal_replay_resume()")
	if got := <-ended; got != "0 " {
		t.Errorf("it ended with %q", got)
	}

	// A replica that is away is left out after a time.
	if err := paused.Stop(pgcluster.Fast); err != nil {
		t.Fatal(err)
	}
	status, out, errOut = program("--max-staleness", "10s", "--absent-after", "200ms", "--json")
	if s := decode(t, out); status != exitOK || errOut != "" || !s.Waited || s.WaitedMS > 20_000 || s.Replicas[1].Error == nil || s.Replicas[1].StalenessMS != nil {
		t.Errorf("status %d, stderr %q, %s", status, errOut, out)
	}
}

// waits returns when the command is connected to the server and has asked it more than
// once.
func waits(t *testing.T, s *pgcluster.Server) {
	t.Helper()
	const asked = "select count(*) from pg_stat_activity where usename = 'job' and query_start > backend_start + interval '300 ms'"
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("nobody asks")
		}
		got, err := s.SQL(t.Context(), "postgres", asked)
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(got) != "0" {
			tick.Stop()
			return
		}
	}
}
