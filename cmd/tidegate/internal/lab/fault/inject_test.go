package fault_test

import (
	"context"
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
	said    []string
}

func newTrial(t *testing.T, scenario string) (*trial, fault.Scenario) {
	t.Helper()
	s, err := fault.Find(scenario)
	if err != nil {
		t.Fatal(err)
	}
	tr := &trial{T: t, cluster: pgcluster.ForTest(t, pgcluster.Config{Replicas: 2, Settings: s.Settings})}
	if _, err := tr.cluster.Primary().SQL(t.Context(), "", "create table r (k bigint, v bigint); insert into r values (0, 0)"); err != nil {
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
		Say:      func(what string) { tr.said = append(tr.said, what) },
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
	watch := truth.Start(ctx, time.Now(), dsns, "select k, v from r", 1)
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
		if _, err := conn.Exec(ctx, "update r set v = v + 1"); err != nil && ctx.Err() == nil {
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

func TestLagSpike(t *testing.T) {
	t.Parallel()
	tr, s := newTrial(t, "lag-spike")
	const d = 2 * time.Second
	looks := tr.inject(s, d)
	healthy, back := longestStandstill(looks[0])
	paused, back2 := longestStandstill(looks[1])
	if paused < d/2 {
		t.Errorf("the replica stood still for %v of %v", paused, d)
	}
	if healthy > paused/2 {
		t.Errorf("the other replica stood still for %v too", healthy)
	}
	if back+back2 > 0 {
		t.Errorf("replicas went back %d and %d times", back, back2)
	}
	if tr.paused() {
		t.Error("a replica stays paused")
	}
	if len(tr.said) != 2 || tr.said[0] == "" || tr.said[1] != "" {
		t.Errorf("said %q", tr.said)
	}

	// A run that is cut short leaves no replica paused either.
	ctx, cancel := context.WithCancel(t.Context())
	site := tr.site()
	site.Say = func(what string) {
		if what != "" {
			if !tr.paused() {
				t.Error("no replica is paused")
			}
			cancel()
		}
	}
	if err := s.Inject(ctx, site, 500*time.Millisecond); err != nil {
		t.Errorf("cut short: %v", err)
	}
	if tr.paused() {
		t.Error("cut short: a replica stays paused")
	}
}

func TestCrashBackend(t *testing.T) {
	t.Parallel()
	tr, s := newTrial(t, "crash-backend")
	looks := tr.inject(s, 4*time.Second)
	total := 0
	for i, l := range looks {
		_, back := longestStandstill(l)
		t.Logf("replica %d went back %d times", i+1, back)
		total += back
	}
	if total == 0 {
		t.Error("no replica went back")
	}
	if err := tr.cluster.Primary().WaitCaughtUp(t.Context(), 2); err != nil {
		t.Error(err)
	}

	// Cut short while it prepares: no error, and nothing to undo.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Inject(ctx, tr.site(), time.Second); err != nil {
		t.Errorf("cut short: %v", err)
	}
}
