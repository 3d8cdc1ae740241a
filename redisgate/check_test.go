package redisgate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/redisgate"
)

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	defer ring.Close()
	for name, c := range map[string]struct {
		client redis.UniversalClient
		cfg    redisgate.Config
		says   string
	}{
		"no client":          {nil, redisgate.Config{}, "the client is nil"},
		"a client of no use": {(*redis.Client)(nil), redisgate.Config{}, "the client is nil"},
		"no cluster":         {(*redis.ClusterClient)(nil), redisgate.Config{}, "the client is nil"},
		"a ring":             {ring, redisgate.Config{}, "redis.Ring"},
		"too short":          {client, redisgate.Config{TTL: time.Second - 1}, "Config.TTL "},
		"negative":           {client, redisgate.Config{TTL: -time.Hour}, "Config.TTL "},
		"a hash tag":         {client, redisgate.Config{Prefix: "{tg}"}, "Config.Prefix "},
	} {
		if s, err := redisgate.New(c.client, c.cfg); s != nil || !errors.Is(err, tidegate.ErrConfig) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
	if s := newStore(t, client, redisgate.Config{}); s.TTL() != time.Hour {
		t.Errorf("TTL is %v by itself", s.TTL())
	}
	if s := newStore(t, client, redisgate.Config{TTL: time.Minute}); s.TTL() != time.Minute {
		t.Errorf("TTL is %v, want a minute", s.TTL())
	}
}

func TestCheckSaysWhatToGrant(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	n := start(ctx, t)
	all := []any{"~*", "+@all"}
	for name, c := range map[string]struct {
		rules []any
		says  []string
	}{
		"may not look":    {append(all, "-info"), []string{"refuses info;", "+info"}},
		"may not eval":    {append(all, "-eval"), []string{"may not run scripts", "+eval"}},
		"may not evalsha": {append(all, "-evalsha"), []string{"may not run scripts", "+evalsha"}},
		"nothing inside":  {[]any{"~*", "+eval", "+evalsha"}, []string{"refuses info, time, hgetall, hset, pexpire, hdel;", "+hgetall"}},
		"other keys":      {[]any{"~other:*", "+@all"}, []string{"~tg:*"}},
	} {
		user := strings.ReplaceAll(name, " ", "-")
		n.do(ctx, t, append([]any{"ACL", "SETUSER", user, "reset", "on", ">secret"}, c.rules...)...)
		client := dial(t, n.Server, func(o *redis.Options) { o.Username, o.Password = user, "secret" })
		err := newStore(t, client, redisgate.Config{}).Check(ctx)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, want := range c.says {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in: %v", name, want, err)
			}
		}

		// The advice, taken literally, is enough.
		_, advice, _ := strings.Cut(err.Error(), "ACL SETUSER <user> ")
		advice, _, _ = strings.Cut(advice, ": ")
		args := []any{"ACL", "SETUSER", user, "reset", "on", ">secret"}
		for _, rule := range strings.Fields(advice) {
			args = append(args, rule)
		}
		n.do(ctx, t, args...)
		store := newStore(t, dial(t, n.Server, func(o *redis.Options) { o.Username, o.Password = user, "secret" }), redisgate.Config{})
		if err := store.Check(ctx); err != nil {
			t.Errorf("%s, after the advice %q: %v", name, advice, err)
			continue
		}
		save(ctx, t, store, user, 1)
		load(ctx, t, store, user, "m")
		expect(ctx, t, store, "with what was granted", user, false, "1")
	}
}

func TestCheckLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	n := start(ctx, t)
	if err := n.store.Check(ctx); err != nil {
		t.Error(err)
	}
	if keys := n.client.Keys(ctx, "*").Val(); len(keys) > 0 {
		t.Errorf("left: %q", keys)
	}
	if err := n.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := n.store.Check(ctx); err == nil {
		t.Error("no server, and no error")
	}
}
