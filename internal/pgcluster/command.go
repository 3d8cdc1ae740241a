package pgcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// command prepares one of PostgreSQL's programs. It works in the cluster's
// folder, by which a sweep recognises it, and as the servers' user.
func (c *Cluster) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.Install.program(program), args...)
	cmd.Dir = c.Dir
	cmd.Env = environment(c.Dir)
	cmd.SysProcAttr = c.account.attr()
	return cmd
}

// environment is this process's without what changes PostgreSQL's behaviour:
// PGHOST, PGOPTIONS and the like, the user's own files and the language.
func environment(home string) []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "PG") && !strings.HasPrefix(name, "LC_") && !strings.HasPrefix(name, "LANG") && name != "HOME" {
			env = append(env, kv)
		}
	}
	return append(env, "LC_ALL=C", "HOME="+home)
}

// run runs a program to its end and returns what it printed. When the context
// ends first, the program and all it has started are ended.
func (c *Cluster) run(ctx context.Context, stdin, program string, args ...string) (string, error) {
	var out, problems bytes.Buffer
	cmd := c.command(ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &problems
	// Asked to end, initdb's servers give back their shared memory.
	cmd.Cancel = func() error { return signalGroup(cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Start()
	if err == nil {
		if err = cmd.Wait(); errors.Is(err, exec.ErrWaitDelay) {
			_ = signalGroup(cmd.Process.Pid, syscall.SIGKILL) // whoever is left
		}
	} else if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w (can user %s enter that folder and %s?)", err, c.account, c.Dir)
	}
	if ctx.Err() != nil && err != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("pgcluster: %s: %w%s", program, err, indented(problems.String()))
	}
	return out.String(), nil
}

// tailBytes is how much of a log goes into an error.
const tailBytes = 2000

// logTail is the end of what a server has written to its log since an offset.
func logTail(path string, since int64) string {
	text, err := os.ReadFile(path)
	if err != nil || int64(len(text)) < since {
		return ""
	}
	text = text[since:]
	if len(text) > tailBytes {
		text = text[len(text)-tailBytes:]
	}
	return string(text)
}

// indented puts a program's own words below an error's line.
func indented(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	return "\n\t" + strings.ReplaceAll(text, "\n", "\n\t")
}

// writeFile puts a file into place as a whole, owned by the servers' user, so
// that a server never reads half of it.
func (c *Cluster) writeFile(path, text string) error {
	next := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".next")
	err := os.WriteFile(next, []byte(text), 0o600)
	if err == nil {
		err = c.account.give(next)
	}
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return fmt.Errorf("pgcluster: %w", err)
	}
	return nil
}

// poll asks until the answer is yes or an error, or the context ends.
func poll(ctx context.Context, every time.Duration, done func() (bool, error)) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

var errSlow = errors.New("took too long")

// bound limits a step by the caller's context, by a time and by the life of the
// cluster.
func (c *Cluster) bound(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stopLife := context.AfterFunc(c.life, func() { cancel(ErrStopped) })
	ctx, cancelTime := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: %v", errSlow, limit))
	return ctx, func() { stopLife(); cancelTime(); cancel(nil) }
}
