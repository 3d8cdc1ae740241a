package fault_test

import (
	"context"
	"testing"
	"time"
)

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

// alive checks that all servers run, and that the replicas follow.
func (tr *trial) alive() {
	tr.Helper()
	for _, s := range tr.cluster.Servers() {
		if !s.Alive() {
			tr.Fatalf("%s stays down", s.Name)
		}
	}
	if err := tr.cluster.Primary().WaitCaughtUp(context.Background(), 2); err != nil {
		tr.Error(err)
	}
}

func TestRestartReplica(t *testing.T) {
	t.Parallel()
	tr, s := newTrial(t, "restart-replica")
	const started = "select pg_postmaster_start_time()"
	before := map[string]string{}
	for _, r := range tr.cluster.Servers() {
		before[r.Name], _ = r.SQL(t.Context(), "", started)
	}
	for i, looks := range tr.inject(s, 3*time.Second) {
		if _, back := longestStandstill(looks); back > 0 {
			t.Errorf("replica %d went back %d times: that was no restart in order", i+1, back)
		}
	}
	for _, r := range tr.cluster.Servers() {
		after, err := r.SQL(t.Context(), "", started)
		if restarted := after != before[r.Name]; err != nil || restarted != (r.Name != "primary") {
			t.Errorf("%s was restarted: %v (%v)", r.Name, restarted, err)
		}
	}
	if tr.restarts != 2 {
		t.Errorf("%d restarts are told", tr.restarts)
	}
	tr.cutShort(s, 3*time.Second)
	tr.alive()
}

func TestKillReplica(t *testing.T) {
	t.Parallel()
	tr, s := newTrial(t, "kill-replica")
	const d = 2 * time.Second
	victim := tr.cluster.Replicas()[1]
	var died time.Time
	dead := time.Duration(0)
	site := tr.site()
	site.Say = func(what string) {
		switch what {
		case "replica 2 is dead":
			died = time.Now()
		case "replica 2 recovers":
			dead = time.Since(died)
			if victim.Alive() || !tr.cluster.Replicas()[0].Alive() || !tr.cluster.Primary().Alive() {
				t.Error("another server is dead, or none")
			}
		}
	}
	if err := s.Inject(t.Context(), site, d); err != nil {
		t.Fatal(err)
	}
	if dead < d*2/5 {
		t.Errorf("the replica was dead for %v of %v", dead, d)
	}
	if tr.restarts != 2 {
		t.Errorf("told %d times that a replica goes or comes", tr.restarts)
	}
	tr.alive()
	tr.cutShort(s, d)
	tr.alive()
}
