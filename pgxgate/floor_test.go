package pgxgate_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// TestFloorAfterAMigration migrates while one replica does not replay. With the
// migration's token as the floor no read of the process meets that replica; without it
// reads do, and have to begin again on the primary.
func TestFloorAfterAMigration(t *testing.T) {
	c := cluster(t)
	paused := c.Replicas()[0]
	migrator := open(t, c)
	m, _ := inSession(t)
	must[any](t)(migrator.Write().Exec(m, "create table migrated (k bigint primary key); insert into migrated values (1)"))
	afterwards(t, c.Primary(), "drop table migrated")
	caughtUp(t, c)
	anyAge := tidegate.Relaxed("floor-any", "a test reads what there is", tidegate.AnyStaleness())
	read := func(ctx context.Context, db *pgxgate.DB, class tidegate.Class, text string) error {
		var v int64
		return db.Read(class).QueryRow(ctx, text).Scan(&v)
	}

	var met [2]atomic.Int64
	open2 := func(i int) *pgxgate.DB {
		return open(t, c, func(cfg *pgxgate.Config) {
			cfg.Hooks = []tidegate.Hook{{Decided: func(_ context.Context, d tidegate.Decision) {
				if d.Node == paused.Name {
					met[i].Add(1)
				}
			}}}
		})
	}
	control, floored := open2(0), open2(1)
	// Sessions that stay where they read: on the replica that is about to stop.
	staying := func(i int, db *pgxgate.DB) (ctx context.Context) {
		before := met[i].Load()
		eventually(t, "a session on the replica", func() bool {
			ctx, _ = inSession(t)
			if err := read(ctx, db, tidegate.Causal, "select k from migrated"); err != nil {
				t.Fatal(err)
			}
			return met[i].Load() > before
		})
		return ctx
	}
	stays := [2]context.Context{staying(0, control), staying(1, floored)}
	pause(t, paused)
	must[any](t)(migrator.Write().Exec(m, "alter table migrated add column v bigint not null default 7"))
	floored.SetFloor(tidegate.SessionFrom(m).Token())
	if got := floored.Status().Floor; got.IsZero() {
		t.Fatal("there is no floor")
	}
	met[0].Store(0)
	met[1].Store(0)

	const rounds = 60
	for i, db := range []*pgxgate.DB{control, floored} {
		for range rounds {
			fresh, _ := inSession(t)
			for _, r := range []struct {
				ctx   context.Context
				class tidegate.Class
			}{{fresh, tidegate.Causal}, {fresh, anyAge}, {t.Context(), anyAge}, {stays[i], tidegate.Causal}, {stays[i], anyAge}} {
				if err := read(r.ctx, db, r.class, "select v from migrated"); err != nil {
					t.Errorf("database %d, %v: %v", i, r.class, err)
				}
			}
		}
	}
	// The opportunity to go wrong: the paused replica lacks the column.
	if n := sql(t, paused, "select count(*) from information_schema.columns where table_name = 'migrated' and column_name = 'v'"); n != "0" {
		t.Fatalf("the paused replica has %s such columns", n)
	}
	was, is := control.Stats().Retries, floored.Stats().Retries
	t.Logf("of %d reads each: without a floor %d met the paused replica and %d began again; with it %d and %d",
		5*rounds, met[0].Load(), was[tidegate.RetryNotReplayed], met[1].Load(), is[tidegate.RetryNotReplayed])
	if met[1].Load() != 0 || is[tidegate.RetryNotReplayed] != 0 {
		t.Errorf("with the floor %d reads met the paused replica, and %d began again", met[1].Load(), is[tidegate.RetryNotReplayed])
	}
	if was[tidegate.RetryNotReplayed] == 0 || met[0].Load() == 0 {
		t.Error("without the floor nothing went wrong: nothing is tested")
	}
	ctx, _ := inSession(t)
	for _, v := range floored.Explain(ctx, tidegate.Causal).Nodes {
		if v.Node == paused.Name && (v.Eligible || !contains(v.Why, "less than the floor of this process")) {
			t.Errorf("%+v", v)
		}
	}
}
