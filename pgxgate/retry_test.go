package pgxgate_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
	"github.com/tidegatedb/tidegate/pgxgate"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

// afterwards runs statements on a server when the test has ended.
func afterwards(t *testing.T, s *pgcluster.Server, text string) {
	t.Cleanup(func() {
		if _, err := ask(context.Background(), s, text); err != nil {
			t.Error(err)
		}
	})
}

// began returns the causes for which a read began again, one for each attempt.
func began(seen *tidegate.Decisions) (causes []tidegate.RetryCause) {
	for _, d := range seen.All() {
		if d.Retries > 0 {
			causes = append(causes, d.RetryCause)
		}
	}
	return causes
}

// sleeping returns the processes of a server that sleep in a statement, "" for none.
func sleeping(t *testing.T, s *pgcluster.Server) string {
	t.Helper()
	return sql(t, s, "select string_agg(pid::text, ',') from pg_stat_activity where wait_event = 'PgSleep'")
}

// onReplicas is a statement that takes for ever on replicas, and no time on the primary.
const onReplicas = "select 17::bigint from (select pg_sleep(case when pg_is_in_recovery() then 600 else 0 end)) x"

// result is what a read came to.
type result struct {
	v   int64
	err error
}

// TestShutdownBeginsAgain ends the connection of a read on one replica, then on the other:
// the primary answers. In a transaction the error is the caller's.
func TestShutdownBeginsAgain(t *testing.T) {
	c := cluster(t)
	db := open(t, c)
	end := func() string {
		at := ""
		eventually(t, "the read to run on a replica", func() bool {
			for _, r := range c.Replicas() {
				if pid := sleeping(t, r); pid != "" {
					sql(t, r, "select pg_terminate_backend("+pid+")")
					at = r.Name
					return true
				}
			}
			return false
		})
		return at
	}
	ctx, seen := inSession(t)
	done := make(chan result)
	go func() {
		var r result
		r.err = db.Read(tidegate.Causal).QueryRow(ctx, onReplicas).Scan(&r.v)
		done <- r
	}()
	first := end()
	if second := end(); second == first {
		t.Errorf("it went to %s again", first)
	}
	if r := <-done; r.err != nil || r.v != 17 {
		t.Errorf("got %d, error %v", r.v, r.err)
	}
	if got := began(seen); len(got) != 2 || got[0] != tidegate.RetryShutdown || got[1] != tidegate.RetryShutdown {
		t.Errorf("began again for %v", got)
	}
	if d, _ := seen.Last(); d.Role != tidegate.RolePrimary || d.Reason != tidegate.ReasonReplicaFailed {
		t.Errorf("%v", d)
	}

	for name, read := range map[string]func(ctx context.Context) error{
		"a transaction": func(ctx context.Context) error {
			return db.Read(tidegate.Causal).Tx(ctx, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, onReplicas); return err })
		},
		"a pinned connection": func(ctx context.Context) error {
			conn, err := db.Acquire(ctx, tidegate.Causal)
			if err != nil {
				return err
			}
			defer conn.Release()
			_, err = conn.Conn().Exec(ctx, onReplicas)
			return err
		},
		"rows that have begun": func(ctx context.Context) error {
			rows, err := db.Read(tidegate.Causal).Query(ctx, "select repeat('x', 100000) from generate_series(1, 100), lateral (select pg_sleep(case when generate_series > 50 then 600 else 0 end)) x")
			if err != nil {
				return err
			}
			for rows.Next() {
			}
			return rows.Err()
		},
	} {
		ctx, seen := inSession(t)
		err := make(chan error)
		go func() { err <- read(ctx) }()
		end()
		var pe *pgconn.PgError
		// Before it is sent a busy replica may have no connection to give.
		again := slices.DeleteFunc(began(seen), func(c tidegate.RetryCause) bool { return c == tidegate.RetryPool })
		if err := <-err; !errors.As(err, &pe) || pe.Code != "57P01" || len(again) != 0 {
			t.Errorf("%s: error %v, began again for %v", name, err, again)
		}
	}
}

