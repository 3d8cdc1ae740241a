package pgcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// EnvBinDir names the environment variable with the folder of the server
// programs, for machines where they are in no usual place.
const EnvBinDir = "TIDEGATE_PG_BIN"

// EnvBinDirNewer names the environment variable with the folder of a second
// installation, of a newer release than the usual one, for tests that run on both
// (scripts/need-postgres-newer.sh gets one).
const EnvBinDirNewer = "TIDEGATE_PG_BIN_NEWER"

// minMajor is the oldest release that knows every setting used here
// (wal_keep_size and a reloadable primary_conninfo came with 13).
const minMajor = 13

// ErrNotFound means that no usable PostgreSQL server programs were found.
var ErrNotFound = errors.New("pgcluster: no PostgreSQL server programs found")

const notFoundHint = "install them (Debian and Ubuntu: apt-get install postgresql; macOS: brew install postgresql) or set " +
	EnvBinDir + " to the folder that holds initdb and postgres"

// Install is one set of PostgreSQL programs on this machine. The zero value
// means none.
type Install struct {
	// BinDir is the folder of initdb, postgres, pg_basebackup and psql.
	BinDir string
	// Version is as the server says it, such as "15.13" or "18beta1".
	Version string
	// Major is the release, such as 15.
	Major int
}

// String is the version and the folder, for logs.
func (i Install) String() string { return fmt.Sprintf("PostgreSQL %s (%s)", i.Version, i.BinDir) }

func (i Install) program(name string) string { return filepath.Join(i.BinDir, name) }

// Find returns the first usable installation: the explicit folder when it is not
// empty, else the folder in TIDEGATE_PG_BIN, else the first of PATH and the
// usual folders, newest release first. A folder that was named but cannot be
// used is an error, never a reason to look further. Errors wrap [ErrNotFound]
// and say what to do next.
func Find(explicit string) (Install, error) {
	named, by := explicit, "the given folder"
	if named == "" {
		named, by = os.Getenv(EnvBinDir), EnvBinDir
	}
	if named != "" {
		inst, err := inspect(named)
		if err != nil {
			return Install{}, fmt.Errorf("%w in %s %s: %w; %s", ErrNotFound, by, named, err, notFoundHint)
		}
		return inst, nil
	}
	for _, dir := range candidates() {
		if inst, err := inspect(dir); err == nil {
			return inst, nil
		}
	}
	return Install{}, fmt.Errorf("%w in PATH or the usual folders; %s", ErrNotFound, notFoundHint)
}

// FindNewer returns an installation of a newer release than Find("") returns: the
// one in TIDEGATE_PG_BIN_NEWER, else the newest that FindAll finds. A folder that
// was named but cannot be used, or is not newer, is an error. Errors wrap
// [ErrNotFound] and say what to do next.
func FindNewer() (Install, error) {
	usual, err := Find("")
	if err != nil {
		return Install{}, err
	}
	if named := os.Getenv(EnvBinDirNewer); named != "" {
		inst, err := inspect(named)
		if err == nil && inst.Major <= usual.Major {
			err = fmt.Errorf("release %s is not newer than %s, the usual one", inst.Version, usual.Version)
		}
		if err != nil {
			return Install{}, fmt.Errorf("%w in %s %s: %w; %s", ErrNotFound, EnvBinDirNewer, named, err, newerHint)
		}
		return inst, nil
	}
	if all := FindAll(); len(all) > 0 && all[0].Major > usual.Major {
		return all[0], nil
	}
	return Install{}, fmt.Errorf("%w that are newer than %v; %s", ErrNotFound, usual, newerHint)
}

const newerHint = "make need-postgres-newer gets some on Debian and Ubuntu; set " + EnvBinDirNewer +
	" to the folder that scripts/need-postgres-newer.sh --find prints"

// FindAll returns one installation for each major release found in
// TIDEGATE_PG_BIN, TIDEGATE_PG_BIN_NEWER, PATH and the usual folders, newest
// first. It is empty when there is none.
func FindAll() []Install {
	dirs := candidates()
	for _, name := range []string{EnvBinDirNewer, EnvBinDir} {
		if dir := os.Getenv(name); dir != "" {
			dirs = append([]string{dir}, dirs...)
		}
	}
	var all []Install
	for _, dir := range dirs {
		inst, err := inspect(dir)
		if err == nil && !slices.ContainsFunc(all, func(o Install) bool { return o.Major == inst.Major }) {
			all = append(all, inst)
		}
	}
	slices.SortFunc(all, func(a, b Install) int { return cmp.Compare(b.Major, a.Major) })
	return all
}

// candidates lists folders to look at, best first. They need not exist.
func candidates() []string {
	var dirs []string
	// Debian puts wrappers of the client programs in PATH but no server, so only
	// initdb tells that a folder is the right one.
	if initdb, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(initdb))
		if real, err := filepath.EvalSymlinks(initdb); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/usr/local/pgsql/bin",
		"/opt/homebrew/opt/postgresql@*/bin",
		"/usr/local/opt/postgresql@*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	} {
		found, _ := filepath.Glob(pattern) // the patterns are constants and well formed
		slices.SortFunc(found, func(a, b string) int { return cmp.Compare(folderRelease(b), folderRelease(a)) })
		dirs = append(dirs, found...)
	}
	return dirs
}

// folderRelease is the release in a path such as /usr/lib/postgresql/15/bin, or
// 0. Text order would put 9.6 before 15.
func folderRelease(bin string) int {
	name := filepath.Base(filepath.Dir(bin))
	return leadingInt(name[strings.LastIndexAny(name, "@-")+1:])
}

func inspect(dir string) (Install, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Install{}, err
	}
	for _, name := range []string{"postgres", "initdb", "pg_basebackup", "psql"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return Install{}, fmt.Errorf("%s is missing or cannot be run", name)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return Install{}, fmt.Errorf("postgres --version: %w", err)
	}
	version, major, err := parseVersion(string(out))
	if err != nil {
		return Install{}, err
	}
	if major < minMajor {
		return Install{}, fmt.Errorf("release %s is too old, %d or newer is needed", version, minMajor)
	}
	return Install{BinDir: dir, Version: version, Major: major}, nil
}

// parseVersion reads "postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)".
func parseVersion(out string) (version string, major int, err error) {
	_, rest, ok := strings.Cut(out, "(PostgreSQL)")
	fields := strings.Fields(rest)
	if !ok || len(fields) == 0 || leadingInt(fields[0]) == 0 {
		return "", 0, fmt.Errorf("postgres --version said %q", strings.TrimSpace(out))
	}
	return fields[0], leadingInt(fields[0]), nil
}

func leadingInt(s string) int {
	end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(s)
	}
	n, _ := strconv.Atoi(s[:end]) // no digits is 0, which callers take as unknown
	return n
}
