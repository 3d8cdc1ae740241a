package wire

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
)

func testTransactions(t *testing.T, dsn string, w witness) {
	ctx := t.Context()
	c := connect(t, dsn, nil)
	for _, x := range []struct {
		name   string
		inside []string
		err    error
		want   func(Answer) bool
	}{
		{"plain", []string{"insert into t values (1, 'tx')"}, nil, func(a Answer) bool {
			return a.Tag == "COMMIT" && a.Before == Before{OK: true, Wrote: true} && !a.AsyncCommit
		}},
		{"asynchronous by SET LOCAL", []string{"set local synchronous_commit = off", "insert into t values (1, 'tx')"}, nil, func(a Answer) bool {
			return a.Tag == "COMMIT" && a.Before == Before{OK: true, Wrote: true, AsyncCommit: true} && !a.AsyncCommit
		}},
		{"read only", []string{"select count(*) from t"}, nil, func(a Answer) bool {
			return a.Tag == "COMMIT" && a.Before == Before{OK: true}
		}},
		{"empty", nil, nil, func(a Answer) bool { return a.Tag == "COMMIT" && a.Before == Before{OK: true} }},
		{"written in a savepoint", []string{"savepoint a", "insert into t values (1, 'tx')", "release a"}, nil, func(a Answer) bool {
			return a.Before == Before{OK: true, Wrote: true}
		}},
		{"aborted", []string{"insert into t values (1, 'tx')", "select 1/0"}, pgx.ErrTxCommitRollback, func(a Answer) bool {
			var se *ServerError
			return a.Tag == "ROLLBACK" && !a.Before.OK && errors.As(a.Before.Err, &se) && se.Code == "25P02" && !a.Failed
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			a, err := c.run(t, w, AroundCommit, func() error {
				c.wire.Take()
				tx, err := c.Begin(ctx)
				if err != nil {
					return err
				}
				for _, sql := range x.inside {
					tx.Exec(ctx, sql)
				}
				c.wire.Arm(AroundCommit)
				return tx.Commit(ctx)
			})
			if !errors.Is(err, x.err) || a.TxStatus != 'I' || !x.want(a) {
				t.Errorf("%v, %+v", err, a)
			}
		})
	}
	t.Run("deferred constraint fails the commit", func(t *testing.T) {
		if err := c.exec("create table d (k int unique deferrable initially deferred)")(); err != nil {
			t.Fatal(err)
		}
		tx, _ := c.Begin(ctx)
		tx.Exec(ctx, "insert into d values (1), (1)")
		c.wire.Arm(AroundCommit)
		err := tx.Commit(ctx)
		// The server skips the ask with the rest of the string.
		if a := c.wire.Take(); err == nil || !a.Failed || a.OK || a.Err != nil || a.Tag != "" || !a.Before.Wrote || a.TxStatus != 'I' {
			t.Errorf("%v, %+v", err, a)
		}
	})
	t.Run("position only", func(t *testing.T) {
		a, err := c.run(t, w, After, func() error {
			c.wire.Take()
			tx, _ := c.Begin(ctx)
			tx.Exec(ctx, "insert into t values (1, 'tx')")
			c.wire.Arm(After)
			return tx.Commit(ctx)
		})
		if err != nil || a.Tag != "COMMIT" || a.Before.OK {
			t.Errorf("%v, %+v", err, a)
		}
	})
}

func testStatementsGone(t *testing.T, dsn string) {
	ctx := t.Context()
	for _, drop := range []string{"deallocate all", "discard all"} {
		c := connect(t, dsn, nil)
		c.wire.Arm(After)
		err := c.exec(drop)()
		a := c.wire.Take()
		var se *ServerError
		if err != nil || a.OK || !errors.As(a.Err, &se) || se.SQLState() != "26000" || !errors.Is(a.Err, ErrNotPrepared) {
			t.Errorf("%s: %v, %+v", drop, err, a)
		}
		c.wire.Arm(After)
		err = c.exec("insert into t values (1, 'gone')")()
		if a := c.wire.Take(); err != nil || a.OK || a.Err != ErrNotPrepared || a.Tag != "INSERT" {
			t.Errorf("afterwards: %v, %+v", err, a)
		}
		c.prepare(t)
		c.wire.Arm(After)
		err = c.exec("insert into t values (1, 'back')")()
		if a := c.wire.Take(); err != nil || !a.OK {
			t.Errorf("prepared again: %v, %+v", err, a)
		}
	}
	commit := func(c client, inside string) (Answer, error) {
		tx, err := c.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(ctx, inside); err != nil {
			t.Fatal(err)
		}
		c.wire.Arm(AroundCommit)
		err = tx.Commit(ctx)
		return c.wire.Take(), err
	}
	t.Run("inside a transaction", func(t *testing.T) {
		a, err := commit(connect(t, dsn, nil), "insert into t values (1, 'saved'); deallocate all")
		if err != nil || a.Err != ErrNotPrepared || a.Tag != "COMMIT" {
			t.Errorf("%v, %+v", err, a)
		}
	})
	t.Run("where it cannot be seen", func(t *testing.T) {
		c := connect(t, dsn, nil)
		a, err := commit(c, "do $$ begin execute 'deallocate all'; end $$")
		if !errors.Is(err, pgx.ErrTxCommitRollback) || !errors.Is(a.Before.Err, ErrNotPrepared) || c.wire.Prepared() {
			t.Errorf("%v, %+v", err, a)
		}
	})
}