// TestRecoveryConflictBeginsAgain lets replay cancel a read.
func TestRecoveryConflictBeginsAgain(t *testing.T) {
	c := ownCluster(t, pgcluster.Config{Replicas: 2, ReplicaSettings: map[string]string{"max_standby_streaming_delay": "0", "hot_standby_feedback": "off"}})
	db := open(t, c)
	conflict := func(ctx context.Context, read func(ctx context.Context) error) error {
		t.Helper()
		sql(t, c.Primary(), "drop table if exists dead; create table dead (k bigint); grant select on dead to app; insert into dead select generate_series(1, 100)")
		caughtUp(t, c)
		done := make(chan error)
		go func() { done <- read(ctx) }()
		eventually(t, "the read to run", func() bool { return sleeping(t, c.Replicas()[0])+sleeping(t, c.Replicas()[1]) != "" })
		sql(t, c.Primary(), "delete from dead")
		sql(t, c.Primary(), "vacuum dead")
		return <-done
	}
	// Somebody whose snapshot is from before the deletion sleeps on it.
	const reads = "select 17::bigint from (select pg_sleep(case when exists (select 1 from dead) then 600 else 0 end)) x"

	ctx, seen := inSession(t)
	var v int64
	err := conflict(ctx, func(ctx context.Context) error { return db.Read(tidegate.Causal).QueryRow(ctx, reads).Scan(&v) })
	if err != nil || v != 17 {
		t.Errorf("got %d, error %v", v, err)
	}
	causes := began(seen)
	if len(causes) == 0 {
		t.Error("it did not begin again: nothing is tested")
	}
	for _, cause := range causes {
		if cause != tidegate.RetryRecoveryConflict {
			t.Errorf("it began again for %v", causes)
		}
	}
	if all := seen.All(); len(all) > 1 && all[0].Node == all[1].Node {
		t.Errorf("it went to the same node again: %v", all)
	}
	if n := db.Stats().Retries; n[tidegate.RetryRecoveryConflict] != uint64(len(causes)) || n.Total() != uint64(len(causes)) {
		t.Errorf("counted %v", n)
	}
	// Nothing is held against the node.
	for _, n := range db.Status().Nodes {
		if n.Ejection != tidegate.EjectionNone {
			t.Errorf("%+v", n)
		}
	}

	ctx, seen = inSession(t)
	err = conflict(ctx, func(ctx context.Context) error {
		return db.Read(tidegate.Causal).Tx(ctx, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, reads); return err })
	})
	var pe *pgconn.PgError
	if !errors.As(err, &pe) || pe.Code != "40001" || len(began(seen)) != 0 {
		t.Errorf("in a transaction: error %v, began again for %v", err, began(seen))
	}
}

// TestCauseOfTheApplication: what only looks like a conflict is the application's.
func TestCauseOfTheApplication(t *testing.T) {
	c := cluster(t)
	db := open(t, c)
	must[any](t)(db.Write().Exec(t.Context(), `create function raises(text) returns int language plpgsql as $$ begin raise exception 'try again' using errcode = $1; end $$`))
	afterwards(t, c.Primary(), "drop function raises")
	caughtUp(t, c)
	for _, code := range []string{"40001", "40P01"} {
		ctx, seen := inSession(t)
		_, err := db.Read(tidegate.Causal).Exec(ctx, "select raises($1)", code)
		var pe *pgconn.PgError
		if !errors.As(err, &pe) || pe.Code != code || len(began(seen)) != 0 {
			t.Errorf("error %v, began again for %v", err, began(seen))
		}
	}
}

