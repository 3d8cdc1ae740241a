package main

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A goCommand runs go as on a machine that knows nothing of this repository:
// no workspace, a module cache of its own, our modules from the throwaway proxy.
//
// What others publish comes from the real module cache where that has it (its
// download folder has the layout of a proxy), else from where GOPROXY says, and
// is checked against the checksum database as usual.
type goCommand struct {
	proxyDir string
	env      []string
}

// newGoCommand keeps the proxy and the module cache in temp.
func newGoCommand(ctx context.Context, temp string) (*goCommand, error) {
	g := &goCommand{proxyDir: filepath.Join(temp, "proxy")}
	settings, err := goEnv(ctx, "GOMODCACHE", "GOPROXY", "GONOSUMDB", "GOSUMDB", "GOCACHE", "GOTOOLCHAIN")
	if err != nil {
		return nil, err
	}
	downloads := filepath.Join(settings["GOMODCACHE"], "cache", "download")
	cache := filepath.Join(temp, "modcache")
	sums := filepath.Join(downloads, "sumdb")
	for _, dir := range []string{g.proxyDir, filepath.Join(cache, "cache", "download"), sums} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	// What the checksum database once said is kept, and does not change.
	if err := os.Symlink(sums, filepath.Join(cache, "cache", "download", "sumdb")); err != nil {
		return nil, err
	}
	noSums := "github.com/tidegatedb/tidegate"
	if settings["GONOSUMDB"] != "" {
		noSums += "," + settings["GONOSUMDB"]
	}
	g.env = append(os.Environ(),
		"GOENV=off", // what counts of it is named here
		"GOWORK=off",
		"GO111MODULE=on",
		"GOFLAGS=-modcacherw -trimpath", // -trimpath: the build cache is of use though the paths are new
		"GOCACHE="+settings["GOCACHE"],
		"GOTOOLCHAIN="+settings["GOTOOLCHAIN"],
		"GOMODCACHE="+cache,
		"GOPROXY="+fileURL(g.proxyDir)+","+fileURL(downloads)+","+settings["GOPROXY"],
		// Empty: anything else, even "none", makes the go command look for our
		// modules without a proxy first and stop at the shorter path it has.
		"GOPRIVATE=",
		"GONOPROXY=",
		"GOSUMDB="+settings["GOSUMDB"],
		"GONOSUMDB="+noSums,
	)
	return g, nil
}

// goEnv asks the go command for its settings.
func goEnv(ctx context.Context, names ...string) (map[string]string, error) {
	out, err := exec.CommandContext(ctx, "go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	values := map[string]string{}
	for i, line := range strings.Split(string(out), "\n") {
		if i < len(names) {
			values[names[i]] = strings.TrimSpace(line)
		}
	}
	return values, nil
}

func fileURL(dir string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String()
}

// run runs go in dir and returns what it printed on its standard output.
func (g *goCommand) run(ctx context.Context, dir string, args ...string) (string, error) {
	return g.runEnv(ctx, dir, nil, args...)
}

func (g *goCommand) runEnv(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(append(g.env[:len(g.env):len(g.env)], "PWD="+dir), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return string(out), nil
}
