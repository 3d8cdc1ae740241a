package redisgate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tidegatedb/tidegate/internal/storetest"
	"github.com/tidegatedb/tidegate/redisgate"
)

func TestRedisIsAStore(t *testing.T) {
	t.Parallel()
	n := start(t.Context(), t)
	suite(t, n.client)
}

// suite runs the conformance suite. Each case has keys of its own.
func suite(t *testing.T, client redis.UniversalClient) {
	var cases atomic.Int64
	t.Run("suite", func(t *testing.T) { // returns when the parallel cases have ended
		storetest.Run(t, func(t *testing.T, look func(*testing.T, storetest.Subject)) {
			prefix := fmt.Sprintf("case%02d:", cases.Add(1))
			clock := &clock{client: client, prefix: prefix}
			look(t, storetest.Subject{
				Store: newStore(t, client, redisgate.Config{Prefix: prefix}),
				Pass:  clock.pass,
				Lose: func(ctx context.Context, key string) error {
					keys, err := clock.keys(ctx)
					var errs []error
					for _, k := range keys {
						if strings.HasSuffix(k, "}:"+key) {
							errs = append(errs, client.Del(ctx, k).Err())
						}
					}
					if len(errs) != 1 {
						errs = append(errs, fmt.Errorf("%d entries of %q in %q", len(errs), key, keys))
					}
					return errors.Join(append(errs, err)...)
				},
			})
		})
	})
}

// clock lets time pass in a server for the keys with a prefix: what counts from a time
// does so from an earlier one, and what ends in a while ends so much sooner.
type clock struct {
	client redis.UniversalClient
	prefix string
}

var earlier = redis.NewScript(`
	local ms = tonumber(ARGV[1])
	local left = redis.call('PTTL', KEYS[1])
	if left >= 0 and left <= ms then
		return redis.call('DEL', KEYS[1])
	elseif left >= 0 then
		redis.call('PEXPIRE', KEYS[1], string.format('%.0f', left - ms))
	end
	local fields = redis.call('HGETALL', KEYS[1])
	for i = 1, #fields, 2 do
		if fields[i] == 's' or string.match(fields[i], '^m.') then
			redis.call('HSET', KEYS[1], fields[i], string.format('%.0f', fields[i + 1] - ms))
		end
	end`)

func (c *clock) pass(ctx context.Context, d time.Duration) error {
	keys, err := c.keys(ctx)
	if err != nil {
		return err
	}
	ms := (d + time.Millisecond - 1).Milliseconds()
	for _, key := range keys {
		if err := earlier.Run(ctx, c.client, []string{key}, ms).Err(); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
	return nil
}

// keys returns all keys with the prefix.
func (c *clock) keys(ctx context.Context) ([]string, error) {
	if cluster, ok := c.client.(*redis.ClusterClient); ok {
		var keys []string
		err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			of, err := node.Keys(ctx, c.prefix+"*").Result()
			keys = append(keys, of...) // there is one node
			return err
		})
		return keys, err
	}
	return c.client.Keys(ctx, c.prefix+"*").Result()
}

// A cluster refuses scripts whose keys are not in one slot, and knows where they are.
func TestClusterIsAStore(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	n := start(ctx, t, "--cluster-enabled", "yes")
	n.do(ctx, t, "CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	await(ctx, t, "the cluster serves", func() bool {
		return strings.Contains(fmt.Sprint(n.do(ctx, t, "CLUSTER", "INFO")), "cluster_state:ok")
	})
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{n.Addr}, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	if err := newStore(t, client, redisgate.Config{}).Check(ctx); err != nil {
		t.Error(err)
	}
	suite(t, client)
}

// Time as it passes: the clock of the other tests is a trick.
func TestTimeEndsEntriesAndMarkers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	n := start(ctx, t)
	store := newStore(t, n.client, redisgate.Config{TTL: 3 * time.Second}) // a test machine may stop for a while
	save(ctx, t, store, "unused", 1)
	save(ctx, t, store, "k", 1)
	load(ctx, t, store, "k", "m")
	expect(ctx, t, store, "with a marker", "k", false, "1")
	await(ctx, t, "the marker ends while the entry is used", func() bool { return load(ctx, t, store, "k", "").Whole })
	expect(ctx, t, store, "then", "k", true, "1")
	await(ctx, t, "the other entry is gone", func() bool {
		keys, err := n.client.Keys(ctx, "*unused").Result()
		return err == nil && len(keys) == 0
	})
	expect(ctx, t, store, "what was not used", "unused", false)
}

func TestTokenThatDoesNotParse(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	n := start(ctx, t)
	save(ctx, t, n.store, "k", 1)
	keys := n.client.Keys(ctx, "*:k").Val()
	if len(keys) != 1 {
		t.Fatalf("keys %q", keys)
	}
	n.do(ctx, t, "HSET", keys[0], "todd", "\xff\x00 of another release")
	expect(ctx, t, n.store, "with a token that does not parse", "k", false, "1", "odd")
	save(ctx, t, n.store, "k", 2)
	expect(ctx, t, n.store, "after the save that forgot it", "k", true, "2")
}

func TestForgottenScriptsAreSentAgain(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	n := start(ctx, t)
	for range 2 {
		n.do(ctx, t, "SCRIPT", "FLUSH")
		save(ctx, t, n.store, "k", 1)
		n.do(ctx, t, "SCRIPT", "FLUSH")
		expect(ctx, t, n.store, "without scripts", "k", true, "1")
	}
}
