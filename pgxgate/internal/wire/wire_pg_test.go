package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// client is a connection of pgx through a Conn.
type client struct {
	*pgx.Conn
	wire *Conn
}

func connect(t testing.TB, dsn string, change func(*pgx.ConnConfig)) client {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	var w *Conn
	cfg.AfterNetConnect = func(_ context.Context, _ *pgconn.Config, nc net.Conn) (net.Conn, error) {
		w = Wrap(nc)
		return w, nil
	}
	if change != nil {
		change(cfg)
	}
	ctx := t.Context()
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.WithoutCancel(ctx)) })
	c := client{conn, w}
	c.prepare(t)
	return c
}

// prepare goes below pgx.Conn, which would remember the names for longer than
// the server does.
func (c client) prepare(t testing.TB) {
	t.Helper()
	for name, sql := range map[string]string{AfterName: AfterSQL, BeforeName: BeforeSQL} {
		if _, err := c.PgConn().Prepare(t.Context(), name, sql, nil); err != nil {
			t.Fatal(err)
		}
	}
	c.wire.MarkPrepared()
}

// witness looks at the server from a connection of its own.
type witness struct {
	*pgx.Conn
	wal bool // pg_walinspect is there
}

func newWitness(t testing.TB, dsn string) witness {
	t.Helper()
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.WithoutCancel(ctx)) })
	_, err = conn.Exec(ctx, "create extension if not exists pg_walinspect")
	if err != nil {
		t.Logf("NOT CHECKED against the WAL itself: %v", err)
	}
	return witness{conn, err == nil}
}

func (w witness) flush(t testing.TB) (lsn uint64) {
	t.Helper()
	err := w.QueryRow(t.Context(), "select (pg_current_wal_flush_lsn() - '0/0')::bigint").Scan(&lsn)
	if err != nil {
		t.Fatal(err)
	}
	return lsn
}

// commits returns the end of the last commit record from a position on, and
// how many there are.
func (w witness) commits(t testing.TB, from uint64) (end uint64, n int) {
	t.Helper()
	if w.flush(t) == from {
		return 0, 0
	}
	err := w.QueryRow(t.Context(), `select coalesce(max(end_lsn - '0/0'), 0)::bigint, count(*)
		from pg_get_wal_records_info($1::text::pg_lsn, pg_current_wal_flush_lsn())
		where resource_manager = 'Transaction' and record_type like '%COMMIT%'`, lsn(from)).Scan(&end, &n)
	if err != nil {
		t.Fatal(err)
	}
	return end, n
}

func lsn(n uint64) string { return fmt.Sprintf("%X/%X", n>>32, uint32(n)) }

// postgres starts the cluster that the tests share. Nobody else may commit.
func postgres(t testing.TB) *pgcluster.Cluster {
	return pgcluster.ForTest(t, pgcluster.Config{Replicas: 1, Settings: map[string]string{"autovacuum": "off"}})
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	cluster := postgres(t)
	dsn := cluster.Primary().DSN("postgres", "postgres")
	w := newWitness(t, dsn)
	setUp := `create table t (k int, v text);
		create table once (k int primary key);
		create procedure commits() language plpgsql as $$ begin
			insert into t values (1, 'in'); commit; insert into t values (2, 'in');
		end $$;
		create procedure fails() language plpgsql as $$ begin
			insert into t values (1, 'in'); commit; raise exception 'no';
		end $$;`
	if _, err := w.Exec(t.Context(), setUp); err != nil {
		t.Fatal(err)
	}
	t.Run("Commands", func(t *testing.T) { testCommands(t, dsn, w) })
	t.Run("Transactions", func(t *testing.T) { testTransactions(t, dsn, w) })
	t.Run("Copy", func(t *testing.T) { testCopy(t, dsn, w) })
	t.Run("StatementsGone", func(t *testing.T) { testStatementsGone(t, dsn) })
	t.Run("Notifications", func(t *testing.T) { testNotifications(t, dsn, w) })
	t.Run("LargeResult", func(t *testing.T) { testLargeResult(t, dsn) })
	t.Run("Broken", func(t *testing.T) { testBroken(t, dsn, w) })
	t.Run("Standby", func(t *testing.T) { testStandby(t, cluster) })
}

// run runs f armed and checks what is true of every command that came through.
func (c client) run(t *testing.T, w witness, ask Ask, f func() error) (Answer, error) {
	t.Helper()
	from := w.flush(t)
	c.wire.Arm(ask)
	err := f()
	a := c.wire.Take()
	to := w.flush(t)
	if !a.OK || a.Err != nil || !a.Sent {
		t.Fatalf("not captured: %+v; the command's error: %v", a, err)
	}
	if a.Flush < from || a.Flush > to || a.Insert < a.Flush {
		t.Errorf("flush %s, insert %s; before %s, afterwards %s", lsn(a.Flush), lsn(a.Insert), lsn(from), lsn(to))
	}
	if w.wal {
		end, n := w.commits(t, from)
		async := a.AsyncCommit || a.Before.AsyncCommit // not flushed yet
		if n == 0 && err == nil && !async && (a.Before.Wrote || a.Tag == "INSERT") {
			t.Error("nothing was committed")
		}
		if end > a.Flush && !async {
			t.Errorf("flush %s is below the end of a commit, %s", lsn(a.Flush), lsn(end))
		}
	}
	return a, err
}

func (c client) exec(sql string, args ...any) func() error {
	return func() error {
		_, err := c.Exec(context.Background(), sql, args...)
		return err
	}
}

func testStandby(t *testing.T, cluster *pgcluster.Cluster) {
	c := connect(t, cluster.Replicas()[0].DSN("postgres", "postgres"), nil)
	for range 2 {
		c.wire.Arm(After)
		err := c.exec("select 1")()
		a := c.wire.Take()
		var se *ServerError
		if err != nil || a.OK || !errors.As(a.Err, &se) || se.Code != "55000" || a.TxStatus != 'I' {
			t.Errorf("%v, %+v", err, a)
		}
	}
}
