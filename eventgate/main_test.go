package eventgate_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/eventgate"
	"github.com/tidegatedb/tidegate/tidegatetest"
)

func TestMain(m *testing.M) {
	before := runtime.NumGoroutine()
	code := m.Run()
	if flag.Lookup("test.fuzz").Value.String() != "" {
		os.Exit(code) // the fuzzer leaves its own
	}
	if left := leak(before); code == 0 && left != "" {
		fmt.Fprintln(os.Stderr, left)
		code = 1
	}
	os.Exit(code)
}

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

// standing is the time of all key rings that have no clock of their own.
var standing = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func ring(t testing.TB, cfg tidegate.KeyringConfig) *tidegate.Keyring {
	t.Helper()
	if cfg.Keys == nil {
		cfg.Keys = []tidegate.Key{{ID: "k1", Secret: bytes.Repeat([]byte{1}, 32)}}
	}
	if cfg.Now == nil {
		cfg.Now = func() time.Time { return standing }
	}
	k, err := tidegate.NewKeyring(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// gate returns one for the cluster "main", changed by the functions.
func gate(t testing.TB, change ...func(*eventgate.Config)) *eventgate.Gate {
	t.Helper()
	cfg := eventgate.Config{Keyring: ring(t, tidegate.KeyringConfig{}), Clusters: []string{"main"}}
	for _, f := range change {
		f(&cfg)
	}
	g, err := eventgate.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func fresh(c *eventgate.Config) {
	c.Missing = func(context.Context) eventgate.Policy { return eventgate.Fresh }
}

// lagging returns a cluster "main" whose replicas have an old value of "k" only.
func lagging(t testing.TB) *tidegatetest.Cluster {
	t.Helper()
	db := tidegatetest.New(t, tidegatetest.Config{Name: "main"})
	put(t.Context(), t, db, "old")
	db.Replica(0).Hold()
	db.Replica(1).Hold()
	return db
}

func put(ctx context.Context, t testing.TB, db *tidegatetest.Cluster, value string) {
	t.Helper()
	if err := db.Put(ctx, "k", value); err != nil {
		t.Fatal(err)
	}
}

func get(ctx context.Context, t testing.TB, db *tidegatetest.Cluster) string {
	t.Helper()
	value, _, err := db.Get(ctx, tidegate.Causal, "k")
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func session(t testing.TB) context.Context {
	return tidegate.WithSession(t.Context(), tidegate.NewSession())
}
