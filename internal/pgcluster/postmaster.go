package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// postmaster is one run of a server, from its start to its end.
type postmaster struct {
	cmd *exec.Cmd
	pid int
	// logStart is where its lines begin in the server's log.
	logStart int64
	// suspended says that its processes are stopped, under the server's op.
	suspended bool
	// done is closed when it has ended and has been reaped.
	done chan struct{}
}

// errPortTaken means that another process was quicker to listen on the port.
var errPortTaken = errors.New("the port is taken")

// launch starts the server's process. It runs on whatever happens to the
// caller's context: contexts limit steps, Stop ends servers.
func (s *Server) launch(args ...string) (*postmaster, error) {
	log, err := os.OpenFile(s.LogPath, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("pgcluster: %w", err)
	}
	defer log.Close() // the server has its own copy
	info, err := log.Stat()
	if err != nil {
		return nil, fmt.Errorf("pgcluster: %w", err)
	}
	cmd := s.cluster.command(context.Background(), "postgres", append([]string{"-D", s.DataDir}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("pgcluster: %s: %w", s.Name, err)
	}
	run := &postmaster{cmd: cmd, pid: cmd.Process.Pid, logStart: info.Size(), done: make(chan struct{})}
	s.mu.Lock()
	s.current = run
	s.mu.Unlock()
	go func() {
		// How it ended is in its log; a killed server is no error here.
		_ = cmd.Wait()
		s.ended(cmd.ProcessState)
		close(run.done)
	}()
	return run, nil
}

// waitReady returns when the server takes connections.
func (run *postmaster) waitReady(ctx context.Context, s *Server) error {
	return poll(ctx, 5*time.Millisecond, func() (bool, error) {
		select {
		case <-run.done:
			if strings.Contains(logTail(s.LogPath, run.logStart), "could not create any TCP/IP sockets") {
				return false, errPortTaken
			}
			return false, errors.New("the server ended while starting")
		default:
		}
		// The file of an earlier run has another id. While it is being written
		// it cannot be read, which is the same as not yet there.
		pf, err := readPIDFile(s.DataDir)
		return err == nil && pf.pid == run.pid && pf.ready, nil
	})
}

// end signals the server and waits until it has ended and its children with it.
func (run *postmaster) end(sig syscall.Signal, limit time.Duration, life <-chan struct{}) error {
	// A process that has already ended is what is wanted.
	if err := run.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-run.done:
		return nil
	case <-timer.C:
		return fmt.Errorf("%w: %v", errSlow, limit)
	case <-life:
		return ErrStopped
	}
}

// suspend freezes the server and all its children. A frozen server starts no further
// ones, so that the list is complete.
func (run *postmaster) suspend() error {
	ctx, cancel := context.WithTimeout(context.Background(), killLimit)
	defer cancel()
	run.suspended = true
	if err := freezeAll(ctx, run.pid); err != nil {
		return err
	}
	children, err := childrenOf(run.pid)
	if err != nil {
		return err
	}
	return freezeAll(ctx, children...)
}

// freezeAll returns when none of the processes runs any more.
func freezeAll(ctx context.Context, pids ...int) error {
	for _, pid := range pids {
		if err := freeze(pid); err != nil && !dead(pid) {
			return err
		}
	}
	for _, pid := range pids {
		if err := poll(ctx, time.Millisecond, func() (bool, error) { return frozen(pid), nil }); err != nil {
			return fmt.Errorf("process %d: %w", pid, err)
		}
	}
	return nil
}

// resume takes suspend back, if there is anything to take back.
func (run *postmaster) resume() error {
	if !run.suspended {
		return nil
	}
	children, err := childrenOf(run.pid) // before it can start others
	for _, pid := range append(children, run.pid) {
		if e := thaw(pid); e != nil && !dead(pid) {
			err = errors.Join(err, e)
		}
	}
	run.suspended = err != nil
	return err
}

// kill ends the server and all its children at once, as if the machine had lost
// power but kept its disk cache. sampled is called when all children are dead
// and still count as the server's.
func (run *postmaster) kill(sampled func()) error {
	ctx, cancel := context.WithTimeout(context.Background(), killLimit)
	defer cancel()
	// A frozen server starts no further children and reaps none, so that the
	// list is complete and no id in it can have gone to another process.
	if err := freeze(run.pid); err != nil && !dead(run.pid) {
		return err
	}
	await := func(what func() bool) error {
		return poll(ctx, time.Millisecond, func() (bool, error) { return what(), nil })
	}
	if err := await(func() bool { return frozen(run.pid) }); err != nil {
		return err
	}
	children, err := childrenOf(run.pid)
	if err != nil && !dead(run.pid) {
		return err
	}
	for _, child := range children {
		if err := signal(child, syscall.SIGKILL); err != nil && !dead(child) {
			return err
		}
	}
	for _, child := range children {
		if err := await(func() bool { return dead(child) }); err != nil {
			return fmt.Errorf("process %d: %w", child, err)
		}
	}
	sampled()
	return run.end(syscall.SIGKILL, killLimit, nil)
}
