package strategy_test

import (
	"slices"
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
)

func TestCarriable(t *testing.T) {
	t.Parallel()
	if got := strategy.CarriableNames(); !slices.Equal(got, []string{"primary-only", "round-robin", "remote-apply", "tidegate"}) {
		t.Errorf("behind HTTP serve %v", got)
	}
	for _, name := range strategy.CarriableNames() {
		s, err := strategy.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.(strategy.Carriable).Carried(); got != (name == "tidegate") {
			t.Errorf("%s: carried %v", name, got)
		}
	}
}

// A carried session is the context's, before and after, and the strategy keeps
// nothing of it.
func TestTidegateCarried(t *testing.T) {
	t.Parallel()
	cluster, nodes := newCluster(t)
	instance, err := strategy.Tidegate{}.Open(t.Context(), 0, nodes, strategy.Config{PoolSize: 2, Carried: true})
	if err != nil {
		t.Fatal(err)
	}
	defer instance.Close()
	replay(t, cluster, "pause")
	defer replay(t, cluster, "resume")
	user := &strategy.Session{ID: 3}
	session := tidegate.NewSession()
	ctx := tidegate.WithSession(t.Context(), session)
	if err := instance.Write(ctx, user, 3, 1); err != nil {
		t.Fatal(err)
	}
	if marks := session.Token().Marks(); len(marks) != 1 || marks[0].Cluster != strategy.Cluster {
		t.Errorf("the session knows %v", marks)
	}
	next := tidegate.WithSession(t.Context(), tidegate.NewSession(session.Token()))
	answer, err := instance.Read(next, user, []int64{3})
	if err != nil || answer.Replica || answer.Rows[0].Version != 1 {
		t.Errorf("its token's session: %+v, %v", answer, err)
	}
	answer, err = instance.Read(tidegate.WithSession(t.Context(), tidegate.NewSession()), user, []int64{3})
	if err != nil || !answer.Replica || answer.Rows[0].Version != 0 {
		t.Errorf("another session: %+v, %v", answer, err)
	}
	if _, err := instance.Read(t.Context(), user, []int64{3}); err == nil {
		t.Error("without a session it read all the same")
	}
	if user.Token != "" {
		t.Errorf("the strategy keeps %q", user.Token)
	}
}
