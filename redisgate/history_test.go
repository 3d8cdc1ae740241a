package redisgate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tidegatedb/tidegate"
)

// passTTL lets the store's lifetime pass on a node, for all keys.
func (n *node) passTTL(ctx context.Context, t testing.TB) {
	t.Helper()
	if err := (&clock{client: n.client}).pass(ctx, n.store.TTL()+time.Second); err != nil {
		t.Fatal(err)
	}
}

func TestRestartWithoutData(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	n := start(ctx, t)
	save(ctx, t, n.store, "k", 1)
	before := expect(ctx, t, n.store, "at first", "k", true, "1")
	n.restart(ctx, t)
	if after := expect(ctx, t, n.store, "after a restart without data", "k", false); after == before {
		t.Error("the entry came back")
	}
	save(ctx, t, n.store, "k", 2)
	expect(ctx, t, n.store, "nothing is left that could be older", "k", true, "2")
}

func TestRestartWithAnOlderSnapshot(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	n := start(ctx, t)
	save(ctx, t, n.store, "k", 1)
	save(ctx, t, n.store, "unused", 1)
	save(ctx, t, n.store, "looked at", 1)
	before := expect(ctx, t, n.store, "at first", "k", true, "1")
	n.do(ctx, t, "SAVE")
	save(ctx, t, n.store, "k", 2)
	n.restart(ctx, t)
	suspect(ctx, t, n, before, "1")
}

// suspect looks at a node that has another history than before, in which k was whole,
// with that birth and the token of that name, and the entry unused was made.
func suspect(ctx context.Context, t testing.TB, n *node, before, name string) {
	t.Helper()
	after := expect(ctx, t, n.store, "with another history", "k", false, name)
	if after == before {
		t.Error("the entry has the birth of the other history")
	}
	if err := n.store.Save(ctx, "k", tidegate.Saving{Birth: before, Add: tidegate.KeptToken{Name: "late", Token: token(1)}, Forget: []string{name}}); err != nil {
		t.Fatal(err)
	}
	save(ctx, t, n.store, "k", 8)
	expect(ctx, t, n.store, "after saves", "k", false, "8")
	// New entries, some of which have the same hash tag as k, which makes sure that the
	// change was noticed there.
	noticed := 0
	for i := range 200 {
		key := fmt.Sprint("new ", i)
		save(ctx, t, n.store, key, 1)
		if n.tag(ctx, t, key) != n.tag(ctx, t, "k") {
			continue
		}
		noticed++
		expect(ctx, t, n.store, "made later", key, false, "1")
	}
	if noticed == 0 {
		t.Error("no new entry is beside k: there is nothing to test")
	}
	// Of an entry that lives on nothing more is known after that time, whether it was used
	// or not, until somebody saves who has caught up.
	expect(ctx, t, n.store, "with another history", "looked at", false, "1")
	for _, key := range []string{"k", "unused", "looked at"} {
		n.do(ctx, t, "PERSIST", n.entry(ctx, t, key))
	}
	n.passTTL(ctx, t)
	expect(ctx, t, n.store, "a lifetime later", "k", true, "8")
	expect(ctx, t, n.store, "a lifetime later, not saved since", "looked at", false, "1")
	expect(ctx, t, n.store, "a lifetime later, not used since", "unused", false, "1")
	save(ctx, t, n.store, "unused", 2)
	expect(ctx, t, n.store, "saved a lifetime later", "unused", true, "2")
}

// entry returns the server's key for an entry that is there.
func (n *node) entry(ctx context.Context, t testing.TB, key string) string {
	t.Helper()
	keys := n.client.Keys(ctx, "*}:"+key).Val()
	if len(keys) != 1 {
		t.Fatalf("%s has the keys %q", key, keys)
	}
	return keys[0]
}

func (n *node) tag(ctx context.Context, t testing.TB, key string) string {
	t.Helper()
	tag, _, _ := strings.Cut(n.entry(ctx, t, key), "}")
	return tag
}

