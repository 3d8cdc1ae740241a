package report

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

const ms = time.Millisecond

// reads are so many from one node, one each millisecond from a time on.
func reads(log *record.Log, from time.Duration, n int, node string) {
	for i := range n {
		log.Add(record.Op{Kind: record.Read, Start: from + time.Duration(i)*ms, End: from + time.Duration(i+1)*ms,
			Answer: record.Answer{Node: node, Replica: node != "primary"}})
	}
}

func TestReturned(t *testing.T) {
	t.Parallel()
	// windows are the reads of b beside those of a in each window after 2 s.
	run := func(windows ...int) *record.Log {
		log := record.NewLog(1)
		reads(log, 0, 100, "a")
		reads(log, 0, 100, "b")
		reads(log, 1000*ms, 200, "a")
		for i, n := range windows {
			from := 2000*ms + time.Duration(i)*250*ms
			reads(log, from, 100-n, "a")
			reads(log, from, n, "b")
		}
		reads(log, 2000*ms+time.Duration(len(windows))*250*ms, 1, "a") // the last window is whole
		return log
	}
	fault := func(log *record.Log, begin, end time.Duration, nodes ...string) {
		if over := log.Fault(begin, nodes...); end > 0 {
			over(end)
		}
	}
	for name, c := range map[string]struct {
		windows []int
		faults  func(*record.Log)
		want    int64
	}{
		"no fault":             {[]int{50}, func(*record.Log) {}, 0},
		"at once":              {[]int{45, 0}, func(l *record.Log) { fault(l, 500*ms, 2000*ms, "b") }, 250},
		"not quite at once":    {[]int{44, 45, 0}, func(l *record.Log) { fault(l, 500*ms, 2000*ms, "b") }, 500},
		"in the last window":   {[]int{0, 1, 2, 50}, func(l *record.Log) { fault(l, 500*ms, 2000*ms, "b") }, 1000},
		"never":                {[]int{0, 1, 2, 44}, func(l *record.Log) { fault(l, 500*ms, 2000*ms, "b") }, -1},
		"no end":               {[]int{50}, func(l *record.Log) { fault(l, 500*ms, 0, "b") }, 0},
		"an end at the end":    {[]int{}, func(l *record.Log) { fault(l, 500*ms, 2000*ms, "b") }, 0},
		"all of them":          {[]int{3}, func(l *record.Log) { fault(l, 500*ms, 2000*ms, "a", "b") }, 250},
		"nobody that answered": {[]int{50}, func(l *record.Log) { fault(l, 500*ms, 2000*ms, "c") }, 0},
		"more than its part":   {[]int{55}, func(l *record.Log) { fault(l, 1300*ms, 2000*ms, "a") }, 250},
		"the longest of two": {[]int{50, 50, 0, 0, 50, 50}, func(l *record.Log) {
			fault(l, 500*ms, 2000*ms, "b")
			fault(l, 2400*ms, 2500*ms, "b")
		}, 750},
		"the first of two": {[]int{0, 50, 0, 50}, func(l *record.Log) {
			fault(l, 500*ms, 2000*ms, "b")
			fault(l, 2500*ms, 2750*ms, "b")
		}, 500},
		"not before the next": {[]int{0, 50}, func(l *record.Log) {
			fault(l, 500*ms, 2000*ms, "b")
			fault(l, 2300*ms, 0, "b")
		}, -1},
	} {
		log := run(c.windows...)
		c.faults(log)
		if got := Measure(log).ReturnMs; got != c.want {
			t.Errorf("%s: %d ms, want %d", name, got, c.want)
		}
	}
}

// A read counts as cut off if it fails at its deadline, and was sent before anybody could
// know.
func TestReadsCutOff(t *testing.T) {
	t.Parallel()
	late := fmt.Errorf("read: %w", context.DeadlineExceeded)
	for name, c := range map[string]struct {
		kind       record.Kind
		start, end time.Duration
		err        error
		want       int
	}{
		"under way":        {record.Read, 900 * ms, 2900 * ms, late, 1},
		"within a look":    {record.Read, 2099 * ms, 4099 * ms, late, 1},
		"after it":         {record.Read, 2100 * ms, 4100 * ms, late, 0},
		"long before":      {record.Read, 0, 1000 * ms, late, 0},
		"another error":    {record.Read, 900 * ms, 2900 * ms, errors.New("refused"), 0},
		"no error":         {record.Read, 900 * ms, 2900 * ms, nil, 0},
		"a write's own":    {record.Write, 900 * ms, 2900 * ms, late, 0},
		"just at its edge": {record.Read, 0, 1001 * ms, late, 1},
	} {
		log := record.NewLog(1)
		log.Fault(1000*ms, "b")
		log.Add(record.Op{Kind: c.kind, Start: c.start, End: c.end, Err: c.err})
		f := Measure(log)
		if f.ReadsCutOff != c.want {
			t.Errorf("%s: %d", name, f.ReadsCutOff)
		}
		// Only where servers hang are they no reason to fail.
		f.Name, f.Reads = Ours, 1
		hangs, plain := Judge(&Result{Strategies: []Figures{f}}, Terms{Hangs: true}), Judge(&Result{Strategies: []Figures{f}}, Terms{})
		if (hangs.Status == StatusKept) != (c.want == 1 || c.err == nil) || (plain.Status == StatusKept) != (c.err == nil) {
			t.Errorf("%s: %+v, and where no server hangs %+v", name, hangs, plain)
		}
	}
	f := Figures{Name: Throttled, Reads: 1, StaleReads: 1}
	if got := Judge(&Result{Strategies: []Figures{f}}, Terms{}); got.Status != StatusBroken {
		t.Errorf("ours with a throttle broke its promise: %+v", got)
	}
}
