package engine_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r := primaryStub(1, 100), replicaStub(2, 40)
		c := core(t, engine.Config{ProbeInterval: 100 * time.Millisecond, PrimaryWait: -1}, p, r)
		want := engine.Stats{}
		same := func(after string) {
			t.Helper()
			got := c.Stats()
			got.Probes, got.DemandProbes = 0, 0
			if got != want {
				t.Errorf("after %s: %+v, want %+v", after, got, want)
			}
		}
		same("the start")
		begin(t.Context(), t, c, tidegate.Causal)
		want.Sessionless++
		same("a read without a session")
		if _, err := c.BeginWrite(t.Context()); err != nil {
			t.Fatal(err)
		}
		want.SessionlessWrites++
		same("a write without a session")
		ctx, _ := sessionAt(t.Context(), needs(30))
		begin(ctx, t, c, tidegate.Causal)
		same("a read on a replica")
		strongly, _ := sessionAt(t.Context(), needs(30))
		begin(strongly, t, c, strong)
		same("a strong read")
		behind, _ := sessionAt(t.Context(), needs(50))
		begin(behind, t, c, tidegate.Causal)
		want.Waits, want.Fallbacks = want.Waits+1, want.Fallbacks+1
		same("a read that waited in vain")
		foreign, _ := sessionAt(t.Context(), tidegate.Mark{Epoch: epoch(9), Position: tidegate.At(1)})
		begin(foreign, t, c, tidegate.Causal)
		want.Waits++ // for a look that is younger than the mark
		want.HistoryChanged, want.Unproven, want.Fallbacks = want.HistoryChanged+1, want.Unproven+1, want.Fallbacks+1
		want.Verdicts[tidegate.VerdictUnknown]++
		same("a read of another history")
		p.set(func(s *stub) { s.answer.Role, s.answer.Ceiling = tidegate.RoleReplica, tidegate.Position{} })
		time.Sleep(time.Second)
		err := c.Begin(behind, strong, &engine.Read{})
		var fresh *tidegate.NotFreshError
		if !errors.As(err, &fresh) || !errors.Is(err, tidegate.ErrNoPrimary) || !fresh.NoPrimary || fresh.Cluster != "main" {
			t.Errorf("a strong read without a primary: %v", err)
		}
		want.Refused++
		same("a refused read")
		st := c.Stats()
		if st.Probes < 20 || st.Probes > 30 || st.DemandProbes == 0 {
			t.Errorf("%d probes by the clock and %d on demand were counted in a bit more than a second", st.Probes, st.DemandProbes)
		}
	})
}
