package pgcluster_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// fakeInstall makes a folder of programs that say they are that version.
func fakeInstall(t *testing.T, says string, programs ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range programs {
		script := "#!/bin/sh\necho '" + says + "'\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var programs = []string{"postgres", "initdb", "pg_basebackup", "psql"}

func TestFindExplicit(t *testing.T) {
	dir := fakeInstall(t, "postgres (PostgreSQL) 18beta1 (Debian 18~beta1-1)", programs...)
	got, err := pgcluster.Find(dir)
	if want := (pgcluster.Install{BinDir: dir, Version: "18beta1", Major: 18}); err != nil || got != want {
		t.Errorf("Find = %+v, %v, want %+v", got, err, want)
	}
}

func TestFindErrors(t *testing.T) {
	for name, tc := range map[string]struct{ dir, want string }{
		"no folder":     {filepath.Join(t.TempDir(), "none"), "postgres is missing"},
		"wrappers only": {fakeInstall(t, "", "psql", "pg_basebackup"), "postgres is missing"},
		"no client":     {fakeInstall(t, "postgres (PostgreSQL) 17.1", "postgres", "initdb"), "pg_basebackup is missing"},
		"too old":       {fakeInstall(t, "postgres (PostgreSQL) 9.6.24", programs...), "9.6.24 is too old"},
		"no version":    {fakeInstall(t, "hello", programs...), `said "hello"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := pgcluster.Find(tc.dir)
			if !errors.Is(err, pgcluster.ErrNotFound) {
				t.Fatalf("%v does not wrap ErrNotFound", err)
			}
			for _, part := range []string{tc.want, tc.dir, "apt-get install postgresql", pgcluster.EnvBinDir} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
}

func TestFindEnvironment(t *testing.T) {
	dir := fakeInstall(t, "postgres (PostgreSQL) 16.4", programs...)
	t.Setenv(pgcluster.EnvBinDir, dir)
	if got, err := pgcluster.Find(""); err != nil || got.BinDir != dir {
		t.Errorf("Find = %v, %v, want it in %s", got, err, dir)
	}
	if all := pgcluster.FindAll(); !containsDir(all, dir) {
		t.Errorf("FindAll = %v, want one in %s", all, dir)
	}
	// A named folder that is wrong is an error, even if there is another one.
	t.Setenv(pgcluster.EnvBinDir, t.TempDir())
	if got, err := pgcluster.Find(""); !errors.Is(err, pgcluster.ErrNotFound) {
		t.Errorf("Find = %v, %v, want ErrNotFound", got, err)
	}
}

func TestFindInPath(t *testing.T) {
	real := fakeInstall(t, "postgres (PostgreSQL) 17.2", programs...)
	linked := t.TempDir()
	if err := os.Symlink(filepath.Join(real, "initdb"), filepath.Join(linked, "initdb")); err != nil {
		t.Fatal(err)
	}
	t.Setenv(pgcluster.EnvBinDir, "")
	t.Setenv("PATH", linked+string(os.PathListSeparator)+os.Getenv("PATH"))
	if got, err := pgcluster.Find(""); err != nil || got.BinDir != real {
		t.Errorf("Find = %v, %v, want it in %s", got, err, real)
	}
}

func TestFindAllHasEachReleaseOnce(t *testing.T) {
	t.Setenv(pgcluster.EnvBinDir, fakeInstall(t, "postgres (PostgreSQL) 99.1", programs...))
	all := pgcluster.FindAll()
	if len(all) == 0 || all[0].Major != 99 {
		t.Fatalf("FindAll = %v, want 99 first", all)
	}
	for i := range all[1:] {
		if all[i].Major <= all[i+1].Major {
			t.Errorf("FindAll = %v is not in order or has a release twice", all)
		}
	}
}

func TestFindNewer(t *testing.T) {
	usual := fakeInstall(t, "postgres (PostgreSQL) 98.1", programs...)
	newer := fakeInstall(t, "postgres (PostgreSQL) 99.0", programs...)
	t.Setenv(pgcluster.EnvBinDir, usual)
	t.Setenv(pgcluster.EnvBinDirNewer, newer)
	if got, err := pgcluster.FindNewer(); err != nil || got.BinDir != newer {
		t.Errorf("FindNewer = %v, %v, want it in %s", got, err, newer)
	}
	if got, err := pgcluster.Find(""); err != nil || got.BinDir != usual {
		t.Errorf("Find = %v, %v, want the usual one in %s", got, err, usual)
	}
	if all := pgcluster.FindAll(); !containsDir(all, usual) || !containsDir(all, newer) {
		t.Errorf("FindAll = %v, want both", all)
	}
	for name, dir := range map[string]string{
		"is missing":   t.TempDir(),
		"is not newer": usual,
		"newer than":   "", // none in the usual folders is
	} {
		t.Setenv(pgcluster.EnvBinDirNewer, dir)
		got, err := pgcluster.FindNewer()
		if !errors.Is(err, pgcluster.ErrNotFound) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), pgcluster.EnvBinDirNewer) {
			t.Errorf("FindNewer in %q = %v, %v", dir, got, err)
		}
	}
	// Found in PATH, without being named.
	t.Setenv(pgcluster.EnvBinDirNewer, "")
	t.Setenv("PATH", newer+string(os.PathListSeparator)+os.Getenv("PATH"))
	if got, err := pgcluster.FindNewer(); err != nil || got.BinDir != newer {
		t.Errorf("FindNewer = %v, %v, want it in %s", got, err, newer)
	}
}

func containsDir(all []pgcluster.Install, dir string) bool {
	for _, inst := range all {
		if inst.BinDir == dir {
			return true
		}
	}
	return false
}

// recorder is a TB that only remembers how it ended.
type recorder struct {
	*testing.T
	outcome string
}

func (r *recorder) Skipf(string, ...any)  { r.outcome = "skipped"; runtime.Goexit() }
func (r *recorder) Fatalf(string, ...any) { r.outcome = "failed"; runtime.Goexit() }

func TestWithoutPostgreSQL(t *testing.T) {
	t.Setenv(pgcluster.EnvBinDir, t.TempDir())
	for require, want := range map[string]string{"": "skipped", "1": "failed"} {
		t.Setenv(pgcluster.EnvRequire, require)
		r := &recorder{T: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			pgcluster.ForTest(r, pgcluster.Config{})
		}()
		<-done
		if r.outcome != want {
			t.Errorf("with %s=%q the test is %q, want %s", pgcluster.EnvRequire, require, r.outcome, want)
		}
	}
}
