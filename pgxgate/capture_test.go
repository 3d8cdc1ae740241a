package pgxgate_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// lazy makes asynchronous commits stay unflushed for long, so that a position
// that is too low shows.
var lazy = map[string]string{"wal_writer_delay": "10s", "autovacuum": "off"}

// TestAsynchronousCommits: however a commit became asynchronous, the position
// covers it. Each write is read back at once; a position below the commit would
// be covered by a replica that lacks the row.
func TestAsynchronousCommits(t *testing.T) {
	c := ownCluster(t, pgcluster.Config{Replicas: 2, PrimarySettings: lazy})
	sql(t, c.Primary(), `
create function quietly(key bigint, val bigint) returns void language plpgsql as $$ begin
  perform set_config('synchronous_commit', 'off', true); update kv set v = val where k = key; end $$;
create procedure inside(key bigint, val bigint) language plpgsql as $$ begin
  set local synchronous_commit = off; update kv set v = val where k = key; commit; end $$;`)
	for _, x := range []struct {
		name     string
		declared pgxgate.AsyncCommits
		write    func(ctx context.Context, w pgxgate.Writer, k, v int64) error
	}{
		{"set local in a transaction", pgxgate.AsyncAuto, func(ctx context.Context, w pgxgate.Writer, k, v int64) error {
			return w.Tx(ctx, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, "set local synchronous_commit = off"); err != nil {
					return err
				}
				_, err := tx.Exec(ctx, update, k, v)
				return err
			})
		}},
		{"a setting of the connection", pgxgate.AsyncAuto, func(ctx context.Context, w pgxgate.Writer, k, v int64) error {
			return w.Tx(ctx, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, "set synchronous_commit = off"); err != nil {
					return err
				}
				_, err := tx.Exec(ctx, update, k, v)
				return err
			})
		}},
		{"inside a procedure", pgxgate.AsyncAuto, func(ctx context.Context, w pgxgate.Writer, k, v int64) error {
			_, err := w.Exec(ctx, "call inside($1, $2)", k, v)
			return err
		}},
		{"inside a function, declared", pgxgate.AsyncPossible, func(ctx context.Context, w pgxgate.Writer, k, v int64) error {
			_, err := w.Exec(ctx, "select quietly($1, $2)", k, v)
			return err
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			db := open(t, c, func(cfg *pgxgate.Config) { cfg.AsyncCommits, cfg.Wait = x.declared, 2*time.Millisecond })
			ctx, seen := inSession(t)
			k := key(t)
			low := 0
			for i := range int64(30) {
				if err := x.write(ctx, db.Write(), k, i+1); err != nil {
					t.Fatal(err)
				}
				// The opportunity: the commit is visible here and not flushed, so the
				// flushed position would be too low a token.
				if sql(t, c.Primary(), "select pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn()") == "t" {
					low++
				}
				var v int64
				if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&v); err != nil || v != i+1 {
					d, _ := seen.Last()
					t.Fatalf("got %d, want %d, error %v (%v)", v, i+1, err, d)
				}
			}
			if low == 0 {
				t.Error("every commit was flushed at once: nothing was tested")
			}
			t.Logf("%d of 30 commits were not flushed when they were acknowledged", low)
		})
	}
}

// TestAsyncDefaultIsFound: a database's default makes other programs' commits
// asynchronous, which bounds what reads on the primary can have shown.
func TestAsyncDefaultIsFound(t *testing.T) {
	c := ownCluster(t, pgcluster.Config{Replicas: 1, PrimarySettings: lazy})
	sql(t, c.Primary(), "create role writer login; grant all on kv to writer; alter role writer set synchronous_commit = off")
	db := open(t, c, func(cfg *pgxgate.Config) { cfg.Wait = 2 * time.Millisecond })
	k := key(t)
	strong := tidegate.Strong("test", "test")
	ctx, seen := inSession(t)
	writer := must[*pgx.Conn](t)(pgx.Connect(t.Context(), c.Primary().DSN("writer", "postgres")))
	defer func() { _ = writer.Close(context.Background()) }()
	for i := range int64(20) {
		must[any](t)(writer.Exec(t.Context(), update, k, i+1))
		var strongly, then int64
		if err := db.Read(strong).QueryRow(ctx, get, k).Scan(&strongly); err != nil {
			t.Fatal(err)
		}
		if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&then); err != nil || then < strongly {
			d, _ := seen.Last()
			t.Fatalf("the primary showed %d, then %d was read, error %v (%v)", strongly, then, err, d)
		}
	}
}

