package redisgate_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/redisserver"
	"github.com/tidegatedb/tidegate/redisgate"
)

func TestMain(m *testing.M) {
	redis.SetLogger(quiet{})
	before := runtime.NumGoroutine()
	code := m.Run()
	if left := leak(before); code == 0 && left != "" {
		fmt.Fprintln(os.Stderr, left)
		code = 1
	}
	os.Exit(code)
}

// quiet is a log that nobody reads: servers go down here all the time.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// leak describes goroutines that the tests have left.
func leak(before int) string {
	// One that has done its work may still be on its way out.
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		if runtime.NumGoroutine() <= before {
			return ""
		}
	}
	stacks := make([]byte, 1<<20)
	return "goroutines are left:\n" + string(stacks[:runtime.Stack(stacks, true)])
}

// patience is how long a test waits for what has to happen.
const patience = 20 * time.Second

// dial returns a client of a server, that is closed with the test.
func dial(t testing.TB, s *redisserver.Server, change ...func(*redis.Options)) *redis.Client {
	t.Helper()
	o := &redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true}
	for _, f := range change {
		f(o)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func newStore(t testing.TB, c redis.UniversalClient, cfg redisgate.Config) *redisgate.Store {
	t.Helper()
	s, err := redisgate.New(c, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// node is a server with a client and a store on it.
type node struct {
	*redisserver.Server
	client *redis.Client
	store  *redisgate.Store
}

func start(ctx context.Context, t testing.TB, settings ...string) *node {
	t.Helper()
	s := redisserver.ForTest(ctx, t, settings...)
	c := dial(t, s)
	return &node{s, c, newStore(t, c, redisgate.Config{})}
}

// do sends a command that must succeed.
func (n *node) do(ctx context.Context, t testing.TB, args ...any) any {
	t.Helper()
	answer, err := n.client.Do(ctx, args...).Result()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return answer
}

// follow makes the node a replica that has all, of another node.
func (n *node) follow(ctx context.Context, t testing.TB, primary *node) {
	t.Helper()
	host, port, err := net.SplitHostPort(primary.Addr)
	if err != nil {
		t.Fatal(err)
	}
	n.do(ctx, t, "REPLICAOF", host, port)
	await(ctx, t, "the replica has all", func() bool {
		return n.said(ctx, t, "replication", "master_link_status") == "up" &&
			n.said(ctx, t, "replication", "master_replid") == primary.said(ctx, t, "replication", "master_replid") &&
			n.said(ctx, t, "replication", "slave_repl_offset") == primary.said(ctx, t, "replication", "master_repl_offset")
	})
}

// cut takes a replica off its primary, which it keeps looking for: it has what it has.
func (n *node) cut(ctx context.Context, t testing.TB) {
	t.Helper()
	n.do(ctx, t, "REPLICAOF", "127.0.0.1", "1")
}

func (n *node) promote(ctx context.Context, t testing.TB) {
	t.Helper()
	n.do(ctx, t, "REPLICAOF", "NO", "ONE")
}

// restart ends the process at once, and starts another one in its place.
func (n *node) restart(ctx context.Context, t testing.TB) {
	t.Helper()
	if err := n.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := n.Start(ctx); err != nil {
		t.Fatal(err)
	}
}

// said is a line of INFO.
func (n *node) said(ctx context.Context, t testing.TB, section, field string) string {
	t.Helper()
	info, err := n.client.InfoMap(ctx, section).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, fields := range info {
		if value, ok := fields[field]; ok {
			return value
		}
	}
	t.Fatalf("INFO %s has no %s: %v", section, field, info)
	return ""
}

// await returns when the condition holds.
func await(ctx context.Context, t testing.TB, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}

func token(n int) tidegate.Token {
	return tidegate.NewToken(tidegate.Mark{Cluster: "main", Epoch: tidegate.Epoch{System: 7, Line: 1}, Position: tidegate.At(uint64(n))})
}

func load(ctx context.Context, t testing.TB, s tidegate.Store, key, marker string) tidegate.Kept {
	t.Helper()
	kept, err := s.Load(ctx, key, marker)
	if err != nil {
		t.Fatalf("load %s: %v", key, err)
	}
	return kept
}

// save loads and saves, as a request does: the new token replaces the others.
func save(ctx context.Context, t testing.TB, s tidegate.Store, key string, n int) {
	t.Helper()
	kept := load(ctx, t, s, key, "")
	saving := tidegate.Saving{Birth: kept.Birth, Add: tidegate.KeptToken{Name: fmt.Sprint(n), Token: token(n)}}
	for _, old := range kept.Tokens {
		saving.Forget = append(saving.Forget, old.Name)
	}
	if err := s.Save(ctx, key, saving); err != nil {
		t.Fatalf("save %s: %v", key, err)
	}
}

// expect looks at what is kept, and returns the birth.
func expect(ctx context.Context, t testing.TB, s tidegate.Store, when, key string, whole bool, names ...string) string {
	t.Helper()
	kept := load(ctx, t, s, key, "")
	var got []string
	for _, k := range kept.Tokens {
		got = append(got, k.Name)
	}
	slices.Sort(got)
	if kept.Whole != whole || !slices.Equal(got, names) {
		t.Errorf("%s: %s is whole: %v, with %q; want %v, %q", when, key, kept.Whole, got, whole, names)
	}
	return kept.Birth
}
