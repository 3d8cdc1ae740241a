package lab

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/fault"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// What remote-apply asks of the primary is in force for the application: a commit
// waits for every standby. Afterwards it is not.
func TestConfigure(t *testing.T) {
	t.Parallel()
	pgcluster.InstallForTest(t)
	cfg := Config{Replicas: 2, Instances: 1, Sessions: 2}
	s, err := raise(t.Context(), &cfg, fault.Scenario{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if err := s.reset(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	replay := func(how string) {
		t.Helper()
		if _, err := s.Replicas()[1].SQL(t.Context(), "", "select pg_wal_replay_"+how+"()"); err != nil {
			t.Fatal(err)
		}
	}
	// write writes as the application does, within a limit.
	write := func(limit time.Duration) error {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		conn, err := pgx.Connect(t.Context(), s.Primary().DSN(appRole, ""))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(context.Background()) }()
		_, err = conn.Exec(ctx, "update "+strategy.Table+" set v = v + 1 where k = 0")
		return err
	}
	const settings = "select current_setting('synchronous_commit') || ', ' || current_setting('synchronous_standby_names')"

	undo, err := s.configure(t.Context(), strategy.RemoteApply{})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := s.Primary().SQL(t.Context(), "", settings); got != "remote_apply, FIRST 2 (*)" {
		t.Errorf("in force are %q", got)
	}
	if err := write(time.Minute); err != nil {
		t.Errorf("all standbys apply: %v", err)
	}
	replay("pause")
	if err := write(300 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one standby applies nothing: %v", err)
	}
	if err := undo(); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.Primary().SQL(t.Context(), "", settings); got != "on, " {
		t.Errorf("left in force are %q", got)
	}
	if err := write(time.Minute); err != nil {
		t.Errorf("after the settings were taken back: %v", err)
	}
	replay("resume")

	// A run that is cut short takes them back as well.
	ctx, cancel := context.WithCancel(t.Context())
	undo, err = s.configure(ctx, strategy.RemoteApply{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := undo(); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.Primary().SQL(t.Context(), "", settings); got != "on, " {
		t.Errorf("cut short: left in force are %q", got)
	}
	undo, err = s.configure(ctx, strategy.RemoteApply{})
	if err == nil {
		t.Error("settings came into force after the run was over")
	}
	if err := undo(); err != nil {
		t.Fatal(err)
	}
}

// Most strategies take the servers as they are.
func TestConfigureNothing(t *testing.T) {
	t.Parallel()
	undo, err := (&stage{}).configure(t.Context(), strategy.RoundRobin{})
	if err != nil || undo() != nil {
		t.Errorf("got %v", err)
	}
}
