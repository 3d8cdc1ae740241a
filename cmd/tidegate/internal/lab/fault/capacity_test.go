package fault_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/fault"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

func TestCapacity(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault.Capacity
		says, slots, cost string
	}{
		{fault.Capacity{}, "all that comes", "0", "0"},
		{fault.Capacity{Cost: 1500 * time.Microsecond}, "each statement for 1.5ms", "0", "1.5"},
		{fault.Capacity{Slots: 4, Cost: 16 * time.Millisecond}, "4 statements at a time, each for 16ms, so 250 a second", "4", "16"},
	} {
		set := c.Settings()
		if c.String() != c.says || set["lab.slots"] != c.slots || set["lab.cost_ms"] != c.cost || len(set) != 2 {
			t.Errorf("got %q and %v, want %q, %s and %s", c.String(), set, c.says, c.slots, c.cost)
		}
	}
}

// What a scenario says fits together.
func TestScenariosAreWhole(t *testing.T) {
	t.Parallel()
	for _, s := range fault.All() {
		if s.Migrates && (s.Primary.Cost > 0 || s.Replicas.Cost > 0) {
			t.Errorf("%s changes a table on which statements have a cost", s.Name)
		}
		if (s.Relaxed > 0) != (len(s.Budgets) > 0) {
			t.Errorf("%s: %v of the reads have %d budgets", s.Name, s.Relaxed, len(s.Budgets))
		}
		if s.Primary.Slots > 0 != (s.Primary.Cost > 0) {
			t.Errorf("%s: the primary serves %v", s.Name, s.Primary)
		}
	}
}

// All replicas stand still for a time, and go on.
func TestStampedeAndBudget(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]float64{"stampede": 1. / 3, "budget": 2. / 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr, s := newTrial(t, name)
			const d = 2 * time.Second
			for i, l := range tr.inject(s, d) {
				if longest, _ := longestStandstill(l); longest < time.Duration(part*float64(d))*9/10 {
					t.Errorf("replica %d stood still for %v of %v", i+1, longest, d)
				}
			}
			if tr.paused() {
				t.Error("a replica stays paused")
			}
			tr.cutShort(s, d)
			if tr.paused() {
				t.Error("cut short: a replica stays paused")
			}
		})
	}
}

func TestSlowReplica(t *testing.T) {
	t.Parallel()
	tr, s := newTrial(t, "slow-replica")
	const cost = "select current_setting('lab.cost_ms')"
	replicas := tr.cluster.Replicas()
	costs := func(when, first, second string) {
		t.Helper()
		t.Log(when)
		tr.query(tr.cluster.Primary(), cost, "0")
		tr.query(replicas[0], cost, first)
		tr.query(replicas[1], cost, second)
	}
	costs("before", "1", "1")
	site := tr.site()
	was := 0
	site.Say = func(what string) {
		if what != "" {
			was++
			costs(what, "1", "30")
		}
	}
	if err := s.Inject(t.Context(), site, time.Second); err != nil {
		t.Fatal(err)
	}
	costs("after", "1", "1")
	if was != 1 {
		t.Errorf("slow %d times", was)
	}
	tr.cutShort(s, time.Second)
	costs("cut short", "1", "1")
}

// A query that lasts is canceled while the primary vacuums.
func TestConflict(t *testing.T) {
	t.Parallel()
	tr, s := newTrial(t, "conflict")
	ctx, cancel := context.WithCancel(t.Context())
	replica := tr.cluster.Replicas()[0]
	done := make(chan int)
	go func() {
		canceled := 0
		for ctx.Err() == nil {
			_, err := replica.SQL(ctx, "", "select (select count(*) from r), pg_sleep(0.1), (select count(*) from r)")
			if err != nil && strings.Contains(err.Error(), "conflict with recovery") {
				canceled++
			}
		}
		done <- canceled
	}()
	tr.inject(s, 2*time.Second)
	cancel()
	if canceled := <-done; canceled == 0 {
		t.Error("no query was canceled")
	}
	tr.cutShort(s, time.Second)
	tr.alive()
}

// metered are the settings that the servers of a scenario start with.
func metered(s fault.Scenario) pgcluster.Config {
	return pgcluster.Config{Replicas: 2, Settings: s.Settings, PrimarySettings: s.Primary.Settings(), ReplicaSettings: s.Replicas.Settings()}
}
