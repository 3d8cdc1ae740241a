package wire

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

func testBroken(t *testing.T, dsn string, w witness) {
	ctx := t.Context()
	t.Run("terminated in the middle", func(t *testing.T) {
		c := connect(t, dsn, nil)
		pid := c.PgConn().PID()
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			// Its own row says when it sleeps.
			for busy := false; !busy; {
				w.QueryRow(ctx, "select wait_event = 'PgSleep' from pg_stat_activity where pid = $1", pid).Scan(&busy)
			}
			w.Exec(ctx, "select pg_terminate_backend($1)", pid)
		})
		c.wire.Arm(After)
		_, err := c.Exec(ctx, "select pg_sleep($1)", 60)
		a := c.wire.Take()
		var pe *pgconn.PgError
		if !errors.As(err, &pe) || pe.Code != "57P01" || a.OK || !a.Sent || a.TxStatus != 0 {
			t.Errorf("%v, %+v", err, a)
		}
	})
	t.Run("terminated while it commits", func(t *testing.T) {
		// The delay is for flushes that can fail.
		setting := func(sql string, until string) {
			for _, q := range []string{sql, "select pg_reload_conf()"} {
				if _, err := w.Exec(ctx, q); err != nil {
					t.Fatal(err)
				}
			}
			for fsync := ""; fsync != until; {
				if err := w.QueryRow(ctx, "show fsync").Scan(&fsync); err != nil {
					t.Fatal(err)
				}
			}
		}
		setting("alter system set fsync = on", "on")
		defer setting("alter system set fsync = off", "off")
		for _, ask := range []Ask{After, AroundCommit} {
			c := connect(t, dsn, nil)
			if err := c.exec("set commit_delay = 100000; set commit_siblings = 0")(); err != nil {
				t.Fatal(err)
			}
			pid := c.PgConn().PID()
			tx, err := c.Begin(ctx)
			if err == nil {
				_, err = tx.Exec(ctx, "insert into once values ($1)", 100+int(ask))
			}
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				for busy := false; !busy; {
					w.QueryRow(ctx, "select state = 'active' and query = 'commit' from pg_stat_activity where pid = $1", pid).Scan(&busy)
				}
				w.Exec(ctx, "select pg_terminate_backend($1)", pid)
			})
			c.wire.Arm(ask)
			err = tx.Commit(ctx)
			wg.Wait()
			a := c.wire.Take()
			var there bool
			if err := w.QueryRow(ctx, "select exists (select from once where k = $1)", 100+int(ask)).Scan(&there); err != nil {
				t.Fatal(err)
			}
			// It is acknowledged, or nobody knows; never refused and there.
			var pe *pgconn.PgError
			if there && (errors.As(err, &pe) || a.Tag != "COMMIT") || !there && err == nil {
				t.Errorf("ask %d: there %v, %v, %+v", ask, there, err, a)
			}
			t.Logf("ask %d: there %v, error %v, position %v", ask, there, err, a.OK)
		}
	})
	t.Run("terminated while idle", func(t *testing.T) {
		c := connect(t, dsn, nil)
		if _, err := w.Exec(ctx, "select pg_terminate_backend($1, 5000)", c.PgConn().PID()); err != nil {
			t.Fatal(err)
		}
		c.wire.Arm(After)
		err := c.exec("insert into t values (1, 'x')")()
		if a := c.wire.Take(); err == nil || a.OK {
			t.Errorf("%v, %+v", err, a)
		}
	})
	t.Run("context ends in the middle", func(t *testing.T) {
		c := connect(t, dsn, nil)
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		c.wire.Arm(After)
		_, err := c.Exec(ctx, "select pg_sleep($1)", 60)
		if a := c.wire.Take(); !errors.Is(err, context.DeadlineExceeded) || a.OK || !a.Sent || a.TxStatus != 0 {
			t.Errorf("%v, %+v", err, a)
		}
		<-c.PgConn().CleanupDone()
	})
	t.Run("context over before", func(t *testing.T) {
		c := connect(t, dsn, nil)
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		c.wire.Arm(After)
		_, err := c.Exec(ctx, "insert into t values ($1, 'x')", 1)
		if a := c.wire.Take(); !errors.Is(err, context.Canceled) || a.Sent {
			t.Errorf("%v, %+v", err, a)
		}
	})
	t.Run("cancelled on the server, connection goes on", func(t *testing.T) {
		c := connect(t, dsn, func(cfg *pgx.ConnConfig) {
			cfg.BuildContextWatcherHandler = func(pc *pgconn.PgConn) ctxwatch.Handler {
				return &pgconn.CancelRequestContextWatcherHandler{Conn: pc, DeadlineDelay: time.Minute}
			}
		})
		for range 3 {
			ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			c.wire.Arm(After)
			_, err := c.Exec(ctx, "select pg_sleep($1)", 60)
			a := c.wire.Take()
			cancel()
			if err == nil || !a.Failed || !a.Sent || a.TxStatus != 'I' {
				t.Errorf("%v, %+v", err, a)
			}
			if _, err := c.run(t, w, After, c.exec("insert into t values (1, 'on')")); err != nil {
				t.Error(err)
			}
		}
	})
	// A success must have been one, and a connection that pgx still uses must
	// give the right rows, at whatever moment the deadline passes.
	t.Run("contexts end at any moment", func(t *testing.T) {
		insert := func(c client, ctx context.Context, k int) (Answer, error) {
			c.wire.Arm(After)
			_, err := c.Exec(ctx, "insert into once values ($1)", k)
			return c.wire.Take(), err
		}
		warm := func(k int) (client, time.Duration) {
			c := connect(t, dsn, nil)
			insert(c, ctx, -k)
			start := time.Now()
			insert(c, ctx, -1000-k)
			return c, time.Since(start)
		}
		const rounds = 60
		acknowledged, without := 0, 0
		c, takes := warm(1)
		for i := range rounds {
			if c.IsClosed() {
				c, takes = warm(i + 2)
			}
			ctx, cancel := context.WithTimeout(ctx, takes/2+takes*time.Duration(i)/rounds)
			a, err := insert(c, ctx, 1000+i)
			cancel()
			if err != nil {
				continue
			}
			acknowledged++
			if !a.OK {
				without++
			}
			var there bool
			err = c.QueryRow(t.Context(), "select exists (select from once where k = $1)", 1000+i).Scan(&there)
			if err != nil || !there {
				t.Fatalf("round %d: acknowledged, but %v, %v; %+v", i, there, err, a)
			}
		}
		t.Logf("%d of %d were acknowledged, %d of them without a position", acknowledged, rounds, without)
	})
}
