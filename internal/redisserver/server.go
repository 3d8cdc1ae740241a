package redisserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// startLimit bounds a start. A server takes some milliseconds; loading is what may
// take longer.
const startLimit = time.Minute

// Server is one server in a folder of its own. Its calls are made one at a time.
type Server struct {
	// Addr is where it listens, as host and port. It keeps it when it is started again.
	Addr string
	// Dir is its folder: where it saves and finds its snapshot, dump.rdb.
	Dir string
	// Install is what runs.
	Install Install

	settings []string
	run      *run // nil while it is down
}

// run is one process of a server.
type run struct {
	pid    int
	ended  chan struct{} // closed when the process is gone and was waited for
	reason error
}

// Start starts a server with more settings, each as in its command line, such as
// "--maxmemory", "4mb". It keeps nothing on disk unless they say so. Errors quote the end of
// its log, and nothing is left behind then.
func Start(ctx context.Context, inst Install, settings ...string) (*Server, error) {
	dir, err := os.MkdirTemp("", "tidegate-redis-")
	if err != nil {
		return nil, fmt.Errorf("redisserver: %w", err)
	}
	s := &Server{Dir: dir, Install: inst, settings: settings}
	// Another process can be quicker to take a port that was free.
	for range 5 {
		var port int
		if port, err = freePort(); err == nil {
			s.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
			err = s.Start(ctx)
		}
		if err == nil || !strings.Contains(err.Error(), "in use") {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// Start starts a server that is down, where it was, with the snapshot that is there. It
// returns when the server answers.
func (s *Server) Start(ctx context.Context) error {
	if s.run != nil {
		return fmt.Errorf("redisserver: %s runs already", s.Addr)
	}
	host, port, _ := net.SplitHostPort(s.Addr)
	// Settings of the command line are read in order, and the last one counts.
	args := append([]string{
		"--bind", host, "--port", port, "--dir", s.Dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--repl-diskless-sync-delay", "0",
	}, s.settings...)
	log, err := os.OpenFile(s.log(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("redisserver: %w", err)
	}
	defer log.Close()
	started := make(chan error)
	r := &run{ended: make(chan struct{})}
	go r.live(s.Install, args, log, started)
	if err := <-started; err != nil {
		return fmt.Errorf("redisserver: %w", err)
	}
	s.run = r
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := s.await(ctx); err != nil {
		return errors.Join(fmt.Errorf("redisserver: %s: %w\n%s", s.Addr, err, s.logTail()), s.Kill())
	}
	return nil
}

// live is a process from its start to its end. It has a thread of its own: it is
// with the thread that has started it that the process ends (see owned).
func (r *run) live(inst Install, args []string, log *os.File, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := inst.command(context.Background(), args...)
	cmd.SysProcAttr, cmd.Stdout, cmd.Stderr = owned(), log, log
	err := cmd.Start()
	if err == nil {
		r.pid = cmd.Process.Pid
	}
	started <- err
	if err == nil {
		r.reason = cmd.Wait()
		close(r.ended)
	}
}

// await returns when the server has answered a PING: not before it has loaded its data.
func (s *Server) await(ctx context.Context) error {
	for {
		if s.ping(ctx) == nil {
			return nil
		}
		select {
		case <-s.run.ended:
			return fmt.Errorf("the server has ended: %w", s.run.reason)
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w", ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// ping asks the server whether it is ready, and whether it is ours: another process can
// have been quicker to take the port.
func (s *Server) ping(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if _, err := conn.Write([]byte("PING\r\nINFO server\r\nQUIT\r\n")); err != nil {
		return err
	}
	said, err := io.ReadAll(conn)
	if err == nil && !bytes.HasPrefix(said, []byte("+PONG\r\n")) {
		err = fmt.Errorf("it says %q", said)
	}
	if err == nil && !bytes.Contains(said, fmt.Appendf(nil, "\nprocess_id:%d\r", s.run.pid)) {
		err = errors.New("another server is there")
	}
	return err
}

// Kill ends the process at once, as a crash does, and returns when it is gone. One that
// is down stays down.
func (s *Server) Kill() error {
	if s.run == nil {
		return nil
	}
	if err := kill(s.run.pid); err != nil {
		return fmt.Errorf("redisserver: kill %s: %w", s.Addr, err)
	}
	<-s.run.ended
	s.run = nil
	return nil
}

// Freeze makes the server hang, with all its connections open, until Thaw or Kill.
func (s *Server) Freeze() error { return s.signal(freeze) }

// Thaw lets a frozen server go on.
func (s *Server) Thaw() error { return s.signal(thaw) }

func (s *Server) signal(send func(pid int) error) error {
	if s.run == nil {
		return fmt.Errorf("redisserver: %s is down", s.Addr)
	}
	if err := send(s.run.pid); err != nil {
		return fmt.Errorf("redisserver: signal %s: %w", s.Addr, err)
	}
	return nil
}

// Stop ends the server and removes its folder.
func (s *Server) Stop() error { return errors.Join(s.Kill(), os.RemoveAll(s.Dir)) }

func (s *Server) log() string { return filepath.Join(s.Dir, "log") }

// logTail is the end of the log, for errors.
func (s *Server) logTail() string {
	text, _ := os.ReadFile(s.log()) // none is none
	return string(text[max(0, len(text)-2000):])
}
