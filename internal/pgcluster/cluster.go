package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

var (
	// ErrStopped means that the cluster has been stopped.
	ErrStopped = errors.New("pgcluster: the cluster has been stopped; start another one")
	// ErrUnsupported means that this platform lacks what the call needs.
	ErrUnsupported = errors.New("pgcluster: not supported on this platform")
)

// Cluster is one primary and its standbys. It is safe for concurrent use.
type Cluster struct {
	// Dir is the cluster's folder; data folders, logs and sockets are in it.
	Dir string
	// Install is the set of programs that runs.
	Install Install

	folder  *folder
	account *account
	servers []*Server // the primary first
	links   bool      // Config.Links

	logMu sync.Mutex
	logTo func(string)

	life context.Context // ends when Stop begins
	end  context.CancelFunc
	stop func() error
}

// Start starts a cluster and returns when every replica streams and has caught
// up. The context and two minutes limit the start only; Stop ends the cluster.
// On an error nothing is left behind, and the error has the end of the log of
// the server that failed. Before that, clusters of dead owners are swept away.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	if supported != nil {
		return nil, supported
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	acc, err := findAccount()
	if err != nil {
		return nil, err
	}
	c := &Cluster{Install: cfg.Install, account: acc, links: cfg.Links, logTo: cfg.Log}
	c.stop = sync.OnceValue(c.tearDown)
	c.life, c.end = context.WithCancel(context.Background())
	if swept, err := Sweep(cfg.Parent); err != nil || len(swept) > 0 {
		// Another cluster's remains do not keep this one from starting.
		c.log("swept %v, errors: %v", swept, err)
	}
	if c.folder, err = newFolder(cfg.Parent); err != nil {
		c.end()
		return nil, err
	}
	c.Dir = c.folder.path
	c.servers = append(c.servers, c.newServer("primary", cfg.settings(cfg.PrimarySettings)))
	for i := range cfg.Replicas {
		c.servers = append(c.servers, c.newServer(fmt.Sprintf("replica%d", i+1), cfg.settings(cfg.ReplicaSettings)))
	}
	ctx, cancel := c.bound(ctx, startLimit)
	defer cancel()
	if err := c.startServers(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) newServer(name string, settings map[string]string) *Server {
	return &Server{
		Name:     name,
		DataDir:  filepath.Join(c.Dir, name),
		LogPath:  filepath.Join(c.Dir, name+".log"),
		cluster:  c,
		settings: settings,
	}
}

func (c *Cluster) startServers(ctx context.Context) error {
	if err := c.account.give(c.Dir); err != nil {
		return err
	}
	c.log("%v in %s", c.Install, c.Dir)
	if err := c.Primary().initialize(ctx); err != nil {
		return err
	}
	if len(c.Replicas()) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := c.each(c.Replicas(), func(s *Server) error {
		err := s.clone(ctx, c.Primary())
		if err != nil {
			cancel() // the others need not finish
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := c.Primary().WaitCaughtUp(ctx, len(c.Replicas())); err != nil {
		for _, s := range c.servers {
			err = fmt.Errorf("%w\n%s:%s", err, s.Name, indented(logTail(s.LogPath, 0)))
		}
		return err
	}
	return nil
}

// each does the same to several servers at once and joins the errors.
func (c *Cluster) each(servers []*Server, do func(*Server) error) error {
	errs := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { errs[i] = do(s) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// socketPathLimit is the length that fits everywhere: 103 on macOS, 107 on Linux.
const socketPathLimit = 103

// listenSettings are where a server listens and what it is called.
func (c *Cluster) listenSettings(s *Server) map[string]string {
	sockets := c.Dir
	if len(filepath.Join(sockets, ".s.PGSQL.65535")) > socketPathLimit {
		sockets = "" // TCP is enough
	}
	return map[string]string{
		"port":                    fmt.Sprint(s.Port),
		"listen_addresses":        "127.0.0.1",
		"unix_socket_directories": sockets,
		"cluster_name":            s.Name,
	}
}

// Primary is the server that began as the primary, also after a promotion of
// another.
func (c *Cluster) Primary() *Server { return c.servers[0] }

// Replicas are the servers that began as standbys.
func (c *Cluster) Replicas() []*Server { return slices.Clone(c.servers[1:]) }

// Servers are the primary and the replicas.
func (c *Cluster) Servers() []*Server { return slices.Clone(c.servers) }

// Stop ends all servers at once, removes the folder and returns when both is
// done. Operations under way on its servers end with [ErrStopped]. Further calls
// wait for the first and return its result.
func (c *Cluster) Stop() error { return c.stop() }

// patience is how long a server has to end at an immediate shutdown. The server
// itself kills children that have not after five seconds.
const patience = 8 * time.Second

func (c *Cluster) tearDown() error {
	c.end()
	err := c.each(c.servers, func(s *Server) error {
		s.op.Lock()
		defer s.op.Unlock()
		defer s.closeLink()
		if run := s.running(); run != nil && run.resume() == nil && run.end(syscall.SIGQUIT, patience, nil) == nil {
			return nil
		}
		return s.kill() // also clears what an earlier Kill from outside left
	})
	if err != nil {
		// The folder stays: while a process is left, a sweep finds it by that.
		c.folder.owner.Close()
		return err
	}
	return c.folder.remove()
}

func (c *Cluster) log(format string, args ...any) {
	c.logMu.Lock()
	defer c.logMu.Unlock()
	c.logTo(fmt.Sprintf(format, args...))
}
