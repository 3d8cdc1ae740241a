package pgxgate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// dbtx is what generated code asks of a database (sqlc's pgx/v5 template with
// copyfrom and batches).
type dbtx interface {
	Exec(context.Context, string, ...any) (tag, error)
	Query(context.Context, string, ...any) (pgx.Rows, error)
	QueryRow(context.Context, string, ...any) pgx.Row
	CopyFrom(context.Context, pgx.Identifier, []string, pgx.CopyFromSource) (int64, error)
	SendBatch(context.Context, *pgx.Batch) pgx.BatchResults
}

var (
	_ dbtx = pgxgate.Reader{}
	_ dbtx = pgxgate.Writer{}
)

// TestEveryStatementKeepsItsMeaning runs through Write what a wrapping
// transaction, a rewritten string or a changed protocol would break, and after
// each looks for its effect with a causal read while one replica lags.
func TestEveryStatementKeepsItsMeaning(t *testing.T) {
	c := cluster(t)
	db := open(t, c)
	pause(t, c.Replicas()[0])
	ctx, seen := inSession(t)
	w := db.Write()
	run := func(text string, args ...any) {
		t.Helper()
		if _, err := w.Exec(ctx, text, args...); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	count := func(want int64) {
		t.Helper()
		var n int64
		if err := db.Read(tidegate.Causal).QueryRow(ctx, "select count(*) from kinds").Scan(&n); err != nil || n != want {
			d, _ := seen.Last()
			t.Fatalf("%d rows, want %d, error %v (%v)", n, want, err, d)
		}
	}
	t.Cleanup(func() { _, _ = w.Exec(context.Background(), "drop table kinds cascade; drop procedure twice, fails") })
	run("create table kinds (k bigint, v text)")
	count(0)
	run("insert into kinds values ($1, $2)", 1, "a")
	count(1)
	run("vacuum kinds")
	run("create index concurrently on kinds (k)")
	run("insert into kinds values (2, 'x'); insert into kinds values (3, 'y')")
	count(3)
	run(`create procedure twice() language plpgsql as $$ begin insert into kinds values (4, 'p'); commit; insert into kinds values (5, 'q'); end $$`)
	run("call twice()")
	count(5)
	run(`create procedure fails() language plpgsql as $$ begin insert into kinds values (6, 'p'); commit; raise exception 'after a commit'; end $$`)
	if _, err := w.Exec(ctx, "call fails()"); err == nil {
		t.Fatal("call fails() succeeded")
	}
	count(6)
	run("do $$ begin insert into kinds values (7, 'do'); commit; end $$")
	count(7)
	run("/* a comment first */\n (select 1)")
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		run("insert into kinds values ($1, 'mode')", mode, 8)
	}
	count(12)

	var k int64
	if err := w.QueryRow(ctx, "insert into kinds values ($1, 'r') returning k", 13).Scan(&k); err != nil || k != 13 {
		t.Fatal(k, err)
	}
	count(13)
	if err := w.QueryRow(ctx, "with x as (insert into kinds values (14, 'cte') returning k) select k from x").Scan(&k); err != nil {
		t.Fatal(err)
	}
	count(14)
	rows := must[pgx.Rows](t)(w.Query(ctx, "explain analyze insert into kinds values (15, 'e')"))
	rows.Close()
	count(15)
	if n, err := w.CopyFrom(ctx, pgx.Identifier{"kinds"}, []string{"k", "v"}, pgx.CopyFromRows([][]any{{16, "c"}, {17, "d"}})); err != nil || n != 2 {
		t.Fatal(n, err)
	}
	count(17)
	b := &pgx.Batch{}
	b.Queue("insert into kinds values ($1, 'b')", 18)
	b.Queue("insert into kinds values ($1, 'b')", 19)
	if err := w.SendBatch(ctx, b).Close(); err != nil {
		t.Fatal(err)
	}
	count(19)
	if err := w.Tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "insert into kinds values (20, 't')")
		if err != nil {
			return err
		}
		var n int64 // a transaction sees its own rows, by every style
		if err := tx.QueryRow(ctx, "select count(*) from kinds").Scan(&n); err != nil || n != 20 {
			t.Errorf("inside: %d %v", n, err)
		}
		nested, err := tx.Begin(ctx)
		if err != nil {
			return err
		}
		if _, err := nested.Exec(ctx, "insert into kinds values (21, 'n')"); err != nil {
			return err
		}
		return nested.Commit(ctx)
	}); err != nil {
		t.Fatal(err)
	}
	count(21)
	run("deallocate all")
	run("insert into kinds values (22, 'after deallocate')")
	count(22)
	run("discard all")
	run("insert into kinds values (23, 'after discard')")
	count(23)
	for _, d := range seen.All() {
		if d.Unproven || d.Node == c.Replicas()[0].Name {
			t.Errorf("decision %v", d)
		}
	}
}

