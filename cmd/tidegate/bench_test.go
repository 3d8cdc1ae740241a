package main

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/bench"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

func TestBenchHelp(t *testing.T) {
	t.Parallel()
	status, out, errOut := tidegate(t, "bench", "--help")
	if status != exitOK || errOut != "" {
		t.Errorf("status %d, stderr %q", status, errOut)
	}
	for _, want := range append(bench.Names(), "--json", "--pairs", "--runs", "--figures", "Exit status") {
		if !strings.Contains(out, want) {
			t.Errorf("the help lacks %q:\n%s", want, out)
		}
	}
}

func TestBenchUsageErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, names, next string }{
		{"bench --pairs 0", "--pairs", "the default is 10000"},
		{"bench --pairs many", "--pairs", "see tidegate bench --help"},
		{"bench --runs 0", "--runs", "the default is 5"},
		{"bench --figures speed", "speed", "choose from read_overhead,"},
		{"bench --figures= --pg-bin " + t.TempDir(), "--figures", "choose from read_overhead,"},
		{"bench --figures pick_ns,pick_ns", "pick_ns", "once"},
		{"bench --figures read_allocs --pg-bin " + t.TempDir(), "postgres", "TIDEGATE_PG_BIN"},
	} {
		status, out, errOut := tidegate(t, strings.Fields(c.args)...)
		if status != exitUsage || out != "" {
			t.Errorf("%s: status %d, stdout %q", c.args, status, out)
		}
		if !strings.Contains(errOut, c.names) || !strings.Contains(errOut, c.next) {
			t.Errorf("%s: stderr lacks %q or %q:\n%s", c.args, c.names, c.next, errOut)
		}
	}
}

// Every figure can be measured on real servers. A quick run decides nothing, so
// its status is the same on every machine.
func TestBenchQuick(t *testing.T) {
	pgcluster.InstallForTest(t)
	status, out, errOut := tidegate(t, "bench", "--quick", "--json")
	if status != exitOK || errOut != "" {
		t.Errorf("status %d, stderr %q", status, errOut)
	}
	var got struct {
		Machine struct {
			CPU, Kernel, PostgreSQL string
			Cores                   int
		}
		Quick   bool
		Figures []struct {
			Name, Unit, Verdict, Note string
			Value                     float64
			Target                    *string
			Control                   *float64
			Runs                      []float64
		}
	}
	decoder := json.NewDecoder(strings.NewReader(out))
	if err := decoder.Decode(&got); err != nil || decoder.More() {
		t.Fatalf("%v in %q", err, out)
	}
	if !got.Quick || got.Machine.CPU == "" || got.Machine.PostgreSQL == "" || got.Machine.Cores < 1 {
		t.Errorf("machine %+v", got.Machine)
	}
	// What a value can be at all, on however busy a machine.
	sane := map[string][2]float64{
		"ratio": {0.05, 20}, "of one core": {-2, 2}, "1/s": {1, 1000}, "ns": {1, 1e6}, "allocations": {-50, 50}, "bytes": {50, 100_000},
	}
	var names []string
	for _, f := range got.Figures {
		names = append(names, f.Name)
		limits, known := sane[f.Unit]
		if !known || f.Value < limits[0] || f.Value > limits[1] || math.IsNaN(f.Value) {
			t.Errorf("%s is %v %s (%s)", f.Name, f.Value, f.Unit, f.Note)
		}
		if want := map[bool][]string{true: {"inconclusive"}, false: {"inconclusive", "reported"}}[f.Target != nil]; !slices.Contains(want, f.Verdict) {
			t.Errorf("%s: verdict %s (%s)", f.Name, f.Verdict, f.Note)
		}
		if f.Unit == "ratio" && f.Control == nil || len(f.Runs) == 0 {
			t.Errorf("%s has no control or no runs: %+v", f.Name, f)
		}
	}
	if !slices.Equal(names, bench.Names()) {
		t.Errorf("got %v, want %v", names, bench.Names())
	}
}
