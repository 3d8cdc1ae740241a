package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// toolDir is the module whose command users install.
const toolDir = "cmd/tidegate"

// build puts all published modules into the proxy and uses each as a stranger.
func build(ctx context.Context, c *checker) error {
	left, err := c.files.leftOut(ctx, ".")
	if err != nil {
		return err
	}
	for _, name := range left {
		c.printf("left out, git does not track it: %s", name)
	}
	published := c.workspace.published()
	for _, m := range published {
		if err := c.publish(ctx, m); err != nil {
			return err
		}
	}
	if c.files.untracked {
		c.printf("taking files that git does not track, too: a user would not get them")
	}
	for _, m := range published {
		if err := c.buildAlone(ctx, m); err != nil {
			return err
		}
	}
	return c.install(ctx)
}

// buildAlone builds all packages of m in a new module that requires only it.
func (c *checker) buildAlone(ctx context.Context, m module) error {
	dir := filepath.Join(c.temp, "consumer", filepath.FromSlash(m.dir))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"mod", "init", "example.com/consumer"},
		{"get", m.path + "@" + c.workspace.version},
		{"build", "-mod=mod", m.path + "/..."},
	} {
		if _, err := c.gocmd.run(ctx, dir, args...); err != nil {
			return fmt.Errorf("a user of %s: %w", m.path, err)
		}
	}
	list, err := c.gocmd.run(ctx, dir, "list", "-mod=mod", "-m", "all")
	if err != nil {
		return err
	}
	modules := strings.Split(strings.TrimSpace(list), "\n")
	others := len(modules) - 2 // the consumer and m
	if m.dir == "." && others != 0 {
		return fmt.Errorf("%s brings other modules along:\n%s", m.path, list)
	}
	c.printf("built alone: %s@%s (other modules in its graph: %d)", m.path, c.workspace.version, others)
	return nil
}

// install installs the command line tool and asks it for help.
func (c *checker) install(ctx context.Context) error {
	bin := filepath.Join(c.temp, "bin")
	for _, m := range c.workspace.published() {
		if m.dir != toolDir {
			continue
		}
		target := m.path + "@" + c.workspace.version
		if _, err := c.gocmd.runEnv(ctx, c.temp, []string{"GOBIN=" + bin}, "install", target); err != nil {
			return err
		}
		help := exec.CommandContext(ctx, filepath.Join(bin, path.Base(m.path)), "--help")
		if out, err := help.CombinedOutput(); err != nil {
			return fmt.Errorf("%s --help: %w\n%s", path.Base(m.path), err, out)
		}
		c.printf("installed and ran: %s", target)
	}
	return nil
}
