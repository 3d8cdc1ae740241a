package redisserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// EnvBin names the environment variable with the server's program, for machines where
// it is not in PATH.
const EnvBin = "TIDEGATE_REDIS_BIN"

// minMajor is the oldest release that redisgate supports.
const minMajor = 7

// ErrNotFound means that no usable server program was found.
var ErrNotFound = errors.New("redisserver: no server of Redis or Valkey found")

const notFoundHint = "install one (Debian and Ubuntu: apt-get install redis-tools, in which it is; macOS: brew install valkey) or set " +
	EnvBin + " to its program"

// Install is the server's program on this machine. The zero value means none.
type Install struct {
	// Program is its path.
	Program string
	// Product is "Redis" or "Valkey".
	Product string
	// Version is as the server says it, such as "7.0.15".
	Version string
}

// String is the product, the version and the program, for logs.
func (i Install) String() string { return fmt.Sprintf("%s %s (%s)", i.Product, i.Version, i.Program) }

// Find returns the program in TIDEGATE_REDIS_BIN, else the first usable one in PATH. A
// program that was named but cannot be used is an error, never a reason to look further.
// Errors wrap [ErrNotFound] and say what to do next.
func Find() (Install, error) {
	if named := os.Getenv(EnvBin); named != "" {
		inst, err := inspect(named)
		if err != nil {
			return Install{}, fmt.Errorf("%w: %s is %s: %w; %s", ErrNotFound, EnvBin, named, err, notFoundHint)
		}
		return inst, nil
	}
	// The program that checks a snapshot is the server under another name, and in some
	// distributions in a package that brings no service.
	for _, name := range []string{"redis-server", "valkey-server", "redis-check-rdb", "valkey-check-rdb"} {
		if inst, err := inspect(name); err == nil {
			return inst, nil
		}
	}
	return Install{}, fmt.Errorf("%w in PATH; %s", ErrNotFound, notFoundHint)
}

// command makes the program be the server, whatever its file is called. The context's
// end kills it.
func (i Install) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, i.Program, args...)
	cmd.Args[0] = "redis-server"
	if strings.Contains(filepath.Base(i.Program), "valkey") {
		cmd.Args[0] = "valkey-server"
	}
	return cmd
}

func inspect(name string) (Install, error) {
	program, err := exec.LookPath(name)
	if err != nil {
		return Install{}, err
	}
	if program, err = filepath.Abs(program); err != nil {
		return Install{}, err
	}
	inst := Install{Program: program}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := inst.command(ctx, "--version").Output()
	if err != nil {
		return Install{}, fmt.Errorf("%s --version: %w", name, err)
	}
	product, version, major, err := parseVersion(string(out))
	if err != nil {
		return Install{}, err
	}
	if major < minMajor {
		return Install{}, fmt.Errorf("release %s is too old, %d or newer is needed", version, minMajor)
	}
	inst.Product, inst.Version = product, version
	return inst, nil
}

// parseVersion reads "Redis server v=7.0.15 sha=00000000:0 malloc=...".
func parseVersion(out string) (product, version string, major int, err error) {
	fields := strings.Fields(out)
	if len(fields) >= 3 && fields[1] == "server" {
		if version, ok := strings.CutPrefix(fields[2], "v="); ok {
			first, _, _ := strings.Cut(version, ".")
			if major, err := strconv.Atoi(first); err == nil {
				return fields[0], version, major, nil
			}
		}
	}
	return "", "", 0, fmt.Errorf("--version said %q", strings.TrimSpace(out))
}
