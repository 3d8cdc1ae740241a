package tidegatetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

// ErrUnavailable is wrapped by errors of Put and Get that come from a node which
// is stopped, has crashed, or is not the primary any more. The outcome of such a
// Put can be unknown, as with a real server.
var ErrUnavailable = errors.New("tidegatetest: the node is not available")

// Config configures a [Cluster]. The zero Config is a primary and two replicas
// that apply everything at once.
type Config struct {
	// Name is the cluster's name in tokens and decisions. "" means "test".
	Name string
	// Replicas is the number of replicas. Zero means 2.
	Replicas int
	// Wait is how long a causal or relaxed read may wait for a replica, unless its
	// class says otherwise. Zero means 20ms; negative means not at all.
	Wait time.Duration
	// Hooks are told of decisions, probes and changes.
	Hooks []tidegate.Hook
}

// Cluster is a primary and its replicas in memory, with a router over them. It is
// safe for concurrent use.
type Cluster struct {
	t     testing.TB
	f     *fake.Cluster
	gate  *fake.Gate
	nodes []*Node
	data  store
	looks looks

	mu       sync.Mutex
	suspects []tidegate.Suspect
}

// New returns a cluster whose router has looked at every node. It ends with t.
func New(t testing.TB, cfg Config) *Cluster {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name = "test"
	}
	if cfg.Replicas == 0 {
		cfg.Replicas = 2
	}
	if cfg.Replicas < 0 {
		t.Fatalf("tidegatetest: Config.Replicas is %d; use a positive number, or zero for 2", cfg.Replicas)
	}
	c := &Cluster{t: t, f: fake.New(fake.Config{Replicas: cfg.Replicas}), looks: newLooks()}
	gate, err := c.f.Open(t.Context(), fake.Options{Core: engine.Config{
		Cluster: cfg.Name, Wait: cfg.Wait, Suspects: true,
		Hooks: append([]tidegate.Hook{{Probed: c.looks.probed, Suspected: c.suspected}}, cfg.Hooks...),
	}})
	if err != nil {
		t.Fatalf("tidegatetest: %v", err)
	}
	t.Cleanup(gate.Close)
	c.gate = gate
	for _, n := range c.f.Nodes() {
		c.nodes = append(c.nodes, &Node{c: c, n: n})
	}
	return c
}

func (c *Cluster) suspected(_ context.Context, x tidegate.Suspect) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suspects = append(c.suspects, x)
}

// Suspects returns the writes so far whose session had read from a replica before: each
// is a place to look whether the write is based on the read.
func (c *Cluster) Suspects() []tidegate.Suspect {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.suspects)
}

// Put writes a value through the primary. The context's session knows of it then.
// Errors wrap [tidegate.ErrNoPrimary] or [ErrUnavailable], or are the context's.
func (c *Cluster) Put(ctx context.Context, key, value string) error {
	_, err := c.gate.Write(ctx, c.data.add(key, value))
	return unavailable(err)
}

// Get reads a value where the router sends a read of that class; ok tells whether
// there is one. The read's [tidegate.Decision] goes where [tidegate.Observe] and
// the hooks say. Errors wrap [tidegate.ErrNotFresh] or [ErrUnavailable], or are the
// context's.
func (c *Cluster) Get(ctx context.Context, class tidegate.Class, key string) (value string, ok bool, err error) {
	writes := c.data.writes(key)
	rows, err := c.gate.Read(ctx, class, writes...)
	if err != nil {
		return "", false, unavailable(err)
	}
	value, ok = c.data.newest(writes, func(write int64) int64 { return rows[write] })
	return value, ok, nil
}

func unavailable(err error) error {
	for _, e := range []error{fake.ErrRefused, fake.ErrDead, fake.ErrNotPrimary} {
		if errors.Is(err, e) {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	return err
}

// Core returns the router, as package admin and a metrics collector take it: it
// has Status, Explain and SetRollout.
func (c *Cluster) Core() *engine.Core { return c.gate.Core() }

// Replica returns the node that began as the i-th replica, from 0. It fails the
// test at once when there is none.
func (c *Cluster) Replica(i int) *Node {
	c.t.Helper()
	if n := len(c.nodes) - 1; i < 0 || i >= n {
		c.t.Fatalf("tidegatetest: there is no Replica(%d); this cluster has Replica(0) to Replica(%d), see Config.Replicas", i, n-1)
	}
	return c.nodes[1+i]
}

// Primary returns the primary, nil when there is none.
func (c *Cluster) Primary() *Node {
	if p := c.f.Primary(); p != nil {
		return c.nodes[p.Index()]
	}
	return nil
}

// Probe has the router look at every node now, and returns when it knows. After a
// promotion, say, it would learn of it only with its next look, as in production.
func (c *Cluster) Probe() {
	c.t.Helper()
	if err := c.looks.await(c.t.Context(), c.nodes, c.gate.Core().Suspect); err != nil {
		c.t.Errorf("tidegatetest: looking at all nodes: %v", err)
	}
}

// StaleUnlessRouted fails the test when every replica that runs shows the same
// value of the key as the primary: then no read of it can be stale, wherever it
// goes, and a test that finds none proves nothing. Hold a replica first.
func (c *Cluster) StaleUnlessRouted(key string) {
	c.t.Helper()
	p := c.Primary()
	if p == nil {
		c.t.Error("tidegatetest: there is no primary to compare with")
		return
	}
	value, ok := p.Get(key)
	for _, n := range c.nodes {
		if n == p || !n.n.Up() {
			continue
		}
		if v, there := n.Get(key); v != value || there != ok {
			return
		}
	}
	c.t.Errorf("tidegatetest: every replica shows the same %q as the primary: nothing could be stale; hold a replica before the write", key)
}
