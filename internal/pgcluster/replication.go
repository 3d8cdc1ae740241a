package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// settingsFile holds the package's settings in a data folder. It is apart from
// postgresql.auto.conf, so that it can be written while a server is down and
// ALTER SYSTEM still works.
const settingsFile = "tidegate.conf"

// alteredFile holds in a data folder what ALTER SYSTEM has set.
const alteredFile = "postgresql.auto.conf"

// standbySignal is the file that makes a server start as a standby.
const standbySignal = "standby.signal"

// upstreamSetting says where a standby replicates from.
const upstreamSetting = "primary_conninfo"

// initialize makes the primary's data folder and starts it.
func (s *Server) initialize(ctx context.Context) error {
	args := []string{"-D", s.DataDir, "-U", "postgres", "-A", "trust", "-N", "--locale=C", "-E", "UTF8"}
	if _, err := s.cluster.run(ctx, "", "initdb", args...); err != nil {
		return err
	}
	conf, err := os.OpenFile(filepath.Join(s.DataDir, "postgresql.conf"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("pgcluster: %w", err)
	}
	_, err = fmt.Fprintf(conf, "include '%s'\n", settingsFile)
	if err := errors.Join(err, conf.Close()); err != nil {
		return fmt.Errorf("pgcluster: %w", err)
	}
	return s.startOnFreePort(ctx)
}

// clone makes a standby of a running server and starts it for the first time.
func (s *Server) clone(ctx context.Context, upstream *Server) error {
	if err := s.copyFrom(ctx, upstream); err != nil {
		return err
	}
	if err := s.markStandby(); err != nil {
		return err
	}
	s.op.Lock()
	err := s.follow(upstream)
	s.op.Unlock()
	if err != nil {
		return err
	}
	return s.startOnFreePort(ctx)
}

// copyFrom makes the data folder a copy of a running server's.
func (s *Server) copyFrom(ctx context.Context, upstream *Server) error {
	args := []string{"-d", upstream.conninfo(s.Name), "-D", s.DataDir, "-X", "stream", "-c", "fast", "--no-sync"}
	_, err := s.cluster.run(ctx, "", "pg_basebackup", args...)
	return err
}

// markStandby makes the server start as a standby. Not by pg_basebackup -R: that
// writes primary_conninfo where it goes over the settings file, and Set could not
// change it.
func (s *Server) markStandby() error {
	return s.cluster.writeFile(filepath.Join(s.DataDir, standbySignal), "")
}

// startOnFreePort starts a server for the first time. Only then can its port be
// chosen; later others know it.
func (s *Server) startOnFreePort(ctx context.Context) error {
	s.op.Lock()
	defer s.op.Unlock()
	for attempt := 1; ; attempt++ {
		port, err := freePort()
		if err != nil {
			return err
		}
		s.Port = port
		if err := s.set(s.cluster.listenSettings(s)); err != nil {
			return err
		}
		err = s.start(ctx)
		if err == nil || !errors.Is(err, errPortTaken) || attempt == 5 {
			return err
		}
	}
}

// conninfo is how a standby of that name reaches this server.
func (s *Server) conninfo(standby string) string { return conninfo(s.Port, standby) }

func conninfo(port int, standby string) string {
	return fmt.Sprintf("host=127.0.0.1 port=%d user=postgres application_name=%s sslmode=disable", port, standby)
}

// Promote makes a standby a primary of its own and returns when it takes writes.
// The old primary goes on if it runs, and other standbys stay with it; see
// Follow.
func (s *Server) Promote(ctx context.Context) error {
	ctx, cancel := s.cluster.bound(ctx, startLimit)
	defer cancel()
	// The server's own wait is the longer one: the context's end ends both.
	out, err := s.SQL(ctx, "", fmt.Sprintf("SELECT pg_promote(true, %d)", 2*startLimit/time.Second))
	if err == nil && out != "t" {
		err = fmt.Errorf("pgcluster: the server answered %q", out)
	}
	if err != nil {
		return fmt.Errorf("pgcluster: promote %s: %w", s.Name, err)
	}
	s.cluster.log("%s is promoted", s.Name)
	return nil
}

// Follow points a standby at another server of the cluster, from now on if it
// runs, else from its next start. It does not wait until it streams.
//
// The upstream may be on a newer timeline: the standby changes over to it. One
// that has more of the old timeline than the new one took over is past the fork.
// It goes on answering reads from what it has, asks again and again, and gets
// nothing; only [Server.Rewind] or [Server.Rebuild] bring it back. Restarted, it
// either refuses to start or goes on replaying what it has of the old timeline.
func (s *Server) Follow(upstream *Server) error {
	s.op.Lock()
	err := s.follow(upstream)
	s.op.Unlock()
	if err != nil {
		return fmt.Errorf("pgcluster: %s follows %s: %w", s.Name, upstream.Name, err)
	}
	if !s.Alive() {
		return nil
	}
	return s.Reload()
}

// follow sets where the server replicates from, under op.
func (s *Server) follow(upstream *Server) error {
	port := upstream.Port
	if s.cluster.links {
		link, err := s.linkTo(upstream)
		if err != nil {
			return err
		}
		port = link.Port()
	}
	return s.set(map[string]string{upstreamSetting: conninfo(port, s.Name)})
}

// caughtUp waits inside the server, because to ask again would each time start a
// program and a session. It first writes a record, so that all before it is
// flushed, and waits for the end of that. The insert position is no target: it
// can lie behind a page's header that no record has followed yet, and records of
// open transactions are not sent before someone's commit. A client that goes
// away is not noticed, hence the timeout.
const caughtUp = `SET statement_timeout = '%dms';
SET synchronous_commit = local;
SELECT FROM pg_logical_emit_message(true, 'pgcluster', '');
DO $$
DECLARE
	written pg_lsn := pg_current_wal_flush_lsn();
BEGIN
	WHILE (SELECT count(*) FROM pg_stat_get_wal_senders() WHERE state = 'streaming' AND replay_lsn >= written) < %d LOOP
		PERFORM pg_sleep(0.005);
	END LOOP;
END $$`

// WaitCaughtUp returns when n standbys stream from this server and have replayed
// all that it had written when it was called, asynchronous commits included. It
// adds an empty record to what this server, a primary, writes.
func (s *Server) WaitCaughtUp(ctx context.Context, n int) error {
	ctx, cancel := s.cluster.bound(ctx, startLimit)
	defer cancel()
	deadline, _ := ctx.Deadline() // bound sets one
	left := max(time.Until(deadline).Milliseconds(), 1)
	if _, err := s.SQL(ctx, "", fmt.Sprintf(caughtUp, left, n)); err != nil {
		return fmt.Errorf("pgcluster: wait for %d standbys of %s: %w", n, s.Name, err)
	}
	return nil
}
