package fault

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// crashBackend makes what a replica shows go back in time. When one process of
// a server dies of signal 9, the server throws its memory away and recovers; a
// standby then answers again from the last point that its files are sure to
// contain, which can be far behind what it had shown a moment before.
//
// How far depends on what was written out meanwhile. The settings keep the
// buffers in memory, and before each kill the replica writes them all out once,
// then replays a bulk of WAL that it does not write out. Recovering from there
// takes the replica a while, in which its answers are old.
var crashBackend = Scenario{
	Name:          "crash-backend",
	About:         "one process of a replica is killed with signal 9, again and again, and what it shows goes back",
	Fresh:         true,
	Errors:        true,
	Opportunities: 100,
	Settings: map[string]string{
		"shared_buffers":        "256MB",
		"bgwriter_lru_maxpages": "0",
		"checkpoint_timeout":    "1h",
		"max_wal_size":          "4GB",
		"restart_after_crash":   "on",
	},
	Inject: killBackends,
}

const (
	kills = 4
	// bulkRows makes some 15 MB of WAL in small records, which take the longest
	// to replay for their size.
	bulkRows = 100_000
	bulk     = "lab_bulk"
)

func killBackends(ctx context.Context, site *Site, duration time.Duration) error {
	defer site.Say("")
	start := time.Now()
	err := on(ctx, site.Primary, "drop table if exists "+bulk+"; create table "+bulk+" (k bigint primary key)")
	for i := 0; err == nil && i < kills; i++ {
		if i > 0 && time.Since(start) > duration*9/10 {
			break // a slow machine: fewer have to do
		}
		err = crash(ctx, site, i, start.Add(duration*time.Duration(i+1)/(kills+1)))
	}
	return unlessOver(ctx, err)
}

// crash makes one replica go back, not before the time, and waits until it is
// where it was.
func crash(ctx context.Context, site *Site, round int, at time.Time) error {
	n := round % len(site.Replicas)
	replica := site.Replicas[n]
	if err := widenGap(ctx, site, replica, round); err != nil {
		return err
	}
	if err := sleep(ctx, time.Until(at)); err != nil {
		return err
	}
	site.Say(fmt.Sprintf("replica %d crashed and recovers", n+1))
	if err := killOne(ctx, replica); err != nil {
		return err
	}
	if err := caughtUp(ctx, site.Primary, replica); err != nil {
		return err
	}
	site.Say("")
	return nil
}

// widenGap leaves the replica with much that it shows and has not written out.
func widenGap(ctx context.Context, site *Site, replica Server, round int) error {
	// A standby can only write out up to a checkpoint of the primary.
	if err := on(ctx, site.Primary, "checkpoint"); err != nil {
		return err
	}
	if err := caughtUp(ctx, site.Primary, replica); err != nil {
		return err
	}
	if err := on(ctx, replica, "checkpoint"); err != nil {
		return err
	}
	sql := fmt.Sprintf("insert into %s select generate_series(%d, %d)", bulk, round*bulkRows, (round+1)*bulkRows-1)
	if err := on(ctx, site.Primary, sql); err != nil {
		return err
	}
	return caughtUp(ctx, site.Primary, replica)
}

// killOne kills the process behind a connection of the lab's own.
func killOne(ctx context.Context, s Server) error {
	conn, err := pgx.Connect(ctx, s.DSN("", ""))
	if err != nil {
		return err
	}
	defer hangUp(conn)
	return s.KillBackend(int(conn.PgConn().PID()))
}