func TestFailoverToAReplicaThatLacksASave(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a, b := start(ctx, t), start(ctx, t)
	save(ctx, t, a.store, "k", 1)
	save(ctx, t, a.store, "unused", 1)
	save(ctx, t, a.store, "looked at", 1)
	b.follow(ctx, t, a)
	before := expect(ctx, t, a.store, "at first", "k", true, "1")
	b.follow(ctx, t, a)
	b.cut(ctx, t)
	save(ctx, t, a.store, "k", 2)
	if err := a.Kill(); err != nil {
		t.Fatal(err)
	}
	b.promote(ctx, t)
	suspect(ctx, t, b, before, "1")

	// And back, with nothing lost: nobody can know that.
	before = expect(ctx, t, b.store, "before the next failover", "k", true, "8")
	if err := a.Start(ctx); err != nil {
		t.Fatal(err)
	}
	a.follow(ctx, t, b)
	if err := b.Kill(); err != nil {
		t.Fatal(err)
	}
	a.promote(ctx, t)
	if after := expect(ctx, t, a.store, "after the failover back", "k", false, "8"); after == before {
		t.Error("the entry has the birth of the other history")
	}
}

// A failover before a replica had anything: its second ID tells of it.
func TestFailoverToAReplicaThatHasNothing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a, b := start(ctx, t), start(ctx, t)
	b.follow(ctx, t, a)
	b.cut(ctx, t)
	save(ctx, t, a.store, "k", 1)
	expect(ctx, t, a.store, "at first", "k", true, "1")
	b.promote(ctx, t)
	save(ctx, t, b.store, "k", 2)
	expect(ctx, t, b.store, "made while the old primary still answers", "k", false, "2")
	b.passTTL(ctx, t)
	save(ctx, t, b.store, "k", 3)
	expect(ctx, t, b.store, "a lifetime later", "k", true, "3")
}

// The same process is a primary, a replica, and a primary again, and the entry is not used
// in between. Three things tell of it, and each of them is enough: each can be gone.
func TestFailoverAndBack(t *testing.T) {
	t.Parallel()
	for left, gone := range map[string]struct{ second, counted, loaded bool }{
		"the second replication ID": {counted: true, loaded: true},
		"the bytes received":        {second: true, loaded: true},
		"the last load of data":     {second: true, counted: true},
	} {
		t.Run(left, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			a, b := start(ctx, t, "--repl-backlog-ttl", "1"), start(ctx, t)
			if gone.loaded { // as many keys as it will get from the other primary
				save(ctx, t, a.store, "k", 1)
				a.do(ctx, t, "SAVE")
				a.restart(ctx, t)
				load(ctx, t, a.store, "k", "")
				a.passTTL(ctx, t)
			}
			save(ctx, t, a.store, "k", 1)
			loaded := a.said(ctx, t, "persistence", "rdb_last_load_keys_loaded")
			process := a.said(ctx, t, "server", "run_id")
			b.follow(ctx, t, a)
			b.cut(ctx, t)
			save(ctx, t, a.store, "k", 2)
			before := expect(ctx, t, a.store, "at first", "k", true, "2")
			b.promote(ctx, t)
			a.follow(ctx, t, b)
			if !gone.second {
				a.do(ctx, t, "CONFIG", "SET", "repl-backlog-ttl", 3600)
			}
			a.promote(ctx, t)
			if gone.second {
				await(ctx, t, "the backlog is given up", func() bool { return a.said(ctx, t, "replication", "repl_backlog_active") == "0" })
			}
			if gone.counted {
				a.do(ctx, t, "CONFIG", "RESETSTAT")
			}
			second := strings.Trim(a.said(ctx, t, "replication", "master_replid2"), "0") == ""
			counted := a.said(ctx, t, "stats", "total_net_repl_input_bytes") == "0"
			same := a.said(ctx, t, "persistence", "rdb_last_load_keys_loaded") == loaded
			if second != gone.second || counted != gone.counted || same != gone.loaded || a.said(ctx, t, "server", "run_id") != process {
				t.Fatalf("there is nothing to test: gone are the second ID: %v, the bytes: %v, the load: %v", second, counted, same)
			}
			if after := expect(ctx, t, a.store, "with what the other primary had", "k", false, "1"); after == before {
				t.Error("the entry has the birth of the other history")
			}
			save(ctx, t, a.store, "k", 3)
			expect(ctx, t, a.store, "after a save", "k", false, "3")
		})
	}
}

