package fault_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
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
	if tr.restarts != 2 || len(tr.troubles) != 2 || tr.ended != 2 {
		t.Errorf("%d restarts are told, of trouble %v with %d ends", tr.restarts, tr.troubles, tr.ended)
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
	if tr.restarts != 2 || len(tr.troubles) != 1 || tr.ended != 1 {
		t.Errorf("told %d times that a replica goes or comes, of trouble %v with %d ends", tr.restarts, tr.troubles, tr.ended)
	}
	tr.alive()
	tr.cutShort(s, d)
	tr.alive()
}

// A server that hangs answers nobody, and goes on as if nothing had been.
func TestHang(t *testing.T) {
	t.Parallel()
	tr, s := newTrial(t, "hang")
	victim := tr.cluster.Replicas()[1]
	const started = "select pg_postmaster_start_time()"
	before, _ := victim.SQL(t.Context(), "", started)
	conn, err := pgx.Connect(t.Context(), victim.DSN("", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	hung := 0
	site := tr.site()
	site.Say = func(what string) {
		if what == "" {
			return
		}
		hung++
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		answered := make(chan error, 1)
		go func() { _, err := conn.Exec(ctx, "select 1"); answered <- err }()
		if out, err := victim.SQL(ctx, "", "select 1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a server that hangs answers %q, %v", out, err)
		}
		if err := <-answered; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an open connection answers: %v", err)
		}
		tr.query(tr.cluster.Replicas()[0], "select 1", "1")
		if tr.ended > 0 || len(tr.troubles) != 1 || !slices.Equal(tr.troubles[0], []int{1}) {
			t.Errorf("told of trouble: %v, of its end %d times", tr.troubles, tr.ended)
		}
	}
	if err := s.Inject(t.Context(), site, time.Second); err != nil {
		t.Fatal(err)
	}
	if hung != 1 || tr.ended != 1 {
		t.Errorf("hung %d times, ended %d times", hung, tr.ended)
	}
	tr.query(victim, started, before)
	tr.cutShort(s, time.Minute)
	tr.query(victim, started, before)
	tr.alive()
}
