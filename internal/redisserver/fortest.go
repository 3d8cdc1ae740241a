package redisserver

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// EnvRequire names the environment variable that, set to 1, turns a test that finds no
// server from a skip into a failure. CI sets it, so that a green run cannot mean that
// nothing ran.
const EnvRequire = "TIDEGATE_REQUIRE_REDIS"

// EnvEnginesLog names the environment variable with a file to which each test appends
// what it runs on; see internal/pgcluster.
const EnvEnginesLog = "TIDEGATE_ENGINES_LOG"

// TB is what ForTest needs of a testing.TB.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Failed() bool
	Cleanup(func())
}

// ForTest starts a server for a test, logs what runs, and stops it when the test ends,
// with its last messages if that failed. Without a program on this machine the test
// is skipped, or fails when TIDEGATE_REQUIRE_REDIS is 1.
func ForTest(ctx context.Context, t TB, settings ...string) *Server {
	t.Helper()
	inst := InstallForTest(t)
	s, err := Start(ctx, inst, settings...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Logf("runs %v", inst)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("last messages of %s:\n%s", s.Addr, s.logTail())
		}
		if err := s.Stop(); err != nil {
			t.Errorf("%v", err)
		}
	})
	return s
}

// InstallForTest is Find for a test that needs a server: it skips or fails the test
// as ForTest does.
func InstallForTest(t TB) Install {
	t.Helper()
	inst, err := Find()
	switch {
	case err == nil:
		noteEngine(t, inst)
	case os.Getenv(EnvRequire) == "1":
		t.Fatalf("%s=1, but %v", EnvRequire, err)
	default:
		t.Skipf("NOT TESTED, NO REDIS OR VALKEY: %v", err)
	}
	return inst
}

// noteEngine appends the engine to the log that somebody asked for.
func noteEngine(t TB, inst Install) {
	t.Helper()
	name := os.Getenv(EnvEnginesLog)
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintf(f, "%s %s\n", inst.Product, inst.Version)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Errorf("%s: %v", EnvEnginesLog, err)
	}
}
