package wire

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func testCommands(t *testing.T, dsn string, w witness) {
	ctx := t.Context()
	modes := []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe,
		pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol}
	for _, mode := range modes {
		c := connect(t, dsn, func(cfg *pgx.ConnConfig) { cfg.DefaultQueryExecMode = mode })
		for _, x := range []struct {
			name, tag string
			run       func() error
		}{
			{"vacuum", "VACUUM", c.exec("vacuum t")},
			{"create index concurrently", "CREATE INDEX", c.exec("create index concurrently on t (k)")},
			{"call that commits inside", "CALL", c.exec("call commits()")},
			{"do", "DO", c.exec("do $$ begin insert into t values (3, 'do'); end $$")},
			{"several statements", "INSERT", c.exec("insert into t values (4, 'a'); insert into t values (5, 'b')")},
			{"several with do", "INSERT", c.exec("do $$ begin null; end $$; insert into t values (5, 'b')")},
			{"arguments, first use", "INSERT", c.exec("insert into t values ($1, $2)", 6, "c")},
			{"arguments again", "INSERT", c.exec("insert into t values ($1, $2)", 7, "d")},
			{"named arguments", "INSERT", c.exec("insert into t values (@k, @v)", pgx.NamedArgs{"k": 8, "v": "e"})},
			{"update", "UPDATE", c.exec("update t set v = $1 where k = 8", "f")},
			{"returning", "INSERT", func() error {
				var k int
				err := c.QueryRow(ctx, "insert into t values ($1, $2) returning k", 9, "g").Scan(&k)
				if k != 9 {
					t.Errorf("returned %d", k)
				}
				return err
			}},
			{"batch", "INSERT", func() error {
				b := &pgx.Batch{}
				for i := range 20 {
					b.Queue("insert into t values ($1, $2)", i, strings.Repeat("h", 10*i))
				}
				b.Queue("insert into t values ($1, 'new statement')", 10)
				return c.SendBatch(ctx, b).Close()
			}},
			{"large argument", "INSERT", c.exec("insert into t values ($1, $2)", 11, strings.Repeat("i", 2<<20))},
		} {
			t.Run(fmt.Sprintf("%v/%s", mode, x.name), func(t *testing.T) {
				a, err := c.run(t, w, After, x.run)
				if err != nil {
					t.Fatal(err)
				}
				called := strings.Contains(x.name, "call") || strings.HasSuffix(x.name, "do")
				if a.Tag != x.tag || a.Called != called || a.Failed || a.TxStatus != 'I' || a.AsyncCommit {
					t.Errorf("%+v", a)
				}
			})
		}
		t.Run(fmt.Sprintf("%v/errors", mode), func(t *testing.T) {
			c.exec("insert into once values (1) on conflict do nothing")()
			for _, run := range []func() error{
				c.exec("insert into once values ($1)", 1),
				c.exec("insert into once values (1)"),
				c.exec("call fails()"),
			} {
				a, err := c.run(t, w, After, run)
				var pe *pgconn.PgError
				if !errors.As(err, &pe) || !a.Failed || a.Tag != "" || a.TxStatus != 'I' {
					t.Errorf("%v, %+v", err, a)
				}
			}
			// Refused before anything can run: prepared by the modes that do.
			c.wire.Arm(After)
			err := c.exec("insert into nope values ($1)", 1)()
			if a := c.wire.Take(); err == nil || !a.Failed || a.OK != a.Sent {
				t.Errorf("%v, %+v", err, a)
			}
		})
		var n int
		if err := c.QueryRow(ctx, "select count(*) from t where v = 'in'").Scan(&n); err != nil || n == 0 {
			t.Errorf("%v: %d rows, %v", mode, n, err)
		}
	}
	t.Run("asynchronous commit", func(t *testing.T) {
		c := connect(t, dsn, nil)
		if err := c.exec("set synchronous_commit = off")(); err != nil {
			t.Fatal(err)
		}
		if a, err := c.run(t, w, After, c.exec("insert into t values (1, 'j')")); err != nil || !a.AsyncCommit {
			t.Errorf("%+v, %v", a, err)
		}
	})
	t.Run("namesakes in the search path", func(t *testing.T) {
		c := connect(t, dsn, nil)
		if err := c.exec(`create schema evil;
			create function evil.pg_current_wal_flush_lsn() returns pg_lsn language sql as $$ select '0/1'::pg_lsn $$;
			set search_path = evil, public, pg_catalog`)(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.run(t, w, After, c.exec("insert into t values (1, 'k')")); err != nil {
			t.Error(err)
		}
	})
}
