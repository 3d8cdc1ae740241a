package eventgate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
	"github.com/tidegatedb/tidegate/eventgate"
	"github.com/tidegatedb/tidegate/tidegatetest"
)

func jobs(t testing.TB, g *eventgate.Gate, db eventgate.Database) *eventgate.Jobs {
	t.Helper()
	j, err := eventgate.NewJobs(eventgate.JobConfig{Gate: g, Database: db})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// after returns the token of a session that has written "new".
func after(t testing.TB, g *eventgate.Gate, db *tidegatetest.Cluster) []eventgate.Carrier {
	t.Helper()
	ctx, text := session(t), new(string)
	put(ctx, t, db, "new")
	if err := g.Inject(ctx, eventgate.InString(text)); err != nil {
		t.Fatal(err)
	}
	return []eventgate.Carrier{eventgate.InString(text)}
}

// before returns a token that was made before "new" is committed, which it is then.
func before(t testing.TB, g *eventgate.Gate, db *tidegatetest.Cluster) []eventgate.Carrier {
	t.Helper()
	text := new(string)
	if err := g.InjectBeforeCommit(t.Context(), eventgate.InString(text)); err != nil {
		t.Fatal(err)
	}
	put(t.Context(), t, db, "new")
	return []eventgate.Carrier{eventgate.InString(text)}
}

// everything returns a token that asks for all there is, in clusters that it does not
// name, and "new" is committed by then.
func everything(t testing.TB, g *eventgate.Gate, db *tidegatetest.Cluster) []eventgate.Carrier {
	t.Helper()
	put(t.Context(), t, db, "new")
	text := new(string)
	if err := g.InjectToken(tidegate.CatchUpToken(), eventgate.InString(text)); err != nil {
		t.Fatal(err)
	}
	return []eventgate.Carrier{eventgate.InString(text)}
}

func none(testing.TB, *eventgate.Gate, *tidegatetest.Cluster) []eventgate.Carrier { return nil }

var kinds = map[string]func(testing.TB, *eventgate.Gate, *tidegatetest.Cluster) []eventgate.Carrier{
	"after the commit": after, "before the commit": before, "no token": none, "everything": everything,
}

func TestWaitThenPrimary(t *testing.T) {
	t.Parallel()
	for name, kind := range kinds {
		synctest.Test(t, func(t *testing.T) {
			g, db := gate(t), lagging(t)
			j := jobs(t, g, db.Core())
			put(t.Context(), t, db, "new")
			ctx, err := j.Begin(t.Context(), eventgate.Job{Messages: kind(t, g, db)})
			if err != nil {
				t.Fatal(err)
			}
			ctx, seen := tidegate.Observe(ctx)
			if v := get(ctx, t, db); v != "new" {
				t.Errorf("%s: read %q", name, v)
			}
			tidegatetest.Routed(t, seen, tidegate.RolePrimary)
			if s := j.Stats(); s != (eventgate.JobStats{Begun: 1}) {
				t.Errorf("%s: %+v", name, s)
			}
		})
	}
}

func TestAlwaysWait(t *testing.T) {
	t.Parallel()
	for name, kind := range kinds {
		synctest.Test(t, func(t *testing.T) {
			g, db := gate(t), lagging(t)
			j := jobs(t, g, db.Core())
			put(t.Context(), t, db, "new")
			tokens := kind(t, g, db)
			time.AfterFunc(time.Minute, db.Replica(1).Release)
			begun := time.Now()
			ctx, err := j.Begin(t.Context(), eventgate.Job{Messages: tokens, Mode: eventgate.AlwaysWait})
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begun); took < time.Minute || took > time.Minute+time.Second {
				t.Errorf("%s: it began after %v", name, took)
			}
			ctx, seen := tidegate.Observe(ctx)
			if v := get(ctx, t, db); v != "new" {
				t.Errorf("%s: read %q", name, v)
			}
			tidegatetest.Routed(t, seen, tidegate.RoleReplica)
			if s := j.Stats(); s != (eventgate.JobStats{Begun: 1, Waited: 1}) {
				t.Errorf("%s: %+v", name, s)
			}
		})
	}
}

// The context ends the wait, and says so.
func TestAlwaysWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for name, kind := range kinds {
		synctest.Test(t, func(t *testing.T) {
			g, db := gate(t), lagging(t)
			j := jobs(t, g, db.Core())
			tokens := kind(t, g, db)
			put(t.Context(), t, db, "new")
			limited, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			begun := time.Now()
			ctx, err := j.Begin(limited, eventgate.Job{Messages: tokens, Mode: eventgate.AlwaysWait})
			var lacks *tidegate.NotFreshError
			if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &lacks) || lacks.Cluster != "main" || lacks.Required.IsZero() || lacks.Waited != 10*time.Second {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(begun); took != 10*time.Second {
				t.Errorf("%s: %v", name, took)
			}
			if s := j.Stats(); s != (eventgate.JobStats{Waited: 1, GaveUp: 1}) {
				t.Errorf("%s: %+v", name, s)
			}
			if tidegate.SessionFrom(ctx) == nil {
				t.Errorf("%s: the context has no session", name)
			}
		})
	}
}

