package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/carrier"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/fault"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// asProgram, set in the environment, turns the test binary into the program.
const asProgram = "TIDEGATE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// tidegate runs a command line and returns status, output and error output.
func tidegate(t *testing.T, args ...string) (status int, out, errOut string) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var stdout bytes.Buffer
	status = run(args, streams{out: &stdout, err: f})
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return status, stdout.String(), string(text)
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string
		says []string
	}{
		{"--help", []string{"lab", "version"}},
		{"lab --help", labHelp()},
		{"version", []string{"tidegate ", "go1."}},
	} {
		status, out, errOut := tidegate(t, strings.Fields(c.args)...)
		if status != 0 || errOut != "" {
			t.Errorf("%s: status %d, stderr %q", c.args, status, errOut)
		}
		for _, want := range c.says {
			if !strings.Contains(out, want) {
				t.Errorf("%s lacks %q:\n%s", c.args, want, out)
			}
		}
	}
}

// labHelp is what the help of the lab has to hold: everything that can be named.
func labHelp() []string {
	says := []string{"--scenario", "--strategies", "all: primary-only", "Exit status"}
	for _, s := range fault.All() {
		says = append(says, "  "+s.Name+" ", s.About)
	}
	for _, s := range slices.Concat(strategy.All(), strategy.Carriers(), strategy.Limits(), strategy.Throttles()) {
		says = append(says, "  "+s.Name()+" ", s.About())
	}
	for _, c := range carrier.All() {
		says = append(says, "  "+c.Name+" ", c.About)
	}
	says = append(says, "--primary-slots", "so 250 a second", "--pairs N, --beside NAME", "--carrier", "--missing", "so: header, cookie, redis, event.")
	return says
}

// What is compared when nobody says depends on the scenario.
func TestLabChoosesStrategies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ scenario, carrier, strategies, want string }{
		{"lag-spike", "", "", "round-robin,tidegate"},
		{"kill-replica", "", "", "remote-apply,tidegate"},
		{"stampede", "", "", "tidegate,tidegate-unlimited"},
		{"stampede", "header", "", "tidegate"},
		{"backfill", "", "", "tidegate,tidegate-throttled"},
		{"backfill", "header", "", "tidegate"},
		{"deploy", "", "", "tidegate,tidegate-memory,tidegate-amnesia"},
		{"deploy", "", "sticky", "sticky"},
		{"steady", "", "all", "primary-only,round-robin,sticky,probe-per-read,remote-apply,tidegate"},
		{"flood", "", "", "round-robin,tidegate"},
		{"lag-spike", "cookie", "", "round-robin,tidegate"},
		{"deploy", "header", "", "tidegate"},
		{"deploy", "header", "sticky", "sticky"},
		{"steady", "event", "all", "primary-only,round-robin,remote-apply,tidegate"},
		{"lost-token", "", "", "round-robin,tidegate"},
		{"lost-token", "", "all", "primary-only,round-robin,remote-apply,tidegate"},
	} {
		cmd := labCommand{Scenario: c.scenario, Carrier: c.carrier}
		if c.strategies != "" {
			cmd.Strategies = strings.Split(c.strategies, ",")
		}
		if got := strings.Join(cmd.config().Strategies, ","); got != c.want {
			t.Errorf("%s with --strategies %q: got %s, want %s", c.scenario, c.strategies, got, c.want)
		}
	}
}

// A scenario has its own load when nobody says.
func TestLabChoosesTheLoad(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][2]float64{
		"":                                       {32, 1000},
		"--scenario stampede":                    {256, 400},
		"--scenario hang":                        {32, 400},
		"--scenario stampede --rate 50":          {256, 50},
		"--scenario stampede --sessions 8":       {8, 400},
		"--scenario steady --sessions 0":         {0, 1000},
		"--scenario flood --rate 7 --sessions 3": {3, 7},
	} {
		var c commands
		parser, err := kong.New(&c, labVars())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(append([]string{"lab"}, strings.Fields(args)...)); err != nil {
			t.Fatal(err)
		}
		if cfg := c.Lab.config(); float64(cfg.Sessions) != want[0] || cfg.Rate != want[1] {
			t.Errorf("%s: %d sessions, %v reads/s", args, cfg.Sessions, cfg.Rate)
		}
	}
}

