package eventgate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/eventgate"
)

// conns is a database that hands out connections and does not say how it routes.
type conns struct {
	eventgate.Database
	err      error
	acquired int
	released *int
}

type conn struct{ released *int }

func (conn) Decision() tidegate.Decision {
	return tidegate.Decision{Role: tidegate.RoleReplica, Reason: tidegate.ReasonCovered}
}
func (c conn) Release() { *c.released++ }

func (c *conns) Acquire(context.Context, tidegate.Class) (conn, error) {
	c.acquired++
	return conn{c.released}, c.err
}

func TestSettleByConnection(t *testing.T) {
	t.Parallel()
	g, db, released := gate(t), lagging(t), 0
	c := &conns{Database: db.Core(), released: &released}
	j, err := eventgate.NewJobs(eventgate.JobConfig{Gate: g, Database: c, Settle: eventgate.Settle(c)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Begin(t.Context(), eventgate.Job{Mode: eventgate.AlwaysWait}); err != nil || c.acquired != 1 || released != 1 {
		t.Errorf("%v, acquired %d, released %d", err, c.acquired, released)
	}
	c.err = tidegate.ErrClosed
	if _, err := j.Begin(t.Context(), eventgate.Job{Mode: eventgate.AlwaysWait}); !errors.Is(err, tidegate.ErrClosed) || released != 1 {
		t.Error(err)
	}
}

// answers is a database whose connections come, or do not, one after the other.
type answers struct {
	eventgate.Database
	next []func(ctx context.Context) error
}

func (a *answers) Acquire(ctx context.Context, _ tidegate.Class) (conn, error) {
	f := a.next[0]
	a.next = a.next[1:]
	return conn{new(int)}, f(ctx)
}

// What may be better at the next look is looked at again; the rest is said.
func TestSettleFails(t *testing.T) {
	t.Parallel()
	noPrimary := func(context.Context) error { return &tidegate.NotFreshError{Cluster: "main", NoPrimary: true} }
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	fails := func(context.Context) error { return tidegate.ErrClosed }
	works := func(context.Context) error { return nil }
	type list = []func(context.Context) error
	for _, c := range []struct {
		name string
		next list
		want []error
		left int
	}{
		{"no primary for a while", list{noPrimary, noPrimary, works, fails}, nil, 1},
		{"one that hangs", list{hangs, works, fails}, nil, 1},
		{"closed", list{noPrimary, fails, works}, []error{tidegate.ErrClosed}, 1},
		{"hangs until the job's time is over", list{hangs, hangs, hangs, hangs, works}, []error{context.DeadlineExceeded, tidegate.ErrNotFresh}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			cluster := lagging(t)
			put(t.Context(), t, cluster, "new")
			db := &answers{cluster.Core(), c.next}
			j, err := eventgate.NewJobs(eventgate.JobConfig{Gate: gate(t), Database: db, Settle: eventgate.Settle(db)})
			if err != nil {
				t.Fatal(err)
			}
			limited, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err = j.Begin(limited, eventgate.Job{Mode: eventgate.AlwaysWait})
			if len(db.next) != c.left || (err == nil) != (c.want == nil) {
				t.Errorf("%s: %v, %d answers left", c.name, err, len(db.next))
			}
			for _, want := range c.want {
				if !errors.Is(err, want) {
					t.Errorf("%s: %v", c.name, err)
				}
			}
		})
	}
}

func TestJobConfig(t *testing.T) {
	t.Parallel()
	g := gate(t)
	for _, c := range []struct {
		field string
		cfg   eventgate.JobConfig
		want  error
	}{
		{"Gate", eventgate.JobConfig{}, tidegate.ErrConfig},
		{"Settle", eventgate.JobConfig{Gate: g, Database: &conns{}}, tidegate.ErrConfig},
		{"Class", eventgate.JobConfig{Gate: g, Class: tidegate.NewCausal("", "")}, tidegate.ErrClass},
		{"MinAfter", eventgate.JobConfig{Gate: g, MinAfter: -1}, tidegate.ErrConfig},
		{"MaxAfter", eventgate.JobConfig{Gate: g, MinAfter: 2, MaxAfter: 1}, tidegate.ErrConfig},
	} {
		if _, err := eventgate.NewJobs(c.cfg); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s: %v", c.field, err)
		}
	}
	j := jobs(t, g, nil)
	if _, err := j.Begin(t.Context(), eventgate.Job{}); err != nil {
		t.Error(err)
	}
	if _, err := j.Begin(t.Context(), eventgate.Job{Mode: eventgate.Postpone}); !errors.Is(err, tidegate.ErrConfig) {
		t.Error(err)
	}
	if s := fmt.Sprint(eventgate.WaitThenPrimary, eventgate.AlwaysWait, eventgate.Postpone); s != "wait-then-primary always-wait postpone" {
		t.Error(s)
	}
}

// A database that is closed is not waited for, whatever the token says.
func TestClosedDatabase(t *testing.T) {
	for _, mode := range []eventgate.Mode{eventgate.AlwaysWait, eventgate.Postpone} {
		synctest.Test(t, func(t *testing.T) {
			cluster := lagging(t)
			ctx := tidegate.WithSession(t.Context(), tidegate.NewSession())
			put(ctx, t, cluster, "new")
			var message string
			if err := gate(t).Inject(ctx, eventgate.InString(&message)); err != nil {
				t.Fatal(err)
			}
			core := cluster.Core()
			j, err := eventgate.NewJobs(eventgate.JobConfig{Gate: gate(t), Database: core})
			if err != nil {
				t.Fatal(err)
			}
			core.Close()
			if _, err := j.Begin(t.Context(), eventgate.Job{Messages: []eventgate.Carrier{eventgate.InString(&message)}, Mode: mode}); !errors.Is(err, tidegate.ErrClosed) {
				t.Errorf("%v: %v", mode, err)
			}
		})
	}
}
