package redisgate_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tidegatedb/tidegate"
)

// trips counts what a client waits for.
type trips struct{ n atomic.Int64 }

func (c *trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}

func (c *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmds)
	}
}

// requests are what a request of a session does, and how many round trips to the store
// it takes: of one that has nothing new to keep, and of one that has.
var requests = map[string]struct {
	do          func(ctx context.Context, s *tidegate.Session, position int) error
	same, trips int64
}{
	"reads":            {do: reads, same: 1, trips: 2},
	"writes":           {do: writes, same: 2, trips: 2},
	"writesThenReads":  {do: both(writes, reads), same: 2, trips: 2},
	"readsThenWrites":  {do: both(reads, writes), same: 3, trips: 3},
	"relaxedReadsOnly": {do: func(context.Context, *tidegate.Session, int) error { return nil }},
}

func reads(ctx context.Context, s *tidegate.Session, position int) error {
	if err := s.Load(ctx); err != nil {
		return err
	}
	if position > 0 {
		s.Merge(token(position)) // what was read is newer
	}
	return nil
}

func writes(ctx context.Context, s *tidegate.Session, position int) error {
	if err := s.BeginWrite(ctx); err != nil {
		return err
	}
	if position > 0 {
		s.Merge(token(position))
	}
	s.EndWrite()
	return nil
}

func both(a, b func(context.Context, *tidegate.Session, int) error) func(context.Context, *tidegate.Session, int) error {
	return func(ctx context.Context, s *tidegate.Session, position int) error {
		if err := a(ctx, s, position); err != nil {
			return err
		}
		return b(ctx, s, position)
	}
}

func TestRoundTrips(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	n := start(ctx, t)
	count := &trips{}
	n.client.AddHook(count)
	for name, r := range requests {
		k := newKeeper(t, n.store, patience/2)
		request := func(position int) int64 {
			before := count.n.Load()
			s := k.Open(name)
			if err := r.do(ctx, s, position); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := s.Save(ctx); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return count.n.Load() - before
		}
		// The scripts are there and the entry, of which one token is left.
		s := k.Open(name)
		s.Load(ctx)
		if err := s.Save(ctx); err != nil {
			t.Fatal(err)
		}
		if got := request(0); got != r.same {
			t.Errorf("%s, nothing new: %d round trips, want %d", name, got, r.same)
		}
		if got := request(1); got != r.trips {
			t.Errorf("%s: %d round trips, want %d", name, got, r.trips)
		}
	}
}
