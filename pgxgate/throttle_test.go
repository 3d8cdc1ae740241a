package pgxgate_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// TestThrottleWaitsForThePausedReplica holds a job while one of two replicas replays
// nothing, and lets it go on when it has caught up; the better one of the two would do
// all the time.
func TestThrottleWaitsForThePausedReplica(t *testing.T) {
	c := cluster(t)
	db := open(t, c)
	throttle := func(cfg pgxgate.ThrottleConfig) *pgxgate.Throttle {
		return must[*pgxgate.Throttle](t)(db.NewThrottle(cfg))
	}
	const most = 1 << 20
	byAge, byBytes := throttle(pgxgate.ThrottleConfig{MaxWait: time.Second}), throttle(pgxgate.ThrottleConfig{MaxLag: most, MaxWait: time.Second})
	ctx := t.Context()
	for _, th := range []interface{ Wait(context.Context) error }{byAge, byBytes, throttle(pgxgate.ThrottleConfig{})} {
		if err := th.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	paused := c.Replicas()[1]
	resume := pause(t, paused)
	sql(t, c.Primary(), "select pg_logical_emit_message(false, 'test', repeat('x', 2 << 20)); update kv set v = v where k = 0")

	var lagging *pgxgate.LaggingError
	eventually(t, "the paused replica to be old", func() bool { return errors.As(byAge.Wait(ctx), &lagging) })
	if lagging.Node != paused.Name || lagging.Err != nil || !errors.Is(lagging, tidegate.ErrLagging) {
		t.Errorf("%v", lagging)
	}
	if err := byBytes.Wait(ctx); !errors.As(err, &lagging) || lagging.Node != paused.Name || !lagging.LagKnown || lagging.Lag < 2<<20 {
		t.Errorf("%v", err)
	}
	if err := throttle(pgxgate.ThrottleConfig{Percentile: 50}).Wait(ctx); err != nil {
		t.Errorf("half of the replicas keep up: %v", err)
	}
	done := make(chan error, 2)
	go func() { done <- db.Throttle(ctx) }()
	go func() { done <- throttle(pgxgate.ThrottleConfig{MaxLag: most}).Wait(ctx) }()
	before := db.Stats().DemandProbes
	eventually(t, "some looks", func() bool { return db.Stats().DemandProbes > before+10 })
	select {
	case err := <-done:
		t.Fatalf("returned %v while the replica is paused", err)
	default:
	}
	resume()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got, want := sql(t, paused, "select pg_last_wal_replay_lsn() >= '"+sql(t, c.Primary(), "select pg_current_wal_flush_lsn() - 1048576::numeric")+"'"), "t"; got != want {
		t.Errorf("returned before the replica was near enough")
	}
}

// slow makes a replica replay 3 MB a second until the test ends, in short spells.
func slow(ctx context.Context, t *testing.T, s *pgcluster.Server) {
	t.Helper()
	const most, tick = 3 << 20, 10 * time.Millisecond
	conn := must[*pgconn.PgConn](t)(pgconn.Connect(ctx, s.DSN("", "postgres")))
	// One statement at a time: replay waits for snapshots that see what it removes.
	do := func(sql string) string {
		all, err := conn.Exec(context.Background(), sql).ReadAll()
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			return ""
		}
		return string(all[0].Rows[0][0])
	}
	replayed := func() (n int) {
		_, _ = fmt.Sscan(do("select pg_last_wal_replay_lsn() - '0/0'"), &n) // an error is in do's report
		return n
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		at, may := replayed(), 0
		for ctx.Err() == nil && !t.Failed() {
			now := replayed()
			at, may = now, min(may+at-now, most/50)+int(most*tick/time.Second)
			if may > 0 {
				do("select pg_wal_replay_resume()")
				for ctx.Err() == nil && !t.Failed() && do("select pg_last_wal_replay_lsn() - '0/0' > "+strconv.Itoa(at)+" or pg_last_wal_replay_lsn() = pg_last_wal_receive_lsn()") == "f" {
				}
				do("select pg_wal_replay_pause()")
			}
			<-ticker.C
		}
		do("select pg_wal_replay_resume()")
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		if err := conn.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// noticed is what a session noticed of a bulk job.
type noticed struct {
	reads, fallbacks int
	// old counts the looks at the replicas that found one not proven to be half a
	// second young.
	old   int
	worst time.Duration
}

// inBulk writes in batches while a session writes and reads, until the replicas have
// all of it.
func inBulk(ctx context.Context, t *testing.T, c *pgcluster.Cluster, wait func(context.Context) error, db *pgxgate.DB) (n noticed) {
	t.Helper()
	// Some 80 KB of log, and 5 ms in which the job does something else.
	const batches, batch = 80, "insert into bulk select i, repeat('x', 100) from generate_series(1, 500) i, (select pg_sleep(.005)) s"
	job := make(chan error, 1)
	go func() {
		var err error
		for range batches {
			if err = wait(ctx); err != nil {
				break
			}
			if _, err = db.Write().Exec(ctx, batch); err != nil {
				break
			}
		}
		job <- errors.Join(err, c.Primary().WaitCaughtUp(ctx, len(c.Replicas())))
	}()
	mine, seen := tidegate.Observe(tidegate.WithSession(ctx, tidegate.NewSession()))
	k := key(t)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for v := int64(1); ; v++ {
		select {
		case err := <-job:
			if err != nil {
				t.Fatal(err)
			}
			return n
		case <-tick.C:
		}
		must[any](t)(db.Write().Exec(mine, update, k, v))
		var got int64
		if err := db.Read(tidegate.Causal).QueryRow(mine, get, k).Scan(&got); err != nil || got != v {
			t.Fatalf("got %d, want %d, error %v", got, v, err)
		}
		n.reads++
		if d, _ := seen.Last(); d.Role == tidegate.RolePrimary {
			n.fallbacks++
		}
		old := false
		for _, node := range db.Status().Nodes {
			if node.Role == tidegate.RoleReplica {
				n.worst = max(n.worst, node.Staleness)
				old = old || !node.StalenessKnown || node.Staleness > 500*time.Millisecond
			}
		}
		if old {
			n.old++
		}
	}
}

// TestThrottleBeforeSessionsNotice writes the same in bulk with and without a throttle,
// on replicas that replay slower than the primary writes.
func TestThrottleBeforeSessionsNotice(t *testing.T) {
	c := ownCluster(t, pgcluster.Config{Replicas: 2, ReplicaSettings: map[string]string{"max_standby_streaming_delay": "-1"}})
	sql(t, c.Primary(), "create table bulk (k bigint, v text); grant all on bulk to app")
	caughtUp(t, c)
	db := open(t, c)
	for _, r := range c.Replicas() {
		slow(t.Context(), t, r)
	}
	th := must[*pgxgate.Throttle](t)(db.NewThrottle(pgxgate.ThrottleConfig{MaxStaleness: 150 * time.Millisecond, MaxLag: 128 << 10}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	without := inBulk(ctx, t, c, func(context.Context) error { return nil }, db)
	with := inBulk(ctx, t, c, th.Wait, db)
	t.Logf("without: %+v", without)
	t.Logf("with:    %+v, throttle %+v", with, th.Stats())
	if without.old < without.reads/4 {
		t.Fatal("the replicas kept up without a throttle: nothing is shown")
	}
	if 2*with.old*without.reads > without.old*with.reads {
		t.Error("replicas were old more than half as often with the throttle")
	}
	if 10*with.fallbacks*without.reads > 9*without.fallbacks*with.reads {
		t.Error("reads fell back to the primary as often with the throttle")
	}
	if s := th.Stats(); s.Passed == 0 || s.Waits == 0 || s.Waited == 0 || s.GaveUp != 0 {
		t.Errorf("%+v", s)
	}
}
