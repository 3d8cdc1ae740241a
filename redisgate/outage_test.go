package redisgate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/redisgate"
)

func newKeeper(t testing.TB, s tidegate.Store, timeout time.Duration) *tidegate.Keeper {
	t.Helper()
	k, err := tidegate.NewKeeper(tidegate.KeeperConfig{Store: s, Clusters: []string{"main"}, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// request makes a session's request, which writes or not, and returns the session and
// what saving it said.
func request(ctx context.Context, t testing.TB, k *tidegate.Keeper, writes bool, position int) (*tidegate.Session, error) {
	t.Helper()
	s := k.Open("somebody")
	if err := s.Load(ctx); err != nil {
		t.Fatalf("load: %v", err)
	}
	if writes {
		if err := s.BeginWrite(ctx); err != nil {
			t.Fatalf("begin a write: %v", err)
		}
		s.Merge(token(position))
		s.EndWrite()
	}
	return s, s.Save(ctx)
}

// catchesUp tells whether the session's reads must see all that is committed.
func catchesUp(s *tidegate.Session) bool {
	for _, m := range s.Token().Marks() {
		if m.CatchUp {
			return true
		}
	}
	return false
}

// Without a store all goes on, at the price of catching up.
func TestOutage(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct {
		begin, end func(context.Context, *node) error
	}{
		"dead": {
			func(_ context.Context, n *node) error { return n.Kill() },
			func(ctx context.Context, n *node) error { return n.Start(ctx) },
		},
		"hanging": {
			func(_ context.Context, n *node) error { return n.Freeze() },
			func(_ context.Context, n *node) error { return n.Thaw() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			n := start(ctx, t)
			// A client that never gives up by itself: what bounds a call is the keeper.
			client := dial(t, n.Server, func(o *redis.Options) {
				o.ReadTimeout, o.WriteTimeout, o.ContextTimeoutEnabled = -1, -1, false
			})
			// Half a second is long for a store, and short for a test machine.
			k := newKeeper(t, newStore(t, client, redisgate.Config{}), time.Second/2)
			for position := range 3 {
				if _, err := request(ctx, t, k, position != 1, position); err != nil {
					t.Fatal(err)
				}
			}
			before := k.Stats()
			if before.CatchUps != 2 { // of who had no entry yet, at its load and again before its write
				t.Fatalf("before: %+v", before)
			}

			if err := fault.begin(ctx, n); err != nil {
				t.Fatal(err)
			}
			if s, err := request(ctx, t, k, false, 0); !catchesUp(s) || !errors.Is(err, tidegate.ErrNotKept) {
				t.Errorf("a read: %v, catches up: %v", err, catchesUp(s))
			}
			if s, err := request(ctx, t, k, true, 3); !catchesUp(s) || !errors.Is(err, tidegate.ErrNotKept) {
				t.Errorf("a write: %v, catches up: %v", err, catchesUp(s))
			}
			// The write was to have a marker, for which it asked once more.
			want := tidegate.KeeperStats{
				Loads: before.Loads + 3, FailedLoads: before.FailedLoads + 3, CatchUps: before.CatchUps + 3,
				FailedMarkers: before.FailedMarkers + 1, Saves: before.Saves + 2, FailedSaves: before.FailedSaves + 2,
			}
			if got := k.Stats(); got != want {
				t.Errorf("counted: %+v, want %+v", got, want)
			}

			if err := fault.end(ctx, n); err != nil {
				t.Fatal(err)
			}
			await(ctx, t, "the store is used again", func() bool {
				_, err := request(ctx, t, k, false, 0)
				return err == nil
			})
		})
	}
}