func TestFailedWritesAdvanceNothingFalse(t *testing.T) {
	c := cluster(t)
	db := open(t, c)
	ctx, _ := inSession(t)
	w := db.Write()
	if _, err := w.Exec(ctx, "insert into kv values (1, 1)"); err == nil {
		t.Fatal("a duplicate was accepted")
	}
	if _, err := w.Exec(ctx, "insert into nothing values (1)"); err == nil {
		t.Fatal("a missing table was accepted")
	}
	boom := errors.New("boom")
	if err := w.Tx(ctx, func(tx pgx.Tx) error { return boom }); !errors.Is(err, boom) {
		t.Fatal(err)
	}
	// An aborted transaction answers COMMIT with ROLLBACK.
	if err := w.Tx(ctx, func(tx pgx.Tx) error { _, _ = tx.Exec(ctx, "select 1/0"); return nil }); !errors.Is(err, pgx.ErrTxCommitRollback) {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = w.Tx(ctx, func(tx pgx.Tx) error { panic("boom") })
	}()
	_ = w.Tx(ctx, func(tx pgx.Tx) error { return tx.Commit(ctx) })
	var v int64
	if err := db.Read(tidegate.Causal).QueryRow(ctx, get, 1).Scan(&v); err != nil {
		t.Fatal(err)
	}
}

func TestReadHandleCannotWrite(t *testing.T) {
	c := cluster(t)
	db := open(t, c)
	ctx, seen := inSession(t)
	classes := []tidegate.Class{tidegate.Causal, tidegate.Strong("s", "test")}
	for _, class := range classes {
		r := db.Read(class)
		for _, text := range []string{update, "with x as (update kv set v = $2 where k = $1 returning k) select * from x", "select nextval('s'), $1::int, $2::int"} {
			if class == tidegate.Causal && strings.Contains(text, "nextval") {
				continue
			}
			if strings.Contains(text, "nextval") {
				must[any](t)(db.Write().Exec(ctx, "create sequence if not exists s"))
			}
			if _, err := r.Exec(ctx, text, 1, 1); !errors.Is(err, tidegate.ErrReadOnly) || !strings.Contains(err.Error(), "Write()") {
				t.Errorf("%v: %s: error %v", class, text, err)
			}
		}
		if _, err := r.Exec(ctx, "select 1; select 2"); err == nil {
			t.Errorf("%v: two statements in one string were taken", class)
		}
		if _, err := r.Query(ctx, "select 1", pgx.QueryExecModeSimpleProtocol); !errors.Is(err, tidegate.ErrConfig) {
			t.Errorf("%v: the simple protocol was taken: %v", class, err)
		}
		if _, err := r.CopyFrom(ctx, pgx.Identifier{"kv"}, nil, nil); !errors.Is(err, tidegate.ErrReadOnly) {
			t.Errorf("%v: COPY: %v", class, err)
		}
		if err := r.Tx(ctx, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, update, 1, 1); return err }); !errors.Is(err, tidegate.ErrReadOnly) {
			t.Errorf("%v: Tx: %v", class, err)
		}
		// A statement that makes its connection able to write costs the
		// connection, not the next caller.
		if _, err := r.Exec(ctx, "select set_config('default_transaction_read_only', 'off', false)"); err != nil {
			t.Errorf("%v: %v", class, err)
		}
		for range 8 {
			if _, err := r.Exec(ctx, update, 1, 1); !errors.Is(err, tidegate.ErrReadOnly) {
				t.Fatalf("%v: after the setting was switched off: %v", class, err)
			}
		}
	}
	for _, d := range seen.All() {
		if d.Retries > 0 {
			t.Errorf("the application's error was retried: %v", d)
		}
	}
}

