package fault_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/fault"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/truth"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// These tests let a scenario loose on a real cluster while one row counts up,
// and look at what the replicas show.

type trial struct {
	*testing.T
	cluster *pgcluster.Cluster

	mu       sync.Mutex
	said     []string
	restarts int
	replaced []int
	writes   int // of the witness
	troubles [][]int
	ended    int
}

func newTrial(t *testing.T, scenario string) (*trial, fault.Scenario) {
	t.Helper()
	s, err := fault.Find(scenario)
	if err != nil {
		t.Fatal(err)
	}
	tr := &trial{T: t, cluster: pgcluster.ForTest(t, metered(s))}
	if _, err := tr.cluster.Primary().SQL(t.Context(), "", "create table r (k bigint, v bigint); insert into r values (0, 0), (1, 0)"); err != nil {
		t.Fatal(err)
	}
	if err := tr.cluster.Primary().WaitCaughtUp(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	return tr, s
}

func (tr *trial) site() *fault.Site {
	c := tr.cluster
	return &fault.Site{
		Primary:  c.Primary(),
		Replicas: []fault.Server{c.Replicas()[0], c.Replicas()[1]},
		Table:    "r",
		Witness: func() string {
			tr.writes++
			return fmt.Sprintf("update r set v = %d where k = 1", tr.writes)
		},
		ApplyDelay: 300 * time.Millisecond,
		Instances:  3,
		Replace: func(_ context.Context, instance int) error {
			tr.replaced = append(tr.replaced, instance)
			return nil
		},
		Restarted: func() { tr.restarts++ },
		Trouble: func(replicas ...int) func() {
			tr.troubles = append(tr.troubles, replicas)
			return func() { tr.ended++ }
		},
		Batch: func(int) {},
		Say: func(what string) {
			tr.mu.Lock()
			defer tr.mu.Unlock()
			tr.said = append(tr.said, what)
		},
	}
}

// inject runs the scenario and returns what each replica showed of the row.
func (tr *trial) inject(s fault.Scenario, d time.Duration) [][]truth.Look {
	tr.Helper()
	ctx, cancel := context.WithCancel(tr.Context())
	defer cancel()
	var dsns []string
	for _, r := range tr.cluster.Replicas() {
		dsns = append(dsns, r.DSN("", ""))
	}
	watch := truth.Start(ctx, time.Now(), dsns, "select k, v from r", 2)
	var writer sync.WaitGroup
	writer.Go(func() { tr.count(ctx) })
	if err := s.Inject(ctx, tr.site(), d); err != nil {
		tr.Error(err)
	}
	looks := watch.Stop()
	cancel()
	writer.Wait()
	return looks
}

// count counts the row up every 2 ms.
func (tr *trial) count(ctx context.Context) {
	conn, err := pgx.Connect(ctx, tr.cluster.Primary().DSN("", ""))
	if err != nil {
		tr.Error(err)
		return
	}
	defer func() { _ = conn.Close(context.Background()) }()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		if _, err := conn.Exec(ctx, "update r set v = v + 1 where k = 0"); err != nil && ctx.Err() == nil {
			tr.Error(err)
			return
		}
		<-tick.C
	}
}

// longestStandstill is how long a replica showed one version, and steps back how
// often it showed an older one than before.
func longestStandstill(looks []truth.Look) (longest time.Duration, stepsBack int) {
	since := 0
	for i, l := range looks {
		if i == 0 {
			continue
		}
		if l.Versions[0] < looks[i-1].Versions[0] {
			stepsBack++
		}
		if l.Versions[0] != looks[i-1].Versions[0] {
			since = i
		}
		longest = max(longest, l.Began-looks[since].Began)
	}
	return longest, stepsBack
}

// cutShort lets the scenario loose until it has said that something is wrong, and
// then ends the run.
func (tr *trial) cutShort(s fault.Scenario, d time.Duration) {
	tr.Helper()
	ctx, cancel := context.WithCancel(tr.Context())
	defer cancel()
	site := tr.site()
	site.Say = func(what string) {
		if what != "" {
			cancel()
		}
	}
	if err := s.Inject(ctx, site, d); err != nil {
		tr.Errorf("cut short: %v", err)
	}
	if ctx.Err() == nil {
		tr.Error("nothing was ever wrong")
	}
}

// query asks a server and expects an answer.
func (tr *trial) query(s *pgcluster.Server, sql, want string) {
	tr.Helper()
	got, err := s.SQL(context.Background(), "", sql)
	if err != nil {
		tr.Fatal(err)
	}
	if got != want {
		tr.Errorf("%s answers %q to %s, want %q", s.Name, got, sql, want)
	}
}

func (tr *trial) paused() bool {
	for _, r := range tr.cluster.Replicas() {
		out, err := r.SQL(context.Background(), "", "select pg_is_wal_replay_paused()")
		if err != nil {
			tr.Fatal(err)
		}
		if out != "f" {
			return true
		}
	}
	return false
}