func TestPostpone(t *testing.T) {
	t.Parallel()
	for name, kind := range kinds {
		synctest.Test(t, func(t *testing.T) {
			g, db := gate(t), lagging(t)
			j := jobs(t, g, db.Core())
			put(t.Context(), t, db, "new")
			job := eventgate.Job{Messages: kind(t, g, db), Mode: eventgate.Postpone}
			begun := time.Now()
			_, err := j.Begin(t.Context(), job)
			var p *eventgate.PostponedError
			if !errors.As(err, &p) || !errors.Is(err, tidegate.ErrNotFresh) || p.After < 100*time.Millisecond || p.After > time.Minute || !p.Estimated ||
				p.Cluster != "main" || p.Required.IsZero() || p.Observed.Covers(p.Required) {
				t.Fatalf("%s: %#v", name, err)
			}
			if took := time.Since(begun); took > 300*time.Millisecond {
				t.Errorf("%s: postponed after %v", name, took)
			}
			// The runner puts what is known now into the job, and tries again.
			var text string
			if err := g.InjectToken(p.Token, eventgate.InString(&text)); err != nil {
				t.Fatal(err)
			}
			job.Messages = []eventgate.Carrier{eventgate.InString(&text)}
			db.Replica(0).Release()
			time.Sleep(p.After)
			ctx, err := j.Begin(t.Context(), job)
			if err != nil {
				t.Fatal(err)
			}
			ctx, seen := tidegate.Observe(ctx)
			if v := get(ctx, t, db); v != "new" {
				t.Errorf("%s: read %q", name, v)
			}
			tidegatetest.Routed(t, seen, tidegate.RoleReplica)
			// The second try can come a moment before the database looks again.
			if s := j.Stats(); s.Begun != 1 || s.Waited < 1 || s.Waited > 2 || s.Postponed != 1 {
				t.Errorf("%s: %+v", name, s)
			}
		})
	}
}

// The estimate follows the lag: a retry after it finds the replica ready, and does not
// come ten times too late.
func TestPostponedUntilTheReplicaIsThere(t *testing.T) {
	t.Parallel()
	for _, lag := range []time.Duration{500 * time.Millisecond, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			g, db := gate(t), tidegatetest.New(t, tidegatetest.Config{Name: "main"})
			j := jobs(t, g, db.Core())
			db.Replica(0).Lag(lag)
			db.Replica(1).Lag(lag)
			for range 40 { // the database learns what the lag is
				put(t.Context(), t, db, "old")
				time.Sleep(lag / 10)
			}
			job := eventgate.Job{Messages: after(t, g, db), Mode: eventgate.Postpone}
			_, err := j.Begin(t.Context(), job)
			var p *eventgate.PostponedError
			if !errors.As(err, &p) || !p.Estimated || p.After < lag/2 || p.After > 2*lag {
				t.Fatalf("lag %v: %#v", lag, err)
			}
			time.Sleep(p.After)
			if _, err := j.Begin(t.Context(), job); err != nil {
				t.Errorf("lag %v: after %v: %v", lag, p.After, err)
			}
		})
	}
}

// With writes all the time, a replica that is always late never has "all that is
// committed by now". A job must ask for what that was when it came.
func TestSteadyWritesDoNotKeepAJobWaiting(t *testing.T) {
	t.Parallel()
	const lag = 2 * time.Second
	writing := func(t *testing.T, db *tidegatetest.Cluster) {
		db.Replica(0).Lag(lag)
		db.Replica(1).Lag(lag)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ctx.Err() == nil {
				if err := db.Put(ctx, "other", "x"); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				time.Sleep(5 * time.Millisecond)
			}
		}()
		t.Cleanup(func() { stop(); <-done })
		time.Sleep(3 * lag)
	}
	for name, kind := range kinds {
		synctest.Test(t, func(t *testing.T) {
			g, db := gate(t), tidegatetest.New(t, tidegatetest.Config{Name: "main"})
			writing(t, db)
			j := jobs(t, g, db.Core())
			put(t.Context(), t, db, "new")
			tokens := kind(t, g, db)

			begun := time.Now()
			limited, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ctx, err := j.Begin(limited, eventgate.Job{Messages: tokens, Mode: eventgate.AlwaysWait})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if took := time.Since(begun); took > 2*lag {
				t.Errorf("%s: waited %v", name, took)
			}
			ctx, seen := tidegate.Observe(ctx)
			if v := get(ctx, t, db); v != "new" {
				t.Errorf("%s: read %q", name, v)
			}
			tidegatetest.Routed(t, seen, tidegate.RoleReplica)

			// Postpone makes a new session at each try; the ID makes it the same job.
			job := eventgate.Job{Messages: kind(t, g, db), Mode: eventgate.Postpone, ID: "job 1"}
			begun = time.Now()
			for tries := 1; ; tries++ {
				_, err := j.Begin(t.Context(), job)
				var p *eventgate.PostponedError
				if err == nil {
					break
				}
				if !errors.As(err, &p) || tries > 5 {
					t.Fatalf("%s: try %d: %v", name, tries, err)
				}
				time.Sleep(p.After)
			}
			if took := time.Since(begun); took > 3*lag {
				t.Errorf("%s: postponed for %v", name, took)
			}
		})
	}
}