// TestPrimaryAnswersWhatReplicasCannot: once, and what it says is the answer.
func TestPrimaryAnswersWhatReplicasCannot(t *testing.T) {
	c := cluster(t)
	db := open(t, c)
	must[any](t)(db.Write().Exec(t.Context(), "create unlogged table unlogged (v bigint); insert into unlogged values (3)"))
	afterwards(t, c.Primary(), "drop table unlogged")
	caughtUp(t, c)
	for _, x := range []struct {
		text, code string
		cause      tidegate.RetryCause
	}{
		{"select v from unlogged", "", tidegate.RetryUnsupported},
		{"select v from nowhere", "42P01", tidegate.RetryNotReplayed},
		{"select nothing from kv", "42703", tidegate.RetryNotReplayed},
	} {
		ctx, seen := inSession(t)
		_, err := db.Read(tidegate.Causal).Exec(ctx, x.text)
		var pe *pgconn.PgError
		if errors.As(err, &pe) != (x.code != "") || pe != nil && pe.Code != x.code {
			t.Errorf("%s: error %v", x.text, err)
		}
		if got := began(seen); len(got) != 1 || got[0] != x.cause {
			t.Errorf("%s: began again for %v, want %v once", x.text, got, x.cause)
		}
		if d, _ := seen.Last(); d.Role != tidegate.RolePrimary {
			t.Errorf("%s: %v", x.text, d)
		}
	}
}

// TestStalePlanBeginsAgain: a statement that was prepared for a table that has changed.
func TestStalePlanBeginsAgain(t *testing.T) {
	c := cluster(t)
	db := open(t, c, func(cfg *pgxgate.Config) { cfg.Nodes = cfg.Nodes[:1] }) // one pool, one connection at a time
	ctx, seen := inSession(t)
	must[any](t)(db.Write().Exec(ctx, "create table plans (k bigint)"))
	afterwards(t, c.Primary(), "drop table plans")
	read := func() {
		t.Helper()
		if _, err := db.Read(tidegate.Causal).Exec(ctx, "select * from plans"); err != nil {
			t.Error(err)
		}
	}
	read()
	must[any](t)(db.Write().Exec(ctx, "alter table plans add column v text"))
	read()
	if got := began(seen); len(got) != 1 || got[0] != tidegate.RetryStalePlan {
		t.Errorf("began again for %v", got)
	}
}

// TestLostConnectionBeginsAgain cuts the network under a read on a replica.
func TestLostConnectionBeginsAgain(t *testing.T) {
	c := cluster(t)
	var cuts [2]cutter
	db := open(t, c, func(cfg *pgxgate.Config) {
		for i := range cuts {
			p := must[*pgxpool.Config](t)(pgxpool.ParseConfig(cfg.Nodes[1+i].DSN))
			p.ConnConfig.DialFunc = cuts[i].dial
			cfg.Nodes[1+i].Pool, cfg.Nodes[1+i].DSN = p, ""
		}
	})
	ctx, seen := inSession(t)
	done := make(chan result)
	go func() {
		var r result
		r.err = db.Read(tidegate.Causal).QueryRow(ctx, onReplicas).Scan(&r.v)
		done <- r
	}()
	for _, r := range c.Replicas() { // they do not know that nobody listens
		afterwards(t, r, "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep'")
	}
	for range cuts {
		eventually(t, "the read to run on a replica", func() bool {
			for i, r := range c.Replicas() {
				if !cuts[i].cut && sleeping(t, r) != "" {
					cuts[i].set(true)
					return true
				}
			}
			return false
		})
	}
	if r := <-done; r.err != nil || r.v != 17 {
		t.Errorf("got %d, error %v", r.v, r.err)
	}
	got := began(seen)
	if len(got) == 0 {
		t.Error("it did not begin again")
	}
	for _, cause := range got {
		if cause != tidegate.RetryConnection {
			t.Errorf("began again for %v", got)
		}
	}
	if d, _ := seen.Last(); d.Role != tidegate.RolePrimary {
		t.Errorf("%v", d)
	}
}
