package traffic

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/check"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// patience bounds one operation, so that a hung server ends as errors and not
// as a run that never ends. It is far above any latency worth reporting.
const patience = 5 * time.Second

// Drive runs the load against the application until its duration is over or ctx
// is done. Every operation that got a result is in the log when it returns, and
// judged by the checker, which is one for the load's keys. Start is the moment
// that the records count from.
//
// The load is open: operations are due when the plan says so. One that is due
// while its session is still busy queues, and its record says for how long. An
// operation whose turn has not come when the duration ends is left out and
// counted in unsent. Reads that events cause come on top of the plan.
func Drive(ctx context.Context, load Load, start time.Time, backend Backend, checker *check.Checker, log *record.Log) (unsent int) {
	left := make([]int, load.Sessions)
	var wg sync.WaitGroup
	for id := range load.Sessions {
		wg.Go(func() {
			d := newDriver(load, start, id, backend.Client(id), checker.Session(id, int64(id)), log)
			left[id] = d.run(ctx)
			log.Sort(id)
		})
	}
	wg.Wait()
	for _, n := range left {
		unsent += n
	}
	return unsent
}

// driver is one session. Its operations follow one another, except for the reads
// that it does not wait for and those that events cause.
type driver struct {
	load   Load
	start  time.Time
	log    *record.Log
	id     int
	client Client

	mu     sync.Mutex // held for moments, never while an operation is under way
	idle   *sync.Cond // no operation is under way
	flying int        // operations that are under way
	begun  int        // operations, in all
	unsent int
	checks *check.Session

	version int64         // of the newest write that was sent
	acked   time.Duration // when the newest acknowledged write was
	fresh   bool          // no read since
}

func newDriver(load Load, start time.Time, id int, client Client, checks *check.Session, log *record.Log) *driver {
	d := &driver{load: load, start: start, id: id, client: client, checks: checks, log: log}
	d.idle = sync.NewCond(&d.mu)
	return d
}

func (d *driver) now() time.Duration { return time.Since(d.start) }

// run issues the session's steps and returns how many of them it had to leave.
func (d *driver) run(ctx context.Context) (unsent int) {
	var beside sync.WaitGroup
	done := make(chan struct{})
	if l, ok := d.client.(Listener); ok {
		beside.Go(func() { d.listen(ctx, l, done) })
	}
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
		switch {
		case step.Write:
			d.write(ctx, op, step)
		case step.Beside:
			q := d.beginRead(ctx, &op, step) // before the next operation begins
			beside.Go(func() { d.read(ctx, op, q, d.client.Read) })
		default:
			q := d.beginRead(ctx, &op, step)
			d.read(ctx, op, q, d.client.Read)
		}
	}
	close(done)
	beside.Wait()
	return unsent + d.unsent
}

// listen reads again whenever an event comes, one after the other.
func (d *driver) listen(ctx context.Context, l Listener, done <-chan struct{}) {
	// What else such a read asks for, as the plan's reads do.
	r := rand.New(rand.NewPCG(d.load.Seed, uint64(d.id)^1<<32))
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case e := <-l.Events():
			if d.now() >= d.load.Duration {
				continue
			}
			op := record.Op{Session: d.id, Due: d.now(), Told: &e.Row}
			q := d.beginRead(ctx, &op, Step{Keys: d.load.keysWith(r, d.id, e.Row.Key)})
			d.read(ctx, op, q, func(ctx context.Context, op *record.Op) { l.Reread(ctx, op, e) })
		}
	}
}

// begin notes that an operation begins now. The caller holds d.mu.
func (d *driver) begin(ctx context.Context, op *record.Op, step Step) {
	if step.Drop {
		// A request that was under way would bring tokens back later on, and the client
		// would not have lost all.
		for d.flying > 0 {
			d.idle.Wait()
		}
		op.Dropped = d.client.Forget(ctx)
	}
	op.Overlaps = d.flying > 0
	d.flying++
	d.begun++
	op.Seq, op.Start = d.begun, d.now()
}

// end notes that an operation has ended. The caller holds d.mu.
func (d *driver) end(ctx context.Context, op *record.Op) {
	if d.flying--; d.flying == 0 {
		d.idle.Broadcast()
	}
	if op.Err != nil && ctx.Err() != nil {
		// Cut off by the end of the run: says nothing about the strategy.
		d.unsent++
		return
	}
	d.log.Add(*op)
}

func (d *driver) write(ctx context.Context, op record.Op, step Step) {
	op.Kind, op.Key = record.Write, int64(d.id)
	d.mu.Lock()
	// A version is never used again, not even when its write failed: it may yet
	// appear, and has to be told from every other.
	d.version++
	op.Version = d.version
	d.checks.Writing(op.Version)
	d.begin(ctx, &op, step)
	d.mu.Unlock()

	op.Deadline = patience
	limited, cancel := context.WithTimeout(ctx, op.Deadline)
	defer cancel()
	d.client.Write(limited, &op)

	d.mu.Lock()
	defer d.mu.Unlock()
	op.End = d.now()
	if op.Err == nil {
		d.checks.Wrote(op.Version)
		d.acked, d.fresh = op.End, true
	}
	d.end(ctx, &op)
}

// beginRead notes that a read begins and returns what it must show.
func (d *driver) beginRead(ctx context.Context, op *record.Op, step Step) check.Required {
	op.Kind, op.Asked, op.Strong, op.Budget = record.Read, step.Keys, step.Strong, step.Budget
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begin(ctx, op, step)
	if op.Budget != nil {
		return d.checks.BeginRelaxed(op.Asked)
	}
	if d.fresh {
		d.fresh = false
		op.AfterWrite, op.AtOnce, op.SinceWrite = true, step.Pace == AtOnce, op.Start-d.acked
	}
	if op.Told != nil {
		return d.checks.Begin(op.Asked, *op.Told)
	}
	return d.checks.Begin(op.Asked)
}

func (d *driver) read(ctx context.Context, op record.Op, q check.Required, send func(context.Context, *record.Op)) {
	op.Deadline = cmp.Or(d.load.ReadDeadline, patience)
	limited, cancel := context.WithTimeout(ctx, op.Deadline)
	defer cancel()
	send(limited, &op)

	d.mu.Lock()
	defer d.mu.Unlock()
	op.End = d.now()
	if op.Err == nil {
		op.Violations = d.checks.End(q, op.Answer.Rows)
	}
	d.end(ctx, &op)
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
