package traffic

import (
	"context"
	"sync"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/check"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
)

// patience bounds one operation, so that a hung server ends as errors and not
// as a run that never ends. It is far above any latency worth reporting.
const patience = 5 * time.Second

// Drive runs the load against the fleet until its duration is over or ctx is
// done. Every operation that got a result is in the log when it returns, and
// judged by the checker, which is one for the load's keys. Start is the moment
// that the records count from.
//
// The load is open: operations are due when the plan says so. One that is due
// while its session is still busy queues, and its record says for how long. An
// operation whose turn has not come when the duration ends is left out and
// counted in unsent.
func Drive(ctx context.Context, load Load, start time.Time, fleet *Fleet, checker *check.Checker, log *record.Log) (unsent int) {
	left := make([]int, load.Sessions)
	var wg sync.WaitGroup
	for id := range load.Sessions {
		wg.Go(func() {
			d := driver{
				load: load, start: start, fleet: fleet, log: log, id: id,
				session: &strategy.Session{ID: id},
				checks:  checker.Session(id, int64(id)),
			}
			left[id] = d.run(ctx)
		})
	}
	wg.Wait()
	for _, n := range left {
		unsent += n
	}
	return unsent
}

// driver is one session. Its operations follow one another; between two of
// them only the token in its strategy.Session moves.
type driver struct {
	load  Load
	start time.Time
	fleet *Fleet
	log   *record.Log

	id      int
	session *strategy.Session
	checks  *check.Session

	version int64         // of the newest write that was sent
	acked   time.Duration // when the newest acknowledged write was
	fresh   bool          // no read since
}

func (d *driver) now() time.Duration { return time.Since(d.start) }

// run issues the session's steps and returns how many of them it had to leave.
func (d *driver) run(ctx context.Context) (unsent int) {
	for step := range d.load.Steps(d.id) {
		due := step.Due
		switch step.Pace {
		case AtOnce:
			due = d.now()
		case Later:
			due = max(due, d.acked+LaterReadDelay)
		}
		over := step.Pace != AtOnce && max(due, d.now()) >= d.load.Duration
		if unsent > 0 || over || !sleepUntil(ctx, d.start.Add(due)) {
			unsent++
			continue
		}
		op := record.Op{Session: d.id, Instance: step.Instance, Due: due}
		if step.Write {
			d.write(ctx, &op)
		} else {
			d.read(ctx, &op, step)
		}
		if op.Err != nil && ctx.Err() != nil {
			// Cut off by the end of the run: says nothing about the strategy.
			unsent++
			continue
		}
		d.log.Add(op)
	}
	return unsent
}

func (d *driver) write(ctx context.Context, op *record.Op) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// A version is never used again, not even when its write failed: it may yet
	// appear, and has to be told from every other.
	d.version++
	op.Kind, op.Key, op.Version = record.Write, int64(d.id), d.version
	d.checks.Writing(d.version)
	op.Start = d.now()
	d.fleet.serve(op.Instance, func(i strategy.Instance) {
		op.Err = i.Write(ctx, d.session, op.Key, op.Version)
	})
	op.End = d.now()
	if op.Err == nil {
		d.checks.Wrote(d.version)
		d.acked, d.fresh = op.End, true
	}
}

func (d *driver) read(ctx context.Context, op *record.Op, step Step) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	op.Kind, op.Asked, op.Strong = record.Read, step.Keys, step.Strong
	op.Start = d.now()
	if d.fresh {
		d.fresh = false
		op.AfterWrite, op.AtOnce, op.SinceWrite = true, step.Pace == AtOnce, op.Start-d.acked
	}
	d.fleet.serve(op.Instance, func(i strategy.Instance) {
		read := i.Read
		if step.Strong {
			read = i.ReadStrong
		}
		op.Answer, op.Err = read(ctx, d.session, step.Keys)
	})
	op.End = d.now()
	if op.Err == nil {
		op.Violations = d.checks.Read(step.Keys, op.Answer.Rows)
	}
}

// sleepUntil reports whether the time came before ctx was done.
func sleepUntil(ctx context.Context, t time.Time) bool {
	wait := time.Until(t)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