// A command line that makes no sense ends with 2, and says what to do next.
func TestUsageErrors(t *testing.T) {
	t.Parallel()
	empty, file := t.TempDir(), filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, names, next string }{
		{"", "lab", "see tidegate --help"},
		{"fly", "fly", "see tidegate --help"},
		{"lab --speed 9", "--speed", "see tidegate lab --help"},
		{"lab --rate fast", "--rate", "see tidegate lab --help"},
		{"lab --rate 0", "--rate", "the default is 1000"},
		{"lab --rate NaN", "--rate", "the default is 1000"},
		{"lab --writes 0.9", "--writes", "the default is 0.2"},
		{"lab --instances 0", "--instances", "the default is 2"},
		{"lab --sessions 0", "--sessions", "the default is 32"},
		{"lab --replicas 0", "--replicas", "the default is 2"},
		{"lab --duration 5", "--duration", "see tidegate lab --help"},
		{"lab --duration 1ms", "--duration", "the default is 20s"},
		{"lab --wait=-1s", "--wait", "leave it out"},
		{"lab --strong 2", "--strong", "leave it out"},
		{"lab --apply-delay 0s", "--apply-delay", "the default is 25ms"},
		{"lab --carrier pigeon", "--carrier", "choose one of header, cookie, redis, event"},
		{"lab --carrier redis --missing fresh", "--missing", "leave it out"},
		{"lab --carrier header --instances 1", "--instances", "the default is 2"},
		{"lab --carrier header --strategies sticky", "--strategies", "choose from primary-only,round-robin,remote-apply,tidegate"},
		{"lab --missing fresh", "--missing", "name a --carrier"},
		{"lab --carrier header --missing stale", "--missing", "choose one of catch-up, fresh"},
		{"lab --primary-slots 2", "--primary-slots", "give --primary-slots and --primary-cost"},
		{"lab --primary-slots 2 --primary-cost 1h", "--primary-cost", "leave it out"},
		{"lab --scenario ddl --primary-slots 2 --primary-cost 1ms", "--scenario", "leave out --primary-slots"},
		{"lab --fallback-reads=-1", "--fallback-reads", "leave it out"},
		{"lab --pairs 0", "--pairs", "give a number of rounds"},
		{"lab --pairs some", "--pairs", "see tidegate lab --help"},
		{"lab --beside steady", "--pairs", "give a number of rounds"},
		{"lab --pairs 2 --beside flood", "--beside", "choose one of steady"},
		{"lab --pairs 2 --beside lag-spike", "--beside", "choose one of steady"},
		{"lab --pairs 2 --pg-bin " + empty, empty, "TIDEGATE_PG_BIN"},
		{"lab --seed -1", "--seed", "see tidegate lab --help"},
		{"lab --scenario flood", "--scenario", "lag-spike"},
		{"lab --strategies coin-toss", "--strategies", "round-robin"},
		{"lab --strategies round-robin,round-robin", "--strategies", "once"},
		{"lab --strategies= --pg-bin " + empty, "--strategies", "choose from primary-only,round-robin,"},
		{"lab --strategies", "--strategies", "see tidegate lab --help"},
		{"lab --keep-logs " + file + " --pg-bin " + empty, "--keep-logs", "give a folder"},
		{"lab --keep-logs " + file + "/below --pg-bin " + empty, "--keep-logs", "give a folder"},
		{"lab --pg-bin " + empty, empty, "TIDEGATE_PG_BIN"},
	} {
		status, out, errOut := tidegate(t, strings.Fields(c.args)...)
		if status != exitUsage || out != "" {
			t.Errorf("%s: status %d, stdout %q", c.args, status, out)
		}
		if !strings.Contains(errOut, c.names) || !strings.Contains(errOut, c.next) {
			t.Errorf("%s: stderr lacks %q or %q:\n%s", c.args, c.names, c.next, errOut)
		}
		if strings.Count(errOut, "Next: ") > 1 {
			t.Errorf("%s: more than one thing to do next:\n%s", c.args, errOut)
		}
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
		t.Errorf("%v stayed, %v", left, err)
	}
}

