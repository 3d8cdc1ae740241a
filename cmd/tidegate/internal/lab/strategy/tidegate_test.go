package strategy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
)

// The strategy carries what a session must see by its token alone, and reports
// where each read went.
func TestTidegate(t *testing.T) {
	t.Parallel()
	cluster, nodes := newCluster(t)
	ctx := t.Context()
	var instances []strategy.Instance
	for i := range 2 {
		instance, err := strategy.Tidegate{}.Open(ctx, i, nodes, strategy.Config{PoolSize: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer instance.Close()
		instances = append(instances, instance)
	}
	read := func(instance int, s *strategy.Session, want int64) record.Answer {
		t.Helper()
		answer, err := instances[instance].Read(ctx, s, []int64{3})
		if err != nil {
			t.Fatal(err)
		}
		if len(answer.Rows) != 1 || answer.Rows[0] != (record.Row{Key: 3, Version: want}) || answer.Unproven || answer.Shed || answer.Node == "" {
			t.Fatalf("want version %d, got %+v", want, answer)
		}
		return answer
	}

	s := &strategy.Session{ID: 3}
	if a := read(0, s, 0); !a.Replica || a.Fallback {
		t.Errorf("a healthy cluster: %+v", a)
	}
	replay(t, cluster, "pause")
	if err := instances[0].Write(ctx, s, 3, 1); err != nil {
		t.Fatal(err)
	}
	if a := read(1, s, 1); a.Replica || !a.Fallback || !a.Waited || a.Reason != "behind" {
		t.Errorf("after a write that no replica has: %+v", a)
	}
	// Another session need not see it.
	if a := read(1, &strategy.Session{ID: 4}, 0); !a.Replica {
		t.Errorf("a session that knows nothing: %+v", a)
	}
	replay(t, cluster, "resume")
	// The session's next look waits until a replica is known to have caught up.
	if a := read(0, s, 1); a.Fallback == a.Replica {
		t.Errorf("after the replicas caught up: %+v", a)
	}

	if err := instances[0].Write(ctx, s, 3, 1); err == nil {
		t.Error("a write that changes nothing succeeded")
	}
	if !strings.HasPrefix(s.Token, "tg1.") {
		t.Errorf("token %q", s.Token)
	}
	forged := &strategy.Session{ID: 3, Token: s.Token[:len(s.Token)-4] + "AAAA"}
	if _, err := instances[0].Read(ctx, forged, []int64{3}); !errors.Is(err, tidegate.ErrToken) {
		t.Errorf("a forged token: %v", err)
	}
}
