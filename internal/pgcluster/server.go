package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tidegatedb/tidegate/internal/netfault"
)

// How long a step may take before it is an error, whatever the caller's context.
const (
	startLimit = 2 * time.Minute
	stopLimit  = 30 * time.Second
	killLimit  = 10 * time.Second
)

// Server is one PostgreSQL server of a cluster. It is safe for concurrent use;
// operations that start or end it wait for one another. The exported fields do
// not change after Start of the cluster.
type Server struct {
	// Name is "primary" or "replica1" and so on, by the role it was born with.
	// It is also the server's cluster_name and a replica's application_name.
	Name string
	// Port is the TCP port on 127.0.0.1, kept over restarts.
	Port int
	// DataDir is the data folder.
	DataDir string
	// LogPath is the file with the server's messages, of all its runs.
	LogPath string

	cluster *Cluster

	op       sync.Mutex        // one operation at a time
	settings map[string]string // under op

	mu      sync.Mutex
	link    *netfault.Proxy // nil: none yet, or no Config.Links
	current *postmaster     // nil: not running
	spent   time.Duration   // CPU of earlier runs
	high    time.Duration   // highest known CPU of the current run
}

// StopMode is how a server is asked to stop.
type StopMode int

const (
	// Fast ends sessions, writes a checkpoint and sends the last of it to the
	// standbys.
	Fast StopMode = iota
	// Immediate ends at once; the next start is a crash recovery.
	Immediate
)

// DSN is a connection string in keyword/value form. An empty user or database
// means postgres.
func (s *Server) DSN(user, database string) string {
	quote := func(v string) string {
		if v == "" {
			v = "postgres"
		}
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(v) + "'"
	}
	return fmt.Sprintf("host=127.0.0.1 port=%d user=%s dbname=%s sslmode=disable", s.Port, quote(user), quote(database))
}

// Alive tells whether the server's process runs. It may still be starting or
// recovering.
func (s *Server) Alive() bool { return s.running() != nil }

func (s *Server) running() *postmaster {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// Start starts a server that does not run and returns when it takes
// connections. When it does not within the context's time, or two minutes,
// it is ended again and the error has the end of its log.
func (s *Server) Start(ctx context.Context) error {
	s.op.Lock()
	defer s.op.Unlock()
	return s.start(ctx)
}

// start is Start under op, with arguments for the server.
func (s *Server) start(ctx context.Context, args ...string) error {
	if s.cluster.life.Err() != nil {
		return fmt.Errorf("pgcluster: start %s: %w", s.Name, ErrStopped)
	}
	if s.Alive() {
		return fmt.Errorf("pgcluster: start %s: it runs already", s.Name)
	}
	ctx, cancel := s.cluster.bound(ctx, startLimit)
	defer cancel()
	// Its last run has ended and been reaped here, so the files it may have left
	// are stale even if their process id has gone to another process.
	s.clearLeftovers()
	run, err := s.launch(args...)
	if err != nil {
		return err
	}
	if err := run.waitReady(ctx, s); err != nil {
		err = errors.Join(err, s.kill())
		return fmt.Errorf("pgcluster: start %s: %w%s", s.Name, err, indented(logTail(s.LogPath, run.logStart)))
	}
	s.cluster.log("%s runs on port %d", s.Name, s.Port)
	return nil
}

// Stop stops the server and returns when it has ended. A server that does not
// run is no error. A fast stop that has not ended after half a minute is one,
// and goes on.
func (s *Server) Stop(mode StopMode) error {
	s.op.Lock()
	defer s.op.Unlock()
	run := s.running()
	if run == nil {
		return nil
	}
	sig := syscall.SIGINT
	if mode == Immediate {
		sig = syscall.SIGQUIT
	}
	if err := run.end(sig, stopLimit, s.cluster.life.Done()); err != nil {
		return fmt.Errorf("pgcluster: stop %s: %w%s", s.Name, err, indented(logTail(s.LogPath, run.logStart)))
	}
	return nil
}

// Restart is a fast Stop and a Start.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Stop(Fast); err != nil {
		return err
	}
	return s.Start(ctx)
}

// Set changes settings of this server, whether it runs or not. They count from
// its next start, those that allow it from Reload on; ALTER SYSTEM goes over
// them. An empty value is an empty string: set primary_conninfo so to cut a
// replica off. Port and addresses are refused.
func (s *Server) Set(settings map[string]string) error {
	if err := checkSettings(settings); err != nil {
		return fmt.Errorf("pgcluster: %s: %w", s.Name, err)
	}
	for _, name := range reserved {
		if _, ok := settings[name]; ok && name != upstreamSetting {
			return fmt.Errorf("pgcluster: %s: %s is set by the package", s.Name, name)
		}
	}
	s.op.Lock()
	defer s.op.Unlock()
	return s.set(settings)
}

// set is Set under op.
func (s *Server) set(settings map[string]string) error {
	maps.Copy(s.settings, settings)
	return s.cluster.writeFile(filepath.Join(s.DataDir, settingsFile), renderSettings(s.settings))
}

// Reload makes a running server read its settings again. It returns before the
// server has.
func (s *Server) Reload() error {
	run := s.running()
	if run == nil {
		return fmt.Errorf("pgcluster: reload %s: %w", s.Name, errDown)
	}
	if err := run.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		return fmt.Errorf("pgcluster: reload %s: %w", s.Name, err)
	}
	return nil
}

var errDown = errors.New("the server does not run")

// clearLeftovers removes what a killed server leaves and what would keep it from
// starting again.
func (s *Server) clearLeftovers() {
	pf, err := readPIDFile(s.DataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return // it ended in order
	}
	pf.freeSharedMemory(s.cluster.account)
	socket := filepath.Join(s.cluster.Dir, fmt.Sprintf(".s.PGSQL.%d", s.Port))
	for _, path := range []string{filepath.Join(s.DataDir, pidFileName), socket, socket + ".lock"} {
		// What cannot be removed, the server complains about when it starts.
		_ = os.Remove(path)
	}
}
