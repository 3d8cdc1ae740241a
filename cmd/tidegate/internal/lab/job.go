package lab

import (
	"context"
	"sync"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/report"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
)

// job counts what a scenario's bulk job does. It is safe for concurrent use.
type job struct {
	held strategy.Throttling // nil: nothing holds it back

	mu            sync.Mutex
	rows, batches int
	first, last   time.Time
}

// throttle is what the job waits for before each batch, or nil.
func (j *job) throttle() func(context.Context) error {
	if j.held == nil {
		return nil
	}
	return j.held.Throttle
}

// wrote counts a batch.
func (j *job) wrote(rows int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = time.Now()
	if j.batches == 0 {
		j.first = j.last
	}
	j.batches++
	j.rows += rows
}

// figures returns nil if there was no job.
func (j *job) figures() *report.Backfill {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.batches == 0 {
		return nil
	}
	b := &report.Backfill{Rows: j.rows, Batches: j.batches, Seconds: report.Seconds(j.last.Sub(j.first))}
	if j.held != nil {
		waits, waited := j.held.Throttled()
		b.ThrottleWaits, b.ThrottleWaitS = waits, report.Seconds(waited)
	}
	return b
}
