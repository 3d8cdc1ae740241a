package jobs

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/eventgate"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
	"github.com/tidegatedb/tidegate/pgxgate"
)

const (
	// lag is how late the replicas are, always.
	lag = 250 * time.Millisecond
	// each is the number of jobs of each mode, and of the control.
	each = 60
)

func openDB(t *testing.T, c *pgcluster.Cluster) *pgxgate.DB {
	t.Helper()
	var nodes []pgxgate.Node
	for _, s := range c.Servers() {
		nodes = append(nodes, pgxgate.Node{Name: s.Name, DSN: s.DSN("app", "postgres")})
	}
	// How busy the machine is decides nothing here.
	db, err := pgxgate.Open(t.Context(), pgxgate.Config{Cluster: "main", Nodes: nodes, FixedFallbacks: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func migrate(t *testing.T, c *pgcluster.Cluster) {
	t.Helper()
	sql := "create role app login; create table orders (id bigint primary key, state text not null); grant all on orders to app; grant all on schema public to app"
	if _, err := c.Primary().SQL(t.Context(), "postgres", sql); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), c.Primary().DSN("app", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Migrate(t.Context(), rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Primary().WaitCaughtUp(t.Context(), len(c.Replicas())); err != nil {
		t.Fatal(err)
	}
}

func newGate(t *testing.T, missing eventgate.Policy) *eventgate.Gate {
	t.Helper()
	keys, err := tidegate.NewKeyring(tidegate.KeyringConfig{Keys: []tidegate.Key{{ID: "k1", Secret: bytes.Repeat([]byte{1}, 32)}}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := eventgate.New(eventgate.Config{
		Keyring: keys, Clusters: []string{"main"},
		Missing: func(context.Context) eventgate.Policy { return missing },
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// queue returns a client of River on the primary. With workers it begins to work.
func queue(t *testing.T, db *pgxgate.DB, workers *river.Workers) *river.Client[pgx.Tx] {
	t.Helper()
	pool, err := db.Primary()
	if err != nil {
		t.Fatal(err)
	}
	cfg := &river.Config{Logger: slog.New(slog.DiscardHandler)}
	if workers != nil {
		cfg.Workers = workers
		cfg.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 20}}
		cfg.FetchCooldown, cfg.FetchPollInterval = 10*time.Millisecond, 50*time.Millisecond
		cfg.TestOnly = true
	}
	client, err := river.NewClient(riverpgxv5.New(pool), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if workers != nil {
		if err := client.Start(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			limited, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			if err := client.StopAndCancel(limited); err != nil {
				t.Error(err)
			}
		})
	}
	return client
}

// A job that is enqueued together with its write is worked on by another instance,
// on replicas that are always late. With its token it finds the write, every time;
// without one it looks for something that is not there yet.
func TestJobSeesTheWriteItIsAbout(t *testing.T) {
	c := pgcluster.ForTest(t, pgcluster.Config{
		Replicas: 2, ReplicaSettings: map[string]string{"recovery_min_apply_delay": lag.String()},
	})
	migrate(t, c)
	producer, consumer := openDB(t, c), openDB(t, c)
	enqueuer := queue(t, producer, nil)

	var next int64
	for _, round := range []struct {
		name  string
		mode  eventgate.Mode
		token bool
	}{
		{"control, without a token", eventgate.WaitThenPrimary, false},
		{"wait, then primary", eventgate.WaitThenPrimary, true},
		{"always wait", eventgate.AlwaysWait, true},
		{"postpone", eventgate.Postpone, true},
	} {
		t.Run(round.name, func(t *testing.T) {
			gate, missing := newGate(t, eventgate.Fresh), eventgate.CatchUp
			if !round.token {
				gate, missing = nil, eventgate.Fresh
			}
			works, err := eventgate.NewJobs(eventgate.JobConfig{
				Gate: newGate(t, missing), Database: consumer, Settle: eventgate.Settle(consumer),
			})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan Shipped, each)
			workers := river.NewWorkers()
			river.AddWorker(workers, &ShipWorker{DB: consumer, Jobs: works, Done: done})
			queue(t, consumer, workers)

			ctx := tidegate.WithSession(t.Context(), tidegate.NewSession())
			for range each {
				next++
				if err := Enqueue(ctx, producer, gate, enqueuer, ShipArgs{Order: next, Mode: round.mode}); err != nil {
					t.Fatal(err)
				}
			}
			misses, replica, snoozes := 0, 0, 0
			for range each {
				var s Shipped
				select {
				case s = <-done:
				case <-time.After(time.Minute):
					t.Fatalf("jobs are missing; %+v", works.Stats())
				}
				if s.Err != nil {
					t.Errorf("order %d: %v", s.Args.Order, s.Err)
				}
				if !s.Found {
					misses++
				}
				if s.Role == tidegate.RoleReplica {
					replica++
				}
				snoozes += s.Snoozes
			}
			t.Logf("%d jobs: %d missed their write, %d read on a replica, %d times postponed; %+v", each, misses, replica, snoozes, works.Stats())
			switch {
			case !round.token && misses == 0:
				t.Error("nothing was missed without a token: nothing is proven here")
			case round.token && misses > 0:
				t.Errorf("%d jobs missed their write", misses)
			}
			if round.mode != eventgate.WaitThenPrimary && replica < each*9/10 {
				t.Errorf("only %d of %d jobs waited for a replica", replica, each)
			}
			if round.mode == eventgate.Postpone && snoozes == 0 {
				t.Error("no job was postponed")
			}
		})
	}
}
