package pgcluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"time"
)

// CPU is the user and system time that the server has used so far, all its
// processes and all its runs together. It never goes back. Its resolution is
// the kernel's, 10 ms for each process. It needs Linux; elsewhere the error
// wraps [ErrUnsupported].
func (s *Server) CPU() (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if runtime.GOOS != "linux" {
		return 0, fmt.Errorf("pgcluster: CPU of %s: %w: it is read from Linux's /proc", s.Name, ErrUnsupported)
	}
	if s.current == nil {
		return s.spent, nil
	}
	// A process that is gone has ended a moment ago, and its account is about to
	// be closed; what is known of it holds until then.
	if err := s.measure(s.current); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
		return 0, fmt.Errorf("pgcluster: CPU of %s: %w", s.Name, err)
	}
	return s.spent + s.high, nil
}

// measure raises the high mark of the current run, under mu. A child between its
// end and its parent's note of it can be missing for a moment, which must not
// show as time going back.
func (s *Server) measure(run *postmaster) error {
	now, err := treeCPU(run.pid)
	if err != nil {
		return err
	}
	s.high = max(s.high, now)
	return nil
}

// sample notes the CPU time of a run that is about to be killed: its children's
// goes to the system's first process, not to it.
func (s *Server) sample(run *postmaster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == run {
		_ = s.measure(run) // without it, the time known before counts
	}
}

// ended closes the account of a run. The kernel's own sum is the best there is
// when the server has reaped its children.
func (s *Server) ended(state *os.ProcessState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state != nil {
		s.high = max(s.high, state.UserTime()+state.SystemTime())
	}
	s.spent += s.high
	s.high = 0
	s.current = nil
}
