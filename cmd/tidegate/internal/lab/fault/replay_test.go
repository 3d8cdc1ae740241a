package fault_test

import (
	"context"
	"strconv"
	"testing"
	"time"
)

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
	if len(tr.troubles) != 1 || tr.ended != 1 {
		t.Errorf("told of trouble: %v, of its end %d times", tr.troubles, tr.ended)
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

func TestAllLag(t *testing.T) {
	t.Parallel()
	tr, s := newTrial(t, "all-lag")
	const d = 2 * time.Second
	for i, l := range tr.inject(s, d) {
		if longest, _ := longestStandstill(l); longest < d*3/10 {
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
}

func TestSlowStandbyApply(t *testing.T) {
	t.Parallel()
	tr, s := newTrial(t, "slow-standby-apply")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	site := tr.site()
	delay := site.ApplyDelay
	site.Say = func(what string) {
		if what == "" {
			return
		}
		// One commit, and how long each replica takes to show it.
		began := time.Now()
		tr.query(tr.cluster.Primary(), "update r set v = 1 where k = 0 returning v", "1")
		for _, r := range tr.cluster.Replicas() {
			tr.query(r, "select v from r where k = 0", "0")
		}
		if err := tr.cluster.Primary().WaitCaughtUp(ctx, 2); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < delay {
			t.Errorf("replicas that apply %v late had it after %v", delay, took)
		}
		cancel()
	}
	if err := s.Inject(ctx, site, time.Minute); err != nil {
		t.Error(err)
	}
	for _, r := range tr.cluster.Replicas() {
		tr.query(r, "show recovery_min_apply_delay", "0")
	}
}

func TestBulkWrite(t *testing.T) {
	t.Parallel()
	tr, s := newTrial(t, "bulk-write")
	before := walOf(tr)
	tr.inject(s, 2*time.Second)
	if made := walOf(tr) - before; made < 10<<20 {
		t.Errorf("bulk loads made %d bytes of WAL", made)
	}
	const tables = "select count(*) from pg_tables where tablename like 'lab%'"
	tr.query(tr.cluster.Primary(), tables, "0")
	tr.cutShort(s, 2*time.Second)
	tr.query(tr.cluster.Primary(), tables, "0")
}

// walOf is how many bytes of WAL the primary has made.
func walOf(tr *trial) int64 {
	tr.Helper()
	out, err := tr.cluster.Primary().SQL(tr.Context(), "", "select pg_current_wal_insert_lsn() - '0/0'")
	if err != nil {
		tr.Fatal(err)
	}
	n, err := strconv.ParseInt(out, 10, 64)
	if err != nil {
		tr.Fatal(err)
	}
	return n
}
