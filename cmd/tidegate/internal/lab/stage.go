package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/fault"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// appRole is the role that strategies connect as: it may log in, and read and
// write the lab's table. Routing that needs more would not do for applications.
const appRole = "lab_app"

// settingsTime bounds how long it takes to take settings back.
const settingsTime = 30 * time.Second

// ErrNoServer means that PostgreSQL's server programs were not found. Its
// message says how to get them.
var ErrNoServer = pgcluster.ErrNotFound

// stage is a cluster that is ready for strategies.
type stage struct {
	*pgcluster.Cluster
	// metered says that statements of the application have a cost.
	metered bool
}

// raise starts a cluster as the scenario wants it.
func raise(ctx context.Context, cfg *Config, scenario fault.Scenario) (*stage, error) {
	install, err := pgcluster.Find(cfg.PGBin)
	if err != nil {
		return nil, err
	}
	settings := maps.Clone(scenario.Settings)
	if settings == nil {
		settings = map[string]string{}
	}
	settings["max_connections"] = strconv.Itoa(cfg.maxConnections())
	start := pgcluster.Config{Install: install, Replicas: cfg.Replicas, Settings: settings}
	if cfg.metered() {
		start.PrimarySettings, start.ReplicaSettings = cfg.Primary().Settings(), cfg.replica().Settings()
	}
	cluster, err := pgcluster.Start(ctx, start)
	if err != nil {
		return nil, err
	}
	s := &stage{cluster, cfg.metered()}
	if _, err := s.Primary().SQL(ctx, "", "create role "+appRole+" login"); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// reset makes the table anew and returns when every replica shows its rows, all
// at version 0. Pages are half empty, so that updates stay within them.
func (s *stage) reset(ctx context.Context, keys int) error {
	sql := fmt.Sprintf(`
		drop schema if exists %[3]s cascade;
		drop table if exists %[1]s;
		create table %[1]s (k bigint primary key, v bigint not null) with (fillfactor = 50);
		insert into %[1]s select k, 0 from generate_series(0, %[2]d) k;
		grant select, update on %[1]s to %[3]s;`,
		strategy.Table, keys-1, appRole)
	if s.metered {
		sql += meterSQL
	}
	if _, err := s.Primary().SQL(ctx, "", sql); err != nil {
		return err
	}
	return s.Primary().WaitCaughtUp(ctx, len(s.Replicas()))
}

// nodes are what a strategy may know of the cluster.
func (s *stage) nodes() strategy.Nodes {
	n := strategy.Nodes{Primary: s.Primary().DSN(appRole, "")}
	for _, r := range s.Replicas() {
		n.Replicas = append(n.Replicas, r.DSN(appRole, ""))
	}
	return n
}

// configure brings the settings into force that the strategy relies on, and
// returns what takes them back, also after an error.
func (s *stage) configure(ctx context.Context, st strategy.Strategy) (undo func() error, err error) {
	c, ok := st.(strategy.Configurer)
	if !ok {
		return func() error { return nil }, nil
	}
	settings := c.PrimarySettings(len(s.Replicas()))
	names := slices.Sorted(maps.Keys(settings))
	undo = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settingsTime)
		defer cancel()
		var errs []error
		for _, name := range names {
			errs = append(errs, fault.Alter(ctx, s.Primary(), name, ""))
		}
		return errors.Join(errs...)
	}
	for _, name := range names {
		if err := fault.Alter(ctx, s.Primary(), name, settings[name]); err != nil {
			return undo, fmt.Errorf("%s asks for %s = %s: %w", st.Name(), name, settings[name], err)
		}
	}
	return undo, nil
}

// site is the cluster that a scenario is let loose on; the caller adds what the
// scenario may do to the application.
func (s *stage) site() *fault.Site {
	site := &fault.Site{Primary: s.Primary(), Table: strategy.Table}
	for _, r := range s.Replicas() {
		site.Replicas = append(site.Replicas, r)
	}
	return site
}

// cpu is the CPU time that the servers have used so far. Where the system does
// not tell, it is 0.
func (s *stage) cpu() (primary, replicas time.Duration, err error) {
	for i, server := range s.Servers() {
		used, err := server.CPU()
		if err != nil && !errors.Is(err, pgcluster.ErrUnsupported) {
			return 0, 0, err
		}
		if i == 0 {
			primary = used
		} else {
			replicas += used
		}
	}
	return primary, replicas, nil
}

// keepLogs copies the servers' logs to the folder, if there is to be one, under
// names that begin with the prefix.
func (s *stage) keepLogs(c *Config, prefix string) error {
	if c.KeepLogs == "" {
		return nil
	}
	for _, server := range s.Servers() {
		if err := copyFile(filepath.Join(c.KeepLogs, prefix+server.Name+".log"), server.LogPath); err != nil {
			return c.noLogs(err)
		}
	}
	return nil
}

// logsFolder makes the folder for the servers' logs and finds out whether files can
// be made in it: at the end of a run it would be too late.
func (c *Config) logsFolder() error {
	if c.KeepLogs == "" {
		return nil
	}
	if err := os.MkdirAll(c.KeepLogs, 0o755); err != nil {
		return c.noLogs(err)
	}
	f, err := os.CreateTemp(c.KeepLogs, ".tidegate-*")
	if err != nil {
		return c.noLogs(err)
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return c.noLogs(err)
	}
	return nil
}

// noLogs is the error of a folder that does not take the servers' logs.
func (c *Config) noLogs(err error) error {
	return &UsageError{"keep-logs", err.Error(), "give a folder that files can be made in, or leave it out"}
}

func copyFile(to, from string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	dst, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}
