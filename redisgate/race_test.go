package redisgate_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tidegatedb/tidegate"
)

// contest is two writers of one session, each with a cluster of its own, whose position
// it raises by one with each save.
type contest struct {
	load func(ctx context.Context) (tidegate.Kept, error)
	save func(ctx context.Context, kept tidegate.Kept, name string, joined tidegate.Token) error

	acknowledged [2]atomic.Uint64 // positions that a save has been acknowledged with
	lost         atomic.Uint64    // loads that lack an acknowledged position
	wentDown     atomic.Uint64    // loads that lack what an earlier one of the same writer had
	notWhole     atomic.Uint64
	looks        atomic.Uint64
}

var clusters = [2]string{"left", "right"}

// positions joins what is kept.
func positions(kept tidegate.Kept) (joined tidegate.Token, at [2]uint64) {
	for _, k := range kept.Tokens {
		joined = joined.Merge(k.Token)
	}
	for _, m := range joined.Marks() {
		for i, c := range clusters {
			if m.Cluster == c {
				at[i] = m.Position.Number()
			}
		}
	}
	return joined, at
}

// look loads, and compares with what was acknowledged before and with what the same
// writer has seen.
func (c *contest) look(ctx context.Context, seen *[2]uint64) (tidegate.Kept, tidegate.Token, error) {
	need := [2]uint64{c.acknowledged[0].Load(), c.acknowledged[1].Load()}
	kept, err := c.load(ctx)
	if err != nil {
		return kept, tidegate.Token{}, err
	}
	joined, at := positions(kept)
	c.looks.Add(1)
	for i := range at {
		if at[i] < need[i] {
			c.lost.Add(1)
		}
		if at[i] < seen[i] {
			c.wentDown.Add(1)
		}
		seen[i] = max(seen[i], at[i])
	}
	if !kept.Whole && need[0] > 0 {
		c.notWhole.Add(1)
	}
	return kept, joined, nil
}

// write raises the position of a writer's cluster so many times.
func (c *contest) write(ctx context.Context, writer, times int) error {
	var seen [2]uint64
	for n := 1; n <= times; n++ {
		kept, joined, err := c.look(ctx, &seen)
		if err != nil {
			return err
		}
		mark := tidegate.Mark{Cluster: clusters[writer], Epoch: tidegate.Epoch{System: 7, Line: 1}, Position: tidegate.At(uint64(n))}
		if err := c.save(ctx, kept, fmt.Sprint(writer, " ", n), joined.Merge(tidegate.NewToken(mark))); err != nil {
			return err
		}
		c.acknowledged[writer].Store(uint64(n))
	}
	return nil
}

// run lets both write at once, and returns what is kept at the end.
func (c *contest) run(ctx context.Context, times int) ([2]uint64, error) {
	var writers sync.WaitGroup
	var errs [2]error
	for w := range 2 {
		writers.Go(func() { errs[w] = c.write(ctx, w, times) })
	}
	writers.Wait()
	kept, err := c.load(ctx)
	_, at := positions(kept)
	return at, errors.Join(errs[0], errs[1], err)
}

// Two requests of a session save at once, 100,000 times. What has been acknowledged is
// there from then on.
func TestTwoWritersLoseNothing(t *testing.T) {
	t.Parallel()
	const times = 50_000 // each
	ctx := t.Context()
	n := start(ctx, t)
	store := n.store
	c := &contest{
		load: func(ctx context.Context) (tidegate.Kept, error) { return store.Load(ctx, "k", "") },
		save: func(ctx context.Context, kept tidegate.Kept, name string, joined tidegate.Token) error {
			s := tidegate.Saving{Birth: kept.Birth, Add: tidegate.KeptToken{Name: name, Token: joined}}
			for _, k := range kept.Tokens {
				s.Forget = append(s.Forget, k.Name)
			}
			return store.Save(ctx, "k", s)
		},
	}
	begun := time.Now()
	at, err := c.run(ctx, times)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d saves in %v: of %d loads %d lacked what was acknowledged", 2*times, time.Since(begun).Round(time.Millisecond), c.looks.Load(), c.lost.Load())
	if lost, down, not := c.lost.Load(), c.wentDown.Load(), c.notWhole.Load(); lost+down+not > 0 {
		t.Errorf("%d loads lacked an acknowledged save, %d went back, %d were not whole", lost, down, not)
	}
	if want := [2]uint64{uint64(times), uint64(times)}; at != want {
		t.Errorf("at the end there is %v, want %v", at, want)
	}

	// The same with a store that keeps one token, as is done at first: what one saves
	// between the other's load and save is gone. It shows that there was a race.
	one := &contest{
		load: func(ctx context.Context) (tidegate.Kept, error) { return loadOne(ctx, n.client) },
		save: func(ctx context.Context, _ tidegate.Kept, _ string, joined tidegate.Token) error {
			data, err := joined.AppendBinary(nil)
			if err != nil {
				return err
			}
			return n.client.Set(ctx, "naive", data, 0).Err()
		},
	}
	const control = times / 25
	if _, err := one.run(ctx, control); err != nil {
		t.Fatal(err)
	}
	t.Logf("the control, in %d saves: of %d loads %d lacked what was acknowledged", 2*control, one.looks.Load(), one.lost.Load())
	if one.lost.Load() == 0 {
		t.Error("the control lost nothing: there was no race")
	}
}

func loadOne(ctx context.Context, client *redis.Client) (tidegate.Kept, error) {
	data, err := client.Get(ctx, "naive").Bytes()
	if errors.Is(err, redis.Nil) {
		return tidegate.Kept{Whole: true}, nil
	}
	if err != nil {
		return tidegate.Kept{}, err
	}
	token, err := tidegate.ParseBinary(data)
	return tidegate.Kept{Whole: true, Tokens: []tidegate.KeptToken{{Token: token}}}, err
}
