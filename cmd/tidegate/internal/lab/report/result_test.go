package report_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/report"
)

// good is a run in which all went well.
func good() *report.Result {
	return &report.Result{
		Engine: "postgresql", ServerVersion: "17.1", Scenario: "lag-spike", Seed: 7, DurationS: 20, Instances: 2, Replicas: 2,
		Strategies: []report.Figures{
			{Name: "round-robin", Reads: 20000, Writes: 5000, Opportunities: 12000, StaleReads: 3000, BackwardsReads: 2000, FirstViolation: "a lot"},
			{Name: report.Ours, Reads: 20001, Writes: 5000, Opportunities: 11000, ReplicaReads: 19000, ReplicaShare: 0.95, ReadP50us: 123},
		},
	}
}

var topFields = []string{"engine", "server_version", "scenario", "seed", "duration_s", "instances", "replicas", "strategies"}

var strategyFields = []string{
	"name", "writes", "reads", "opportunities", "stale_reads", "backwards_reads", "unproven_reads", "replica_reads",
	"replica_share", "read_after_write_replica_share", "read_after_write_p50_us", "read_after_write_now_p50_us",
	"fallbacks", "waits", "shed", "errors", "read_p50_us", "read_p99_us", "write_p50_us", "primary_cpu_s", "replica_cpu_s",
	"read_errors_before_row", "read_errors_after_row", "write_errors", "write_p99_us", "write_stall_us",
	"primary_reads_by_reason", "unproven_reads_by_reason", "unprompted_waits_max", "strong_reads", "causal_replica_share",
	"read_p95_us", "write_p95_us", "stale_marked", "shed_untyped", "shed_late", "limiter_wait_p99_us",
	"budget_breaches", "bound_breaches", "recovery_conflicts", "retried_reads",
	"reads_cut_off", "ejections",
}

// Tools read this object: neither names nor order may change.
func TestJSONFields(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := good().JSON(&out); err != nil {
		t.Fatal(err)
	}
	var top map[string]any
	decoder := json.NewDecoder(bytes.NewReader(out.Bytes()))
	if err := decoder.Decode(&top); err != nil {
		t.Fatal(err)
	}
	if decoder.More() || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("more than one object: %s", out.String())
	}
	want := slices.Concat(topFields, strategyFields, strategyFields)
	var got []string
	for _, m := range regexp.MustCompile(`"([a-z0-9_]+)":`).FindAllStringSubmatch(out.String(), -1) {
		got = append(got, m[1])
	}
	if !slices.Equal(got, want) {
		t.Errorf("fields are\n%v, want\n%v", got, want)
	}
	if top["seed"] != 7.0 || top["duration_s"] != 20.0 || top["engine"] != "postgresql" {
		t.Errorf("values: %v", top)
	}
}

