package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

const (
	// envChromium names the environment variable with the browser to use.
	envChromium = "TIDEGATE_CHROMIUM"
	// envRequire names the one that, set to 1, makes a test fail that finds no
	// browser, instead of being skipped: a green run cannot mean that nothing ran.
	envRequire = "TIDEGATE_REQUIRE_CHROMIUM"
)

// programs are where browsers may be, the best first. The same ones as in
// scripts/need-chromium.sh.
var programs = []string{
	"chromium", "chromium-browser", "google-chrome-stable", "google-chrome",
	"/Applications/Chromium.app/Contents/MacOS/Chromium",
	"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
}

var versionOf = regexp.MustCompile(`\d+(\.\d+){3}`)

// chromium is a browser on this machine.
type chromium struct{ program, version string }

// inspect asks a program for its version. One that does not run has none: Ubuntu's
// chromium-browser only says that a snap must be installed.
func inspect(ctx context.Context, name string) (chromium, error) {
	program, err := exec.LookPath(name)
	if err != nil {
		return chromium{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return chromium{}, fmt.Errorf("%s --version: %w", program, err)
	}
	version := versionOf.FindString(string(out))
	if version == "" {
		return chromium{}, fmt.Errorf("%s --version says %q", program, out)
	}
	return chromium{program, version}, nil
}

// find returns the named browser, or without a name the first of the usual ones. A
// name that cannot be used is an error, never a reason to look further.
func find(ctx context.Context, named string) (chromium, error) {
	const next = "run scripts/need-chromium.sh or set " + envChromium + " to a Chromium or Chrome"
	if named != "" {
		c, err := inspect(ctx, named)
		if err != nil {
			return chromium{}, fmt.Errorf("%s=%s is no browser that can be used: %w; %s", envChromium, named, err, next)
		}
		return c, nil
	}
	for _, name := range programs {
		if c, err := inspect(ctx, name); err == nil {
			return c, nil
		}
	}
	return chromium{}, errors.New("no Chromium was found; " + next)
}

// chosen is the browser of this run.
var chosen = sync.OnceValues(func() (chromium, error) { return find(context.Background(), os.Getenv(envChromium)) })

// needChromium skips a test when there is no browser, or fails it where one is
// required.
func needChromium(t *testing.T) {
	t.Helper()
	c, err := chosen()
	switch {
	case err == nil:
		t.Logf("runs Chromium %s (%s)", c.version, c.program)
	case os.Getenv(envRequire) == "1":
		t.Fatalf("%s=1, but %v", envRequire, err)
	default:
		t.Skipf("NOT TESTED, NO BROWSER: %v", err)
	}
}

// note appends the browser to the log of the engines that ran, if somebody asked for
// one.
func (c chromium) note() error {
	name := os.Getenv(pgcluster.EnvEnginesLog)
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintf(f, "chromium %s\n", c.version)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", pgcluster.EnvEnginesLog, err)
	}
	return nil
}

// A browser that was named is used or is an error.
func TestNamedBrowserIsNotReplaced(t *testing.T) {
	t.Parallel()
	for _, named := range []string{filepath.Join(t.TempDir(), "chromium"), os.Args[0] + "-missing"} {
		if c, err := find(t.Context(), named); err == nil {
			t.Errorf("%s: found %+v", named, c)
		}
	}
}