// A folder that takes logs is used as it is, and what goes wrong is to be looked up
// there and not by another run.
func TestHints(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, c := range []struct {
		err        error
		logs, says string
	}{
		{broken, "", "run again with --keep-logs DIR"},
		{broken, "/logs", "look at the servers' logs in /logs"},
		{errors.Join(broken, &lab.UsageError{Flag: "keep-logs", Problem: "full", Next: "give another"}), "/logs", "Next: give another"},
	} {
		err := hinted(&lab.Config{KeepLogs: c.logs}, c.err)
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), c.says) || strings.Count(err.Error(), "Next: ") != 1 {
			t.Errorf("%v, want one that says %q and nothing else", err, c.says)
		}
	}
}

// Flags that name several things can be given more than once.
func TestNames(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]names{
		"": nil, "--strategies=": {}, "--strategies=a": {"a"}, "--strategies a,b": {"a", "b"}, "--strategies a --strategies b,c": {"a", "b", "c"},
	} {
		var c commands
		parser, err := kong.New(&c, labVars())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(append([]string{"lab"}, strings.Fields(args)...)); err != nil || !reflect.DeepEqual(c.Lab.Strategies, want) {
			t.Errorf("%s: %#v, %v, want %#v", args, c.Lab.Strategies, err, want)
		}
	}
}

func TestLabJSON(t *testing.T) {
	t.Parallel()
	pgcluster.InstallForTest(t)
	status, out, errOut := tidegate(t, strings.Fields("lab --json --scenario slow-standby-apply --apply-delay 800ms --strategies round-robin --duration 1s --rate 200 --seed 42")...)
	// A busy machine serves too few reads for a verdict; what is printed is the same.
	if (status != exitOK || errOut != "") && !(status == exitUsage && strings.HasPrefix(errOut, "no verdict: only ")) {
		t.Errorf("status %d, stderr %q", status, errOut)
	}
	var got struct {
		Seed       int
		Instances  int
		Strategies []struct {
			Name  string
			Reads int
		}
	}
	decoder := json.NewDecoder(strings.NewReader(out))
	if err := decoder.Decode(&got); err != nil || decoder.More() {
		t.Fatalf("%v in %q", err, out)
	}
	if got.Seed != 42 || got.Instances != 2 || len(got.Strategies) != 1 || got.Strategies[0].Name != "round-robin" || got.Strategies[0].Reads == 0 {
		t.Errorf("got %+v", got)
	}
}

// A run in which nothing could have gone wrong is no proof, and says so.
func TestLabWithoutVerdict(t *testing.T) {
	t.Parallel()
	pgcluster.InstallForTest(t)
	for _, c := range []struct{ args, says, next string }{
		{"--scenario lag-spike --rate 20", "no verdict: only ", "higher --rate"},
		{"--scenario steady --rate 100 --writes 0", "no verdict: round-robin wrote nothing", "--writes above 0"},
		{"--scenario steady --rate 0.001 --sessions 1", "no verdict: round-robin made no read;", "higher --rate or a longer --duration"},
	} {
		args := "lab --strategies round-robin --duration 1s --replicas 1 " + c.args
		status, out, errOut := tidegate(t, strings.Fields(args)...)
		if status != exitUsage || errOut != "" {
			t.Errorf("%s: status %d, stderr %q", args, status, errOut)
		}
		if !strings.Contains(out, "Did sessions see the past?") || !strings.Contains(out, c.says) || !strings.Contains(out, c.next) || strings.Contains(out, "()") {
			t.Errorf("%s: stdout:\n%s", args, out)
		}
	}
}