func TestReadBatchesAndPinnedConnections(t *testing.T) {
	c := cluster(t)
	db := open(t, c)
	k := key(t)
	ctx, seen := inSession(t)
	must[any](t)(db.Write().Exec(ctx, update, k, 5))
	b := &pgx.Batch{}
	b.Queue(get, k)
	b.Queue("select 17")
	br := db.Read(tidegate.Causal).SendBatch(ctx, b)
	var v, n int64
	if err := br.QueryRow().Scan(&v); err != nil {
		t.Fatal(err)
	}
	if err := br.QueryRow().Scan(&n); err != nil {
		t.Fatal(err)
	}
	if err := br.Close(); err != nil || v != 5 || n != 17 {
		t.Fatal(v, n, err)
	}
	bad := &pgx.Batch{}
	bad.Queue(update, k, 6)
	if err := db.Read(tidegate.Causal).SendBatch(ctx, bad).Close(); !errors.Is(err, tidegate.ErrReadOnly) {
		t.Errorf("a batch that writes: %v", err)
	}
	begins := &pgx.Batch{}
	begins.BeginTx(pgx.TxOptions{})
	begins.Queue("select 1")
	if err := db.Write().SendBatch(ctx, begins).Close(); err == nil {
		t.Error("a batch that begins a transaction was taken")
	}

	for _, class := range []tidegate.Class{tidegate.Causal, tidegate.Strong("pinned", "test")} {
		conn := must[*pgxgate.Conn](t)(db.Acquire(ctx, class))
		if err := conn.Conn().QueryRow(ctx, get, k).Scan(&v); err != nil || v != 5 {
			t.Fatal(v, err)
		}
		d, _ := seen.Last()
		if p := conn.Decision(); d.Node != p.Node || d.Reason != p.Reason {
			t.Errorf("decisions %v and %v", d, conn.Decision())
		}
		conn.Release()
		conn.Release()
	}
	if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&v); err != nil || v != 5 {
		t.Fatal(v, err)
	}
}

// TestListenOnThePrimaryPool: what needs a connection as it is gets one.
func TestListenOnThePrimaryPool(t *testing.T) {
	db := open(t, cluster(t))
	pool := must[*pgxpool.Pool](t)(db.Primary())
	conn := must[*pgxpool.Conn](t)(pool.Acquire(t.Context()))
	defer conn.Release()
	must[any](t)(conn.Exec(t.Context(), "listen tide"))
	ctx, _ := inSession(t)
	must[any](t)(db.Write().Exec(ctx, "select pg_notify('tide', 'in')"))
	short, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	n, err := conn.Conn().WaitForNotification(short)
	if err != nil || n.Payload != "in" {
		t.Fatal(n, err)
	}
}

// TestTenOpenResultSets: reads that are open on one replica send the next one
// to the other.
func TestTenOpenResultSets(t *testing.T) {
	c := cluster(t)
	db := open(t, c, func(cfg *pgxgate.Config) {
		for i := range cfg.Nodes {
			cfg.Nodes[i].DSN += " pool_max_conns=20"
		}
	})
	// On a busy machine a look that it takes to leave a replica can come too late.
	eventually(t, "ten open result sets of one session to be on both", func() bool {
		ctx, seen := inSession(t)
		for range 10 {
			rows := must[pgx.Rows](t)(db.Read(tidegate.Causal).Query(ctx, "select generate_series(1, 100000)"))
			defer rows.Close()
			rows.Next()
		}
		used := map[string]int{}
		for _, d := range seen.All() {
			used[d.Node]++
		}
		return used[c.Replicas()[0].Name] >= 3 && used[c.Replicas()[1].Name] >= 3
	})
}