// TestIdleWriterDoesNotHoldUpSynchronousCommits: where commits are synchronous
// the token is the flushed position, which another transaction's open work is not
// part of.
func TestIdleWriterDoesNotHoldUpSynchronousCommits(t *testing.T) {
	c := ownCluster(t, pgcluster.Config{Replicas: 1, PrimarySettings: lazy})
	db := open(t, c)
	idle := must[*pgx.Conn](t)(pgx.Connect(t.Context(), c.Primary().DSN("app", "postgres")))
	defer func() { _ = idle.Close(context.Background()) }()
	must[any](t)(idle.Exec(t.Context(), "begin; update kv set v = 1 where k = 999"))
	ctx, seen := inSession(t)
	k := key(t)
	replica := 0
	for i := range int64(30) {
		must[any](t)(db.Write().Exec(ctx, update, k, i+1))
		must[any](t)(idle.Exec(t.Context(), "update kv set v = v + 1 where k = 999"))
		var v int64
		if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&v); err != nil || v != i+1 {
			t.Fatal(v, err)
		}
		if d, _ := seen.Last(); d.Role == tidegate.RoleReplica {
			replica++
		}
	}
	t.Logf("%d of 30 reads on the replica beside an idle writer", replica)
	if replica < 20 {
		d, _ := seen.Last()
		t.Errorf("an idle writer keeps sessions off the replicas: %v\n%v\nasync %+v", d, db.Explain(ctx, tidegate.Causal), db.Stats())
	}
}

// TestDeclaredAbsent: the shorter question behind a commit still gives every kind of
// write its position, also after DISCARD ALL has dropped it.
func TestDeclaredAbsent(t *testing.T) {
	db := open(t, cluster(t), func(cfg *pgxgate.Config) { cfg.AsyncCommits = pgxgate.AsyncAbsent })
	ctx, seen := inSession(t)
	k, v := key(t), int64(0)
	strong := tidegate.Strong("test", "test")
	for _, x := range []struct {
		name string
		do   func() error
	}{
		{"exec", func() error { _, err := db.Write().Exec(ctx, update, k, v); return err }},
		{"transaction", func() error {
			return db.Write().Tx(ctx, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, update, k, v); return err })
		}},
		{"do", func() error {
			_, err := db.Write().Exec(ctx, fmt.Sprintf("do $$ begin update kv set v = %d where k = %d; end $$", v, k))
			return err
		}},
		{"strong read", func() error {
			primary, err := db.Primary()
			if err == nil {
				_, err = primary.Exec(ctx, update, k, v)
			}
			if err != nil {
				return err
			}
			return db.Read(strong).QueryRow(ctx, get, k).Scan(new(int64))
		}},
		{"behind discard all", func() error {
			if _, err := db.Write().Exec(ctx, "discard all"); err != nil {
				return err
			}
			// The one that dropped the question has no answer; the next one has.
			if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(new(int64)); err != nil {
				return err
			}
			_, err := db.Write().Exec(ctx, fmt.Sprintf("update kv set v = %d where k = %d", v, k))
			return err
		}},
	} {
		v++
		before := markOf(ctx, t)
		if err := x.do(); err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		m := markOf(ctx, t)
		if m.CatchUp || m.Position == before.Position || !m.Position.Covers(before.Position) {
			t.Errorf("%s: not captured: %+v, before %+v", x.name, m, before)
		}
		var got int64
		if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&got); err != nil || got != v {
			d, _ := seen.Last()
			t.Errorf("%s: got %d, want %d, error %v (%v)", x.name, got, v, err, d)
		}
	}
}

func markOf(ctx context.Context, t *testing.T) tidegate.Mark {
	t.Helper()
	for _, m := range tidegate.SessionFrom(ctx).Token().Marks() {
		return m
	}
	return tidegate.Mark{}
}
