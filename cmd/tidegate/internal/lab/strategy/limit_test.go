package strategy_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
)

// What an instance does with reads whose budget no replica can keep: it is too short
// for any proof.
func TestRelaxed(t *testing.T) {
	t.Parallel()
	_, nodes := newCluster(t)
	instance := open(t, strategy.Tidegate{}, 0, nodes).Instance.(strategy.Relaxed)
	read := func(within time.Duration, b record.Breach) (record.Answer, error) {
		t.Helper()
		return instance.ReadRelaxed(t.Context(), &strategy.Session{ID: 1}, []int64{1}, record.Budget{Within: within, OnBreach: b})
	}
	for _, b := range []record.Breach{record.OnPrimary, record.StaleWhenShed} {
		if a, err := read(1, b); err != nil || a.Replica || !a.Fallback || a.MarkedStale {
			t.Errorf("%s: %+v, %v", b, a, err)
		}
	}
	if a, err := read(1, record.ServeStale); err != nil || !a.Replica || !a.MarkedStale || !a.Bounded || a.Bound <= 0 {
		t.Errorf("stale: %+v, %v", a, err)
	}
	if a, err := read(1, record.Fail); !errors.Is(err, tidegate.ErrNotFresh) || !a.Shed || !a.NotFresh || !a.Typed {
		t.Errorf("fail: %+v, %v", a, err)
	}
	for _, b := range []record.Breach{record.OnPrimary, record.StaleWhenShed, record.ServeStale, record.Fail} {
		if a, err := read(time.Hour, b); err != nil || !a.Replica || a.MarkedStale || !a.Bounded || a.Bound > time.Hour {
			t.Errorf("within an hour, %s: %+v, %v", b, a, err)
		}
	}
}

// With a limit of one, a second read that falls back is sent away in time; without a
// limit it waits for as long as it may.
func TestLimits(t *testing.T) {
	t.Parallel()
	cluster, nodes := newCluster(t)
	ctx := t.Context()
	limited, err := strategy.Tidegate{}.Open(ctx, 0, nodes, strategy.Config{PoolSize: 2, FallbackReads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(limited.Close)
	unlimited := open(t, strategy.Unlimited{}, 0, nodes)
	replay(t, cluster, "pause")
	defer replay(t, cluster, "resume")
	s := &strategy.Session{ID: 1}
	unlimited.write(s, 1, 1)

	// Nothing can be read on the primary, and what is there stays.
	holder, err := pgx.Connect(ctx, cluster.Primary().DSN("", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Close(context.Background()) }()
	if _, err := holder.Exec(ctx, "begin; lock table "+strategy.Table); err != nil {
		t.Fatal(err)
	}
	const patience = 600 * time.Millisecond
	for name, c := range map[string]struct {
		instance strategy.Instance
		shed     bool
	}{"limited": {limited, true}, "unlimited": {unlimited.Instance, false}} {
		within, cancel := context.WithTimeout(ctx, patience)
		first := make(chan record.Answer)
		second := make(chan record.Answer)
		for _, to := range []chan record.Answer{first, second} {
			go func() {
				session := *s
				a, err := c.instance.Read(within, &session, []int64{1})
				if err == nil {
					t.Errorf("%s: read a table that is locked", name)
				}
				to <- a
			}()
		}
		one, two := <-first, <-second
		cancel()
		if (one.Shed != two.Shed) != c.shed || one.Shed && two.Shed {
			t.Errorf("%s: shed: %v and %v", name, one.Shed, two.Shed)
		}
		for _, a := range []record.Answer{one, two} {
			if a.Shed && (!a.Typed || a.NotFresh || a.Queued <= 0 || a.Queued >= patience) {
				t.Errorf("%s: %+v", name, a)
			}
			if !a.Shed && a.Typed {
				t.Errorf("%s: a read whose time was over says that it was refused: %+v", name, a)
			}
		}
	}
	// What may be old is answered all the same.
	busy, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		session := *s
		_, _ = limited.Read(busy, &session, []int64{1})
	}()
	// The other read has the slot when it waits for the table.
	for waits := ""; waits != "1" && busy.Err() == nil; {
		if waits, err = cluster.Primary().SQL(busy, "", "select count(*) from pg_locks where not granted"); err != nil {
			t.Fatal(err)
		}
	}
	a, err := limited.(strategy.Relaxed).ReadRelaxed(busy, &strategy.Session{ID: 2}, []int64{1}, record.Budget{Within: 1, OnBreach: record.StaleWhenShed})
	if err != nil || !a.Replica || !a.MarkedStale || a.Shed {
		t.Errorf("stale when shed: %+v, %v", a, err)
	}
	cancel()
	<-gone
	if _, err := holder.Exec(ctx, "rollback"); err != nil {
		t.Fatal(err)
	}
}
