package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/carrier"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/report"
)

// What a lost token excuses, and what not.
func TestMeasureCarriage(t *testing.T) {
	t.Parallel()
	broke := func(p record.Promise) []record.Violation { return []record.Violation{{Promise: p}} }
	told := &record.Row{Key: 1, Version: 1}
	log := record.NewLog(2)
	for _, op := range []record.Op{
		{Violations: broke(record.MonotonicReads)},               // before anything was lost
		{Overlaps: true, Told: told},                             // an event that was heeded
		{Dropped: 2, Kind: record.Write},                         //
		{Violations: broke(record.ReadYourWrites)},               // excused
		{Told: told, Violations: broke(record.ReadsAfterEvents)}, // an event brings its own token
		{Told: told, Err: errors.New("failed")},                  //
		{Session: 1, Dropped: 1, Violations: broke(record.MonotonicReads)},
		{Session: 1, Violations: broke(record.MonotonicReads)},
	} {
		log.Add(op)
	}
	got := report.MeasureCarriage(log, carrier.Stats{Emitted: 1, Late: 2, CatchUps: 3, Fresh: 4, Refused: 5, Undelivered: 6})
	want := report.Carriage{
		Dropped: 2, Tokens: 3, CatchUps: 3, Fresh: 4, Refused: 5, Emitted: 1, Late: 2, Undelivered: 6,
		Overlapping: 1, Rereads: 2, StaleRereads: 1, Unexcused: 2,
	}
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("got  %+v\nwant %+v", *got, want)
	}
}

// carried is a run over HTTP in which all went well.
func carried() *report.Result {
	r := good()
	r.Carrier, r.Missing = "event", "catch-up"
	r.Strategies[0].Carried = &report.Carriage{Rereads: 900, StaleRereads: 300}
	r.Strategies[1].Carried = &report.Carriage{Dropped: 250, Tokens: 270, CatchUps: 282, Rereads: 900}
	return r
}

// With --missing fresh a run has to show what that breaks, and nothing else.
func TestJudgeCarried(t *testing.T) {
	t.Parallel()
	type result = report.Result
	lost := func(r *result) { r.Strategies[1].StaleReads, r.Strategies[1].BackwardsReads = 70, 30 }
	for name, c := range map[string]struct {
		change  func(*result)
		forgets bool
		status  int
		says    string
	}{
		"all went well":                    {func(*result) {}, false, 0, "3,000 stale and 2,000 backward and 300 behind their event"},
		"ours lost tokens":                 {lost, false, 1, "tidegate BROKE ITS PROMISE: 70 stale and 30 backward"},
		"ours missed an event":             {func(r *result) { r.Strategies[1].Carried.StaleRereads = 2 }, false, 1, "0 stale and 0 backward and 2 behind their event"},
		"ours lost tokens, as expected":    {lost, true, 0, "tidegate's are expected with --missing fresh"},
		"ours shows nothing":               {func(*result) {}, true, 2, "nothing shown: with --missing fresh violations are expected, and there was none in 20,001 reads, tokens were lost before 250 requests; run again with --scenario lost-token"},
		"ours did not run":                 {func(r *result) { r.Strategies = r.Strategies[:1] }, true, 2, "nothing shown: --missing fresh is about tidegate"},
		"ours broke a promise for nothing": {func(r *result) { lost(r); r.Strategies[1].Carried.Unexcused = 1 }, true, 1, "BROKE"},
		"ours missed an event, all the same": {func(r *result) {
			lost(r)
			r.Strategies[1].Carried.Unexcused, r.Strategies[1].Carried.StaleRereads = 1, 1
		}, true, 1, "BROKE"},
		"ours showed what cannot be": {func(r *result) { lost(r); r.Strategies[1].UnrealReads = 1 }, true, 1, "BROKE"},
		"ours failed":                {func(r *result) { lost(r); r.Strategies[1].WriteErrors = 1 }, true, 1, "FAILED WITHOUT NEED"},
		"too little danger":          {func(r *result) { lost(r); r.Strategies[1].Opportunities = 3 }, true, 2, "are wanted"},
		"no figures of the way":      {func(r *result) { lost(r); r.Strategies[1].Carried = nil }, true, 1, "BROKE"},
	} {
		r := carried()
		c.change(r)
		if got := report.Judge(r, report.Terms{Opportunities: 2000, Danger: true, Forgets: c.forgets}); got.Status != c.status || !strings.Contains(got.Line, c.says) {
			t.Errorf("%s: got %d %q, want %d and %q", name, got.Status, got.Line, c.status, c.says)
		}
	}
	r := carried()
	lost(r)
	if got := report.Judge(r, report.Terms{Forgets: true, Interrupted: true}); got.Status != report.StatusNothing {
		t.Errorf("interrupted: got %d %q", got.Status, got.Line)
	}
}

func TestCarriageIsReported(t *testing.T) {
	t.Parallel()
	r := carried()
	r.Strategies[1].Carried.Late, r.Strategies[1].Carried.Undelivered = 4, 1234
	var out bytes.Buffer
	r.Table(&out)
	for _, want := range []string{"How were the sessions carried?", "250", "282", "tidegate: 4 responses were too early", "tidegate: 1,234 events were lost"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "│") && len([]rune(line)) > 81 {
			t.Errorf("a line of the table is wider than 80 columns: %s", line)
		}
	}
	out.Reset()
	if err := r.JSON(&out); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Carrier, Missing string
		Strategies       []struct{ Carried map[string]float64 }
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"dropped": 250, "dropped_tokens": 270, "catch_ups": 282, "fresh": 0, "refused": 0, "emitted": 0, "late": 4,
		"overlapping": 0, "rereads": 900, "undelivered": 1234, "stale_rereads": 0,
	}
	if got.Carrier != "event" || got.Missing != "catch-up" || len(got.Strategies) != 2 || !reflect.DeepEqual(got.Strategies[1].Carried, want) {
		t.Errorf("got %+v", got)
	}
	// A run without HTTP says nothing of it.
	out.Reset()
	good().Table(&out)
	if err := good().JSON(&out); err != nil || strings.Contains(out.String(), "arrie") {
		t.Errorf("%v in %s", err, out.String())
	}
}