// Replicas that come and go change the replication ID, and lose nothing.
func TestReplicasThatComeAndGo(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a, b := start(ctx, t, "--repl-backlog-ttl", "1"), start(ctx, t)
	save(ctx, t, a.store, "k", 1)
	birth := expect(ctx, t, a.store, "at first", "k", true, "1")
	ids := map[string]bool{}
	look := func(when string) {
		t.Helper()
		ids[a.said(ctx, t, "replication", "master_replid")] = true
		if b := expect(ctx, t, a.store, when, "k", true, "1"); b != birth {
			t.Errorf("%s: another birth", when)
		}
		key := "new " + when
		save(ctx, t, a.store, key, 1)
		expect(ctx, t, a.store, when, key, true, "1")
	}
	look("alone")
	for range 2 {
		b.follow(ctx, t, a)
		look("with a first replica")
		b.promote(ctx, t)
		await(ctx, t, "the backlog is given up", func() bool { return a.said(ctx, t, "replication", "repl_backlog_active") == "0" })
		look("without a replica for long")
	}
	if len(ids) != 5 {
		t.Errorf("the server had %d replication IDs: there is nothing to test", len(ids))
	}
}

func TestFlush(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	n := start(ctx, t)
	save(ctx, t, n.store, "k", 1)
	loaded := load(ctx, t, n.store, "k", "m")
	n.do(ctx, t, "FLUSHALL")
	if err := n.store.Save(ctx, "k", tidegate.Saving{Birth: loaded.Birth, Add: tidegate.KeptToken{Name: "2", Token: token(2)}, Clear: []string{"m"}}); err != nil {
		t.Fatal(err)
	}
	expect(ctx, t, n.store, "saved after a flush", "k", false, "2")
	save(ctx, t, n.store, "k", 3)
	expect(ctx, t, n.store, "and by who found it so", "k", true, "3")
}

func TestEviction(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	n := start(ctx, t, "--maxmemory", "4mb", "--maxmemory-policy", "allkeys-lru")
	save(ctx, t, n.store, "k", 1)
	before := expect(ctx, t, n.store, "at first", "k", true, "1")
	for i := 0; len(n.client.Keys(ctx, "*:k").Val()) > 0; i++ {
		if i > 2000 {
			t.Fatal("the entry is never evicted")
		}
		n.do(ctx, t, "SET", fmt.Sprint("filler", i), strings.Repeat("x", 10_000))
	}
	if after := expect(ctx, t, n.store, "after it was evicted", "k", false); after == before {
		t.Error("the entry came back")
	}
	save(ctx, t, n.store, "k", 2)
	expect(ctx, t, n.store, "saved again", "k", true, "2")
}

// A server that has no memory refuses a save, all of it.
func TestNoMemory(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	n := start(ctx, t, "--maxmemory-policy", "noeviction")
	save(ctx, t, n.store, "k", 1)
	birth := load(ctx, t, n.store, "k", "").Birth
	n.do(ctx, t, "CONFIG", "SET", "maxmemory", "1")
	err := n.store.Save(ctx, "k", tidegate.Saving{Birth: birth, Add: tidegate.KeptToken{Name: "2", Token: token(2)}, Forget: []string{"1"}})
	if !redis.IsOOMError(err) {
		t.Errorf("save: %v", err)
	}
	n.do(ctx, t, "CONFIG", "SET", "maxmemory", "0")
	if after := expect(ctx, t, n.store, "after a save that was refused", "k", true, "1"); after != birth {
		t.Error("the entry is another")
	}
}

func TestReplicaIsNotAsked(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a, b := start(ctx, t), start(ctx, t)
	save(ctx, t, a.store, "k", 1)
	b.follow(ctx, t, a)
	// Also one that takes writes, which would be its own.
	for _, readOnly := range []string{"yes", "no"} {
		b.do(ctx, t, "CONFIG", "SET", "replica-read-only", readOnly)
		if kept, err := b.store.Load(ctx, "k", ""); !redis.IsReadOnlyError(err) {
			t.Errorf("load on a replica (read-only: %s): %v, %v", readOnly, kept, err)
		}
		if err := b.store.Save(ctx, "k", tidegate.Saving{Add: tidegate.KeptToken{Name: "2", Token: token(2)}}); !redis.IsReadOnlyError(err) {
			t.Errorf("save on a replica (read-only: %s): %v", readOnly, err)
		}
		if err := b.store.Check(ctx); err == nil || !strings.Contains(err.Error(), "replica") {
			t.Errorf("check of a replica (read-only: %s): %v", readOnly, err)
		}
	}
	expect(ctx, t, a.store, "on the primary", "k", true, "1")

	// A demoted primary, too.
	b.promote(ctx, t)
	a.follow(ctx, t, b)
	if kept, err := a.store.Load(ctx, "k", ""); !redis.IsReadOnlyError(err) {
		t.Errorf("load on a primary that was demoted: %v, %v", kept, err)
	}
}
