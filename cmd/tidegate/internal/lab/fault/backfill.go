package fault

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// backfill is a bulk job whose batches cost the primary little and each replica much. Each
// batch locks the table that it updates, and reports read that table on the replicas. Replay
// is one process, and takes the lock as well: it waits for the report that is running, once
// for each batch, and everything behind it waits too, the sessions' writes included. The
// primary has no reports, and goes on.
//
// What slows replay so is time and not work: all servers share the machine's cores, and a job
// that needed more of them than replay has would slow down everything else as well. A job that
// asks before each batch whether replicas are near enough waits for one report each time, and
// no lag piles up.
var backfill = Scenario{
	Name:          "backfill",
	About:         "a bulk job updates rows in batches, and replicas replay each only after a report of 15 ms that reads the table",
	Strategies:    []string{"tidegate", "tidegate-throttled"},
	Rate:          400,
	Opportunities: 20,
	// Replay waits for as long as reports need, instead of canceling them after half a minute.
	Settings: map[string]string{"max_standby_streaming_delay": "-1", "autovacuum": "off"},
	Inject:   runBackfill,
}

const (
	filled = "lab_backfill"
	// fillRows are the rows of a batch, fillBatches the batches in each second of the run.
	fillRows    = 100
	fillBatches = 30
	// fillPause is what the job takes to prepare the next one.
	fillPause = 8 * time.Millisecond
)

// reportTimes are how long the reports of a replica read, side by side. When the longer one
// ends, the shorter one's next already waits for the batch that is replayed then, so that
// no second batch slips through between two reports.
var reportTimes = []time.Duration{9 * time.Millisecond, 15 * time.Millisecond}

func runBackfill(ctx context.Context, site *Site, duration time.Duration) (err error) {
	start := time.Now()
	batches := int(duration.Seconds() * fillBatches)
	defer repair(ctx, &err, func(ctx context.Context) error {
		return on(ctx, site.Primary, "drop table if exists "+filled)
	})
	err = on(ctx, site.Primary, fmt.Sprintf(`drop table if exists %[1]s;
		create table %[1]s (k bigint primary key, v bigint not null) with (fillfactor = 50);
		insert into %[1]s select k, 0 from generate_series(1, %[2]d) k`, filled, batches*fillRows))
	for _, r := range site.Replicas {
		if err == nil {
			err = caughtUp(ctx, site.Primary, r)
		}
	}
	if err != nil || sleep(ctx, time.Until(start.Add(duration/5))) != nil {
		return unlessOver(ctx, err)
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, len(site.Replicas)*len(reportTimes))
	var reports sync.WaitGroup
	for i := range errs {
		replica, lasting := site.Replicas[i/len(reportTimes)], reportTimes[i%len(reportTimes)]
		reports.Go(func() { errs[i] = unlessOver(reading, report(reading, replica, lasting)) })
	}
	site.Say("a bulk job updates rows")
	err = fill(ctx, site, batches, start.Add(duration*9/10))
	for _, r := range site.Replicas {
		if err == nil {
			err = caughtUp(ctx, site.Primary, r)
		}
	}
	stop() // not before: reports are what replay waits for
	reports.Wait()
	site.Say("")
	return unlessOver(ctx, errors.Join(append(errs, err)...))
}

// fill writes the batches, or those that there is time for.
func fill(ctx context.Context, site *Site, batches int, end time.Time) error {
	conn, err := pgx.Connect(ctx, site.Primary.DSN("", ""))
	if err != nil {
		return err
	}
	defer hangUp(conn)
	for i := 0; i < batches && time.Now().Before(end); i++ {
		if site.Throttle != nil {
			if err := site.Throttle(ctx); err != nil {
				return err
			}
		}
		_, err := conn.Exec(ctx, fmt.Sprintf(`begin; lock table %[1]s;
			update %[1]s set v = k * 7 where k > %[2]d and k <= %[3]d; commit`,
			filled, i*fillRows, (i+1)*fillRows))
		if err != nil {
			return fmt.Errorf("batch %d: %w", i+1, err)
		}
		site.Batch(fillRows)
		if sleep(ctx, fillPause) != nil {
			return nil
		}
	}
	return nil
}

// report reads the table on a replica, again and again until ctx is done.
func report(ctx context.Context, replica Server, lasting time.Duration) error {
	conn, err := pgx.Connect(ctx, replica.DSN("", ""))
	if err != nil {
		return err
	}
	defer hangUp(conn)
	for ctx.Err() == nil {
		// The lock before the snapshot: one that waits for the lock with a snapshot could be
		// in the way of what replay does next, and both would wait for ever.
		sql := fmt.Sprintf("begin; lock table %[1]s in access share mode; select count(*), (select pg_sleep(%[2]f)) from %[1]s where k = 1; commit", filled, lasting.Seconds())
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("report: %w", err)
		}
	}
	return nil
}
