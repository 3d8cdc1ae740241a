package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	xmodule "golang.org/x/mod/module"
)

// tidy brings go.mod and go.sum of every module up to date, then go.work.sum.
func tidy(ctx context.Context, c *checker) error {
	changes, err := c.tidyAll(ctx)
	if err != nil {
		return err
	}
	for _, change := range changes {
		name := filepath.Join(c.workspace.root, filepath.FromSlash(change.name))
		if len(change.data) == 0 {
			err = os.Remove(name)
		} else {
			err = os.WriteFile(name, change.data, 0o644)
		}
		if err != nil {
			return err
		}
		c.printf("changed: %s", change.name)
	}
	return c.workspaceSums(ctx)
}

// verify fails if tidy would change a go.mod or a go.sum.
func verify(ctx context.Context, c *checker) error {
	changes, err := c.tidyAll(ctx)
	if err != nil {
		return err
	}
	for _, change := range changes {
		c.printf("not up to date: %s", change.name)
	}
	if len(changes) > 0 {
		c.printf("run: make tidy")
		return errProblem
	}
	return nil
}

// A change is a file that tidy writes. Without data it is removed.
type change struct {
	name string // relative to the root, with slashes
	data []byte
}

// tidyAll runs go mod tidy on a copy of each module. A tidied module goes into
// the proxy before the ones that require it have their turn.
func (c *checker) tidyAll(ctx context.Context) ([]change, error) {
	lists := map[string][]string{}
	for i := range c.workspace.modules {
		m := &c.workspace.modules[i]
		files, err := c.files.list(ctx, m.dir)
		if err != nil {
			return nil, err
		}
		lists[m.path] = files
		if err := c.workspace.addImports(m, files); err != nil {
			return nil, err
		}
	}
	if err := c.workspace.sort(); err != nil {
		return nil, err
	}

	var changes []change
	for _, m := range c.workspace.modules {
		files := lists[m.path]
		from := filepath.Join(c.workspace.root, filepath.FromSlash(m.dir))
		to := filepath.Join(c.temp, "tidy", filepath.FromSlash(m.path))
		if err := copyFiles(from, to, files); err != nil {
			return nil, err
		}
		// Sums of our own modules are of an earlier content.
		if err := c.stripOwn(filepath.Join(to, "go.sum")); err != nil {
			return nil, err
		}
		if _, err := c.gocmd.run(ctx, to, "mod", "tidy"); err != nil {
			return nil, fmt.Errorf("%s: %w", m.path, err)
		}
		if err := c.stripOwn(filepath.Join(to, "go.sum")); err != nil {
			return nil, err
		}
		for _, name := range []string{"go.mod", "go.sum"} {
			before, after, err := readBoth(filepath.Join(from, name), filepath.Join(to, name))
			if err != nil {
				return nil, err
			}
			if !bytes.Equal(before, after) {
				changes = append(changes, change{name: path.Join(m.dir, name), data: after})
			}
		}
		version := xmodule.Version{Path: m.path, Version: c.workspace.version}
		if err := c.proxy.add(version, to, files, c.workspace.root); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// stripOwn takes the lines about our own modules out of a go.sum, which goes
// when nothing is left.
func (c *checker) stripOwn(name string) error {
	sum, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	sum = c.workspace.withoutOwn(sum)
	if len(sum) == 0 {
		return os.Remove(name)
	}
	return os.WriteFile(name, sum, 0o644)
}

// workspaceSums lets the go command add to go.work.sum what the workspace
// needs, so that no later build changes a tracked file.
func (c *checker) workspaceSums(ctx context.Context) error {
	args := []string{"list", "-deps", "-test", "-e"}
	for _, m := range c.workspace.modules {
		args = append(args, m.path+"/...")
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = c.workspace.root
	cmd.Env = append(os.Environ(), "GOWORK="+filepath.Join(c.workspace.root, "go.work"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// copyFiles copies files that are relative to from. Those of modules below it
// come along and do no harm: a go.mod fences them there as well.
func copyFiles(from, to string, files []string) error {
	for _, name := range files {
		name = filepath.FromSlash(name)
		data, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // git still lists it, and it is gone
		} else if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// readBoth reads two files; one that is not there is empty.
func readBoth(a, b string) (dataA, dataB []byte, err error) {
	dataA, errA := os.ReadFile(a)
	dataB, errB := os.ReadFile(b)
	for _, err := range []error{errA, errB} {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
	}
	return dataA, dataB, nil
}