// A worker that is used again begins the next job with nothing of the one before.
func TestJobsLeakNothing(t *testing.T) {
	t.Parallel()
	g, db := gate(t, fresh), lagging(t)
	j := jobs(t, g, db.Core())
	worker := session(t)
	first, err := j.Begin(worker, eventgate.Job{Messages: after(t, g, db), ID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	if v := get(first, t, db); v != "new" {
		t.Errorf("the first job read %q", v)
	}
	for _, ctx := range []context.Context{worker, first} {
		second, err := j.Begin(ctx, eventgate.Job{ID: "2"})
		if err != nil {
			t.Fatal(err)
		}
		if v := get(second, t, db); v != "old" {
			t.Errorf("the second job knows of %q, which only the first one's token told", v)
		}
	}
	if !tidegate.SessionFrom(worker).Token().IsZero() {
		t.Error("the worker's own session was changed")
	}
}

// Where no replica will ever answer, nothing waits for one.
func TestNothingToWaitFor(t *testing.T) {
	t.Parallel()
	alone := func(t *testing.T) *engine.Core {
		db, err := fake.New(fake.Config{}).Open(t.Context(), fake.Options{Core: engine.Config{Cluster: "main"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		return db.Core()
	}
	rollout := func(r tidegate.Rollout) func(t *testing.T) *engine.Core {
		return func(t *testing.T) *engine.Core {
			core := lagging(t).Core()
			core.SetRollout(r)
			return core
		}
	}
	for name, open := range map[string]func(*testing.T) *engine.Core{
		"only a primary": alone, "off": rollout(tidegate.RolloutOff), "shadow": rollout(tidegate.RolloutShadow),
	} {
		for _, mode := range []eventgate.Mode{eventgate.AlwaysWait, eventgate.Postpone} {
			synctest.Test(t, func(t *testing.T) {
				g, core := gate(t), open(t)
				var position string
				s := tidegate.NewSession(tidegate.NewToken(tidegate.Mark{Cluster: "main", Epoch: core.Status().Epoch, Position: tidegate.At(1 << 40)}))
				if err := g.InjectSession(s, eventgate.InString(&position)); err != nil {
					t.Fatal(err)
				}
				for _, text := range []string{"", position} {
					limited, cancel := context.WithTimeout(t.Context(), time.Minute)
					job := eventgate.Job{Mode: mode, Messages: []eventgate.Carrier{eventgate.InString(&text)}}
					if _, err := jobs(t, g, core).Begin(limited, job); err != nil {
						t.Errorf("%s, %v, %q: %v", name, mode, text, err)
					}
					cancel()
				}
			})
		}
	}
}

// A token of a history that is over is not waited for without end.
func TestTokenOfAnotherHistory(t *testing.T) {
	t.Parallel()
	for _, mode := range []eventgate.Mode{eventgate.AlwaysWait, eventgate.Postpone} {
		synctest.Test(t, func(t *testing.T) {
			g, db := gate(t), tidegatetest.New(t, tidegatetest.Config{Name: "main"})
			foreign := tidegate.NewSession(tidegate.NewToken(tidegate.Mark{Cluster: "main", Epoch: tidegate.Epoch{System: 99, Line: 1}, Position: tidegate.At(1 << 40)}))
			var text string
			if err := g.InjectSession(foreign, eventgate.InString(&text)); err != nil {
				t.Fatal(err)
			}
			limited, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ctx, err := jobs(t, g, db.Core()).Begin(limited, eventgate.Job{Messages: []eventgate.Carrier{eventgate.InString(&text)}, Mode: mode})
			if err != nil {
				t.Fatalf("%v: %v", mode, err)
			}
			ctx, seen := tidegate.Observe(ctx)
			get(ctx, t, db)
			if d, _ := seen.Last(); d.Reason != tidegate.ReasonHistoryChanged {
				t.Errorf("%v: %v", mode, d)
			}
		})
	}
}

// While no replica answers there is no estimate, and a job still waits.
func TestNoReplicaAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, db := gate(t), tidegatetest.New(t, tidegatetest.Config{Name: "main"})
		j := jobs(t, g, db.Core())
		tokens := after(t, g, db)
		db.Replica(0).Stop()
		db.Replica(1).Stop()
		db.Probe()
		_, err := j.Begin(t.Context(), eventgate.Job{Messages: tokens, Mode: eventgate.Postpone})
		var p *eventgate.PostponedError
		if !errors.As(err, &p) || p.Estimated || p.After != 5*time.Second {
			t.Errorf("%#v", err)
		}
		time.AfterFunc(time.Minute, db.Replica(0).Start)
		if _, err := j.Begin(t.Context(), eventgate.Job{Messages: tokens, Mode: eventgate.AlwaysWait}); err != nil {
			t.Error(err)
		}
	})
}