// What is not of every run comes behind the rest, and only where it is known.
func TestJSONOfRecovery(t *testing.T) {
	t.Parallel()
	r := good()
	r.Strategies[1].ReturnMs = -1
	r.Strategies[1].Backfill = &report.Backfill{Rows: 300, Batches: 3, Seconds: 1.5, ThrottleWaits: 2, ThrottleWaitS: 0.5}
	var out bytes.Buffer
	if err := r.JSON(&out); err != nil {
		t.Fatal(err)
	}
	want := `"ejections":0,"return_ms":-1,"backfill_rows":300,"backfill_batches":3,"backfill_s":1.5,"throttle_waits":2,"throttle_wait_s":0.5}]`
	if !strings.Contains(out.String(), want) || strings.Count(out.String(), "backfill") != 3 {
		t.Errorf("%s is not in %s", want, out.String())
	}
	out.Reset()
	r.Strategies[0].ReturnMs, r.Strategies[0].ReadsCutOff = 1250, 7
	r.Table(&out)
	for _, want := range []string{
		"tidegate: the bulk job wrote 300 rows in 3 batches and 1.5 s; 2 of them waited for replicas, for 0.5 s.",
		"tidegate: replicas that were in trouble did not have", "round-robin: replicas that were in trouble had their share of the reads again within 1,250 ms",
		"round-robin: 7 reads had been sent to a server that stopped",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}

func TestReasons(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]report.Reasons{
		"":                                     nil,
		"3 strong":                             {"strong": 3},
		"1,200 behind, 7 no-replica, 7 strong": {"strong": 7, "behind": 1200, "no-replica": 7},
	} {
		if r.String() != want {
			t.Errorf("got %q, want %q", r, want)
		}
	}
	r := good()
	r.Strategies[1].PrimaryReadsBy = report.Reasons{"no-replica": 2}
	var out bytes.Buffer
	if err := r.JSON(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"primary_reads_by_reason":{}`, `"primary_reads_by_reason":{"no-replica":2}`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in %s", want, out.String())
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	type result = report.Result
	for name, c := range map[string]struct {
		change      func(*result)
		interrupted bool
		status      int
		says        string
	}{
		"all went well":                   {nil, false, 0, "tidegate: no violation in 20,001 reads, 11,000 of them in danger"},
		"the others' are told":            {nil, false, 0, "3,000 stale and 2,000 backward"},
		"ours had a stale read":           {func(r *result) { r.Strategies[1].StaleReads = 1 }, false, 1, "1 stale and 0 backward"},
		"ours had a backward read":        {func(r *result) { r.Strategies[1].BackwardsReads = 1 }, false, 1, "--seed 7"},
		"ours showed what cannot be":      {func(r *result) { r.Strategies[1].UnrealReads = 1 }, false, 1, "1 unreal"},
		"a violation in half a run":       {func(r *result) { r.Strategies[1].StaleReads = 1 }, true, 1, "BROKE"},
		"a violation in a quiet run":      {func(r *result) { r.Strategies[1].StaleReads, r.Strategies[1].Opportunities = 1, 5 }, false, 1, "BROKE"},
		"interrupted":                     {nil, true, 2, "interrupted"},
		"too few opportunities":           {func(r *result) { r.Strategies[1].Opportunities = 1999 }, false, 2, "1,999 of tidegate's reads were in danger, 2,000 are wanted; run again with a higher --rate"},
		"just enough opportunities":       {func(r *result) { r.Strategies[1].Opportunities = 2000 }, false, 0, "no violation"},
		"too few for the others":          {func(r *result) { r.Strategies[0].Opportunities = 0 }, false, 2, "round-robin's"},
		"no read was answered":            {func(r *result) { r.Strategies[1] = report.Figures{Name: report.Ours, FirstError: "refused"} }, false, 2, "refused"},
		"no read was made":                {func(r *result) { r.Strategies[1] = report.Figures{Name: report.Ours} }, false, 2, "tidegate made no read; run again with a higher --rate"},
		"the others saw what cannot be":   {func(r *result) { r.Strategies[0].UnrealReads = 1 }, false, 2, "rows that cannot be"},
		"the others hold writes back":     {func(r *result) { r.Strategies[0].Opportunities, r.Strategies[0].Held = 0, true }, false, 0, "no violation"},
		"ours in memory had a stale read": {func(r *result) { r.Strategies[0].Name = report.Carried }, false, 1, "tidegate-memory BROKE"},
		"a read failed without a row":     {func(r *result) { r.Strategies[1].Errors, r.Strategies[1].ReadErrorsBeforeRow = 1, 1 }, false, 1, "tidegate FAILED WITHOUT NEED: 1 reads failed before"},
		"a read failed after a row":       {func(r *result) { r.Strategies[1].Errors, r.Strategies[1].ReadErrorsAfterRow = 1, 1 }, false, 1, "after their first row"},
		"a write failed":                  {func(r *result) { r.Strategies[1].Errors, r.Strategies[1].WriteErrors = 1, 1 }, false, 1, "1 writes failed"},
		"ours was older than its budget":  {func(r *result) { r.Strategies[1].BudgetBreaches = 1 }, false, 1, "1 older than their budget"},
		"ours was older than it said":     {func(r *result) { r.Strategies[1].BoundBreaches = 1 }, false, 1, "1 older than they were said to be"},
		"the others break budgets":        {func(r *result) { r.Strategies[0].BudgetBreaches = 9 }, false, 0, "9 older than their budget"},
		"a read was refused":              {func(r *result) { r.Strategies[1].Shed = 1 }, false, 1, "1 reads were refused"},
		"an error in a run cut short":     {func(r *result) { r.Strategies[1].WriteErrors = 1 }, true, 1, "1 writes failed"},
		"the others' reads failed":        {func(r *result) { r.Strategies[0].Errors, r.Strategies[0].ReadErrorsBeforeRow = 9, 9 }, false, 0, "no violation"},
		"ours did not run":                {func(r *result) { r.Strategies = r.Strategies[:1] }, false, 0, "round-robin"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := good()
			if c.change != nil {
				c.change(r)
			}
			got := report.Judge(r, report.Terms{Opportunities: 2000, Interrupted: c.interrupted})
			if got.Status != c.status || !strings.Contains(got.Line, c.says) {
				t.Errorf("got %d %q, want %d and %q", got.Status, got.Line, c.status, c.says)
			}
			if strings.Contains(got.Line, "\n") {
				t.Errorf("more than one line: %q", got.Line)
			}
		})
	}
}

// Without a read in danger nothing is shown, unless that is what the strategy is for.
func TestJudgeWithoutDanger(t *testing.T) {
	t.Parallel()
	type result = report.Result
	for name, c := range map[string]struct {
		change func(*result)
		status int
		says   string
	}{
		"none":                    {func(*result) {}, 2, "no read was in danger, so that none could be stale; run again"},
		"the others' show enough": {func(r *result) { r.Strategies[0].Opportunities = 1 }, 0, "0 of them in danger"},
		"one holds writes back":   {func(r *result) { r.Strategies[0].Held = true }, 2, "no read was in danger"},
		"all hold writes back":    {func(r *result) { r.Strategies[0].Held, r.Strategies[1].Held = true, true }, 0, "no violation"},
		"nobody wrote":            {func(r *result) { r.Strategies[0].Writes, r.Strategies[1].Writes = 0, 0 }, 2, "wrote nothing, so that no read could be stale; run again with --writes above 0"},
		"ours was stale":          {func(r *result) { r.Strategies[1].StaleReads = 1 }, 1, "BROKE"},
	} {
		r := good()
		r.Strategies[0].Opportunities, r.Strategies[1].Opportunities = 0, 0
		r.Strategies[0].StaleReads, r.Strategies[0].BackwardsReads = 0, 0
		c.change(r)
		if got := report.Judge(r, report.Terms{Danger: true}); got.Status != c.status || !strings.Contains(got.Line, c.says) {
			t.Errorf("%s: got %d %q, want %d and %q", name, got.Status, got.Line, c.status, c.says)
		}
		if got := report.Judge(r, report.Terms{}); c.status != 1 && got.Status != 0 {
			t.Errorf("%s: nobody asks for danger, and got %d %q", name, got.Status, got.Line)
		}
	}
}

// Where connections break in the middle of an answer, a read may fail after its
// first row, and nothing else may.
func TestJudgeWhereErrorsArePossible(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*report.Figures)
		status int
	}{
		"after a row":    {func(f *report.Figures) { f.Errors, f.ReadErrorsAfterRow = 3, 3 }, 0},
		"before a row":   {func(f *report.Figures) { f.Errors, f.ReadErrorsBeforeRow = 1, 1 }, 1},
		"a failed write": {func(f *report.Figures) { f.Errors, f.WriteErrors = 1, 1 }, 1},
		"one of each":    {func(f *report.Figures) { f.Errors, f.ReadErrorsAfterRow, f.WriteErrors = 2, 1, 1 }, 1},
		"a stale read":   {func(f *report.Figures) { f.StaleReads = 1 }, 1},
		"a read refused": {func(f *report.Figures) { f.Shed = 1 }, 1},
		"nothing at all": {func(*report.Figures) {}, 0},
	} {
		r := good()
		c.change(&r.Strategies[1])
		if got := report.Judge(r, report.Terms{Errors: true}); got.Status != c.status {
			t.Errorf("%s: got %d %q, want %d", name, got.Status, got.Line, c.status)
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := good()
	r.Strategies[1].FirstError = "read of session 3 at 1.000 s: refused"
	r.Strategies[1].Errors, r.Strategies[1].ReadErrorsAfterRow, r.Strategies[1].WriteErrors = 3, 2, 1
	r.Strategies[1].PrimaryReadsBy = report.Reasons{"behind": 1000, "strong": 1}
	r.Strategies[1].UnprovenReads, r.Strategies[1].UnprovenBy = 2, report.Reasons{"behind": 2}
	r.Strategies[1].UnpromptedWaitsMax, r.Strategies[1].StrongReads, r.Strategies[1].CausalReplicaShare = 1, 1, 0.97
	r.Strategies[1].WriteStallUs = 4_200_000
	r.Strategies[0].LateP99us = 2_000_000
	r.Strategies = append(r.Strategies, report.Figures{Name: "tidegate-amnesia"})
	r.Table(&out)
	for _, want := range []string{
		"Did sessions see the past?", "Who answered?", "How long did reads take?", "How long did writes take?", "What did it cost?",
		"20,001", "11,000", "3,000", "95.0 %", "123",
		"first error: read of session 3", "round-robin could not keep up",
		"tidegate's reads on the primary, by reason: 1,000 behind, 1 strong.", "tidegate's unproven reads, by reason: 2 behind.",
		"behind: no replica had it, and the primary was not proven", "0 reads before their first row, 2 reads after it, 1 writes",
		"wait more than once", "1 strong reads; of all others replicas answered 97.0 %", "4,200,000",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
	for _, line := range strings.Split(out.String(), "\n") {
		if strings.HasPrefix(line, "│") && len([]rune(line)) > 80 {
			t.Errorf("a line of the table is wider than 80 columns: %s", line)
		}
	}
}

func TestRunLine(t *testing.T) {
	t.Parallel()
	log := record.NewLog(1)
	for range 1500 {
		log.Add(record.Op{Answer: record.Answer{Replica: true}})
	}
	log.Add(record.Op{Violations: []record.Violation{{Promise: record.MonotonicReads}}, Answer: record.Answer{Fallback: true}})
	got := report.RunLine("tidegate", 3900*time.Millisecond, 20*time.Second, &log.Live, "replica 2 replays nothing")
	want := "tidegate 3/20 s, replica 2 replays nothing | 1,501 reads, 100 % on replicas | 0 stale, 1 backward | 1 fell back"
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestNoProgressWithoutTerminal(t *testing.T) {
	t.Parallel()
	var p *report.Progress
	p.Show("a")
	p.Say("%s", "b")
	p.Keep()
	p.Clear()
}
