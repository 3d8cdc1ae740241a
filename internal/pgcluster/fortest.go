package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// EnvRequire names the environment variable that, set to 1, turns a test that
// finds no PostgreSQL from a skip into a failure. CI sets it, so that a green
// run cannot mean that nothing ran.
const EnvRequire = "TIDEGATE_REQUIRE_PG"

// EnvEnginesLog names the environment variable with a file to which each cluster
// for a test appends the engine that it runs, so that a run of many packages can
// say at its end what it ran.
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

// ForTest starts a cluster for a test, logs which PostgreSQL runs, and stops it
// when the test ends, with the servers' last messages if it failed. Without
// PostgreSQL on this machine the test is skipped, or fails when
// TIDEGATE_REQUIRE_PG is 1.
func ForTest(t TB, cfg Config) *Cluster {
	t.Helper()
	if cfg.Install == (Install{}) {
		cfg.Install = InstallForTest(t)
	}
	c, err := Start(context.Background(), cfg)
	if errors.Is(err, ErrUnsupported) && os.Getenv(EnvRequire) != "1" {
		t.Skipf("NOT TESTED: %v", err)
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Logf("runs %v", c.Install)
	t.Cleanup(func() {
		if t.Failed() {
			for _, s := range c.Servers() {
				t.Logf("last messages of %s:%s", s.Name, indented(logTail(s.LogPath, 0)))
			}
		}
		if err := c.Stop(); err != nil {
			t.Errorf("%v", err)
		}
	})
	return c
}

// InstallForTest is Find("") for a test that needs PostgreSQL: it skips or fails
// the test as ForTest does.
func InstallForTest(t TB) Install {
	t.Helper()
	inst, err := Find("")
	switch {
	case err == nil:
		noteEngine(t, inst)
	case os.Getenv(EnvRequire) == "1":
		t.Fatalf("%s=1, but %v", EnvRequire, err)
	default:
		t.Skipf("NOT TESTED, NO POSTGRESQL: %v", err)
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
		_, err = fmt.Fprintf(f, "PostgreSQL %s\n", inst.Version)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Errorf("%s: %v", EnvEnginesLog, err)
	}
}
