package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"
)

// Kill ends the server and all its processes by SIGKILL and returns when they
// are gone. Unlike a crash of the machine it loses nothing that was written to
// the operating system. What the killed server leaves is removed, so that Start
// works. A server that does not run is no error.
func (s *Server) Kill() error {
	s.op.Lock()
	defer s.op.Unlock()
	return s.kill()
}

// kill is Kill under op.
func (s *Server) kill() error {
	if run := s.running(); run != nil {
		if err := run.kill(func() { s.sample(run) }); err != nil {
			return fmt.Errorf("pgcluster: kill %s: %w", s.Name, err)
		}
	}
	s.clearLeftovers()
	return nil
}

// KillBackend ends one of the server's processes by SIGKILL, as pg_backend_pid()
// or pg_stat_activity names it. The server answers by ending all sessions and
// recovering as after a crash. KillBackend returns when it has taken note, so
// that connections from then on meet the recovery or what comes after it; see
// WaitReady. An id that is not of this server's process is an error.
func (s *Server) KillBackend(pid int) error {
	s.op.Lock()
	defer s.op.Unlock()
	run := s.running()
	if run == nil {
		return fmt.Errorf("pgcluster: kill backend %d of %s: %w", pid, s.Name, errDown)
	}
	children, err := childrenOf(run.pid)
	if err != nil {
		return fmt.Errorf("pgcluster: kill backend %d of %s: %w", pid, s.Name, err)
	}
	if !slices.Contains(children, pid) {
		return fmt.Errorf("pgcluster: kill backend %d of %s: it is no process of this server", pid, s.Name)
	}
	if err := signal(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("pgcluster: kill backend %d of %s: %w", pid, s.Name, err)
	}
	ctx, cancel := s.cluster.bound(context.Background(), killLimit)
	defer cancel()
	if err := poll(ctx, time.Millisecond, func() (bool, error) { return reaped(pid), nil }); err != nil {
		return fmt.Errorf("pgcluster: kill backend %d of %s: %w", pid, s.Name, err)
	}
	return nil
}

// Suspend stops all processes of the server by SIGSTOP and returns when none of them
// runs any more: its connections stay open, the kernel takes new ones, and nothing
// answers until [Server.Resume]. The server can be killed meanwhile; an orderly Stop
// waits for it to go on.
func (s *Server) Suspend() error {
	s.op.Lock()
	defer s.op.Unlock()
	run := s.running()
	if run == nil {
		return fmt.Errorf("pgcluster: suspend %s: %w", s.Name, errDown)
	}
	if err := run.suspend(); err != nil {
		return fmt.Errorf("pgcluster: suspend %s: %w", s.Name, errors.Join(err, run.resume()))
	}
	return nil
}

// Resume lets a server go on that was suspended. One that runs is no error.
func (s *Server) Resume() error {
	s.op.Lock()
	defer s.op.Unlock()
	run := s.running()
	if run == nil {
		return fmt.Errorf("pgcluster: resume %s: %w", s.Name, errDown)
	}
	if err := run.resume(); err != nil {
		return fmt.Errorf("pgcluster: resume %s: %w", s.Name, err)
	}
	return nil
}

// WaitReady returns when the server takes connections and answers.
func (s *Server) WaitReady(ctx context.Context) error {
	ctx, cancel := s.cluster.bound(ctx, startLimit)
	defer cancel()
	var last error
	err := poll(ctx, 20*time.Millisecond, func() (bool, error) {
		if !s.Alive() {
			return false, errDown
		}
		_, last = s.SQL(ctx, "", "SELECT 1")
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("pgcluster: wait for %s: %w", s.Name, errors.Join(err, last))
	}
	return nil
}
