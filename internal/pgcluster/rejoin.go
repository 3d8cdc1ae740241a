package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

// Rewind makes a server whose history may have parted from the source's a standby
// of the source, by pg_rewind: an old primary after a failover, or a standby that
// is past the fork. Writes that the source does not have are gone afterwards. The
// server must have been stopped or killed; the source must run, and may be a
// standby itself. Settings are the server's own again afterwards, those by ALTER
// SYSTEM included. Rewind returns when the server takes connections. When there
// is nothing to rewind, the server starts as a standby all the same.
//
// After an error the data folder may be of no use; [Server.Rebuild] makes a new one.
func (s *Server) Rewind(ctx context.Context, source *Server) error {
	s.op.Lock()
	defer s.op.Unlock()
	ctx, cancel := s.cluster.bound(ctx, startLimit)
	defer cancel()
	if err := s.rewind(ctx, source); err != nil {
		return fmt.Errorf("pgcluster: rewind %s to %s: %w", s.Name, source.Name, err)
	}
	return nil
}

// rewind is Rewind under op.
func (s *Server) rewind(ctx context.Context, source *Server) error {
	if s == source {
		return errSelf
	}
	if s.Alive() {
		return errors.New("it runs; stop or kill it first")
	}
	if err := s.settleStandby(ctx); err != nil {
		return err
	}
	// The control file names a promoted server's new timeline only after the next
	// checkpoint, and pg_rewind reads it there (before 16).
	if _, err := source.SQL(ctx, "", "CHECKPOINT"); err != nil {
		return err
	}
	altered := filepath.Join(s.DataDir, alteredFile)
	own, err := os.ReadFile(altered)
	if err != nil {
		return err
	}
	args := []string{"--target-pgdata", s.DataDir, "--source-server", source.conninfo(s.Name) + " dbname=postgres", "--no-sync"}
	if _, err := s.cluster.run(ctx, "", "pg_rewind", args...); err != nil {
		return err
	}
	// What is no table comes from the source as it is, configuration included.
	if err := s.cluster.writeFile(altered, string(own)); err != nil {
		return err
	}
	return s.startStandby(ctx, source)
}

// Rebuild throws the server's data away and makes it anew as a standby of the
// source, which must run and may be a standby itself. The server may run, be
// suspended or be down; it is killed. It keeps its name, its port and what
// [Server.Set] has set. Rebuild returns when it takes connections. After an error
// there may be no data folder; another Rebuild makes it.
func (s *Server) Rebuild(ctx context.Context, source *Server) error {
	s.op.Lock()
	defer s.op.Unlock()
	ctx, cancel := s.cluster.bound(ctx, startLimit)
	defer cancel()
	if err := s.rebuild(ctx, source); err != nil {
		return fmt.Errorf("pgcluster: rebuild %s from %s: %w", s.Name, source.Name, err)
	}
	return nil
}

// rebuild is Rebuild under op.
func (s *Server) rebuild(ctx context.Context, source *Server) error {
	if s == source {
		return errSelf
	}
	if s.cluster.life.Err() != nil {
		return ErrStopped // the folder is about to go
	}
	if err := s.kill(); err != nil {
		return err
	}
	if err := os.RemoveAll(s.DataDir); err != nil {
		return err
	}
	if err := s.copyFrom(ctx, source); err != nil {
		return err
	}
	return s.startStandby(ctx, source)
}

var errSelf = errors.New("a server cannot follow itself; name another one as the source")

// startStandby starts a server with a data folder of the source's as its standby.
func (s *Server) startStandby(ctx context.Context, source *Server) error {
	if err := s.markStandby(); err != nil {
		return err
	}
	if err := s.follow(source); err != nil {
		return err
	}
	return s.start(ctx)
}

// settleStandby brings what a standby has received and not replayed into its
// data, and stops it in order. pg_rewind looks at the data only: it would find a
// standby not past the fork whose log is, and leave the log there to be replayed.
// For a killed primary it does the same itself, in a way that refuses standbys.
// The standby is cut off meanwhile.
func (s *Server) settleStandby(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(s.DataDir, standbySignal)); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	timeline, err := s.receivedTimeline()
	if err != nil {
		return err
	}
	// Over all files. The timeline is the one that the log is of: a newer one may
	// be known already and not contain what is in the data.
	err = s.start(ctx, "-c", upstreamSetting+"=", "-c", "recovery_target_timeline="+timeline,
		"-c", "recovery_min_apply_delay=0", "-c", "hot_standby=on")
	if err != nil {
		return err
	}
	const atEnd = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'startup' AND wait_event = 'RecoveryRetrieveRetryInterval'"
	err = poll(ctx, 5*time.Millisecond, func() (bool, error) {
		out, err := s.SQL(ctx, "", atEnd)
		return out == "1", err
	})
	return errors.Join(err, s.running().end(syscall.SIGINT, stopLimit, s.cluster.life.Done()))
}

var walSegment = regexp.MustCompile(`^([0-9A-F]{8})[0-9A-F]{16}$`)

// receivedTimeline is the newest timeline that the data folder has log of.
func (s *Server) receivedTimeline() (string, error) {
	entries, err := os.ReadDir(filepath.Join(s.DataDir, "pg_wal"))
	if err != nil {
		return "", err
	}
	newest := uint64(0)
	for _, e := range entries {
		if m := walSegment.FindStringSubmatch(e.Name()); m != nil {
			timeline, err := strconv.ParseUint(m[1], 16, 32)
			if err != nil {
				return "", err
			}
			newest = max(newest, timeline)
		}
	}
	if newest == 0 {
		return "", fmt.Errorf("%s/pg_wal has no log; rebuild the server", s.DataDir)
	}
	return strconv.FormatUint(newest, 10), nil
}
