package route

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

var (
	epoch = tidegate.Epoch{System: 1, Line: 1}
	later = tidegate.Epoch{System: 1, Line: 2}

	errDown = errors.New("connection refused")
)

// observed is what a healthy node says: node 0 is the primary. Its incarnation
// is its number and ten.
func observed(node int, at uint64) freshness.Observation {
	o := freshness.Observation{
		Server: uint64(node + 1), Incarnation: tidegate.Incarnation(node + 10), Role: tidegate.RoleReplica, Epoch: epoch,
		Applied: tidegate.At(at), Bound: tidegate.At(at),
	}
	if node == 0 {
		o.Role, o.Ceiling = tidegate.RolePrimary, tidegate.At(at)
	}
	return o
}

// healthy returns a table of a primary and n-1 replicas that have all applied
// 100, from looks that were sent at time 100.
func healthy(n int) *freshness.Table {
	t := &freshness.Table{Nodes: make([]freshness.Node, n), Epoch: epoch}
	for i := range t.Nodes {
		o := observed(i, 100)
		o.Sent = 100
		t.Nodes[i] = freshness.Node{
			Applied: o.Applied, Incarnation: o.Incarnation, Sent: o.Sent, Usable: i > 0, Current: 100, Epoch: epoch, Obs: &o,
		}
	}
	return t
}

// still is a watcher whose table only the test replaces.
type still struct {
	table atomic.Pointer[freshness.Table]
}

func hold(t *freshness.Table) *still {
	s := &still{}
	s.table.Store(t)
	return s
}

func (s *still) Table() *freshness.Table                       { return s.table.Load() }
func (s *still) Demand(int, int64)                             {}
func (s *still) Silent(int, int64) bool                        { return false }
func (s *still) WantShown(tidegate.Position)                   {}
func (s *still) WantSettled([]uint64)                          {}
func (s *still) Since(tidegate.Epoch, tidegate.Position) int64 { return mono.Now() }

// router returns a router with nodes of equal weight, named n0, n1 and so on.
func router(facts Facts, n int) *Router {
	return New(Config{Cluster: "main", Nodes: nodes(n), Wait: 20 * time.Millisecond, ProofWait: time.Second}, facts)
}

func nodes(n int) []Node {
	all := make([]Node, n)
	for i := range all {
		all[i] = Node{Name: fmt.Sprintf("n%d", i), Weight: 1}
	}
	return all
}

// cluster is a real watcher over nodes that say what the test wants, inside a
// bubble. It probes a node when the test changes it, and as long as answering is
// on also when a read asks for it.
type cluster struct {
	t *testing.T
	*freshness.Watcher
	router *Router

	others sync.WaitGroup // what goes on beside the test

	mu      sync.Mutex
	proven  tidegate.Position // what the primary is proven to show
	says    []freshness.Observation
	fails   []error
	demands []demand
	shown   []tidegate.Position
	settled [][]uint64
	// answering makes demands of reads reach the watcher.
	answering bool
	// asked, if not nil, is called before a demand is passed on.
	asked func(d demand)
}

// demand is a read's wish for a look.
type demand struct {
	node int
	in   time.Duration // when it is due, from when it was made
}

// node is one node of a cluster.
type node struct {
	c *cluster
	i int
}

func (n node) Probe(_ context.Context, pending []uint64) (freshness.Observation, error) {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	o := n.c.says[n.i]
	o.Asked = slices.Clone(pending)
	return o, n.c.fails[n.i]
}

// inBubble runs a test over a healthy cluster of n nodes that have applied 100.
func inBubble(t *testing.T, n int, test func(c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, fails: make([]error, n)}
		cfg := freshness.Config{Interval: time.Hour, Timeout: time.Second, DemandRate: 1e9, DemandBurst: 1000, ProofWait: time.Second}
		for i := range n {
			c.says = append(c.says, observed(i, 100))
			cfg.Sources = append(cfg.Sources, node{c, i})
		}
		c.Watcher = freshness.New(cfg)
		c.router = router(c, n)
		c.router.cfg.LongestLag = time.Minute
		c.Start(t.Context())
		defer c.Close()
		<-c.First()
		c.tick()
		test(c)
		c.others.Wait()
	})
}

// Table returns the watcher's table with the proof that the test gives.
func (c *cluster) Table() *freshness.Table {
	t := *c.Watcher.Table()
	c.mu.Lock()
	t.Shown = c.proven
	c.mu.Unlock()
	return &t
}

func (c *cluster) Demand(node int, at int64) {
	d := demand{node, time.Duration(at - mono.Now())}
	c.mu.Lock()
	c.demands = append(c.demands, d)
	asked, answering := c.asked, c.answering
	c.mu.Unlock()
	if asked != nil {
		asked(d)
	}
	if answering {
		c.Watcher.Demand(node, at)
	}
}

func (c *cluster) WantShown(pos tidegate.Position) {
	c.mu.Lock()
	c.shown = append(c.shown, pos)
	c.mu.Unlock()
}

func (c *cluster) WantSettled(processes []uint64) {
	c.mu.Lock()
	c.settled = append(c.settled, processes)
	c.mu.Unlock()
	c.Watcher.WantSettled(processes)
}

// tick lets a moment pass, so that what comes next is later than what was.
func (c *cluster) tick() { time.Sleep(time.Microsecond) }

// say changes what nodes say without anybody asking them.
func (c *cluster) say(change func(says []freshness.Observation, fails []error)) {
	c.mu.Lock()
	change(c.says, c.fails)
	c.mu.Unlock()
}

// look probes nodes now and waits until the table has the answers.
func (c *cluster) look(nodes ...int) {
	c.tick()
	for _, i := range nodes {
		c.Watcher.Demand(i, mono.Now())
	}
	synctest.Wait()
	c.tick()
}

// apply makes nodes apply a position and looks at them.
func (c *cluster) apply(at uint64, nodes ...int) {
	c.say(func(says []freshness.Observation, _ []error) {
		for _, i := range nodes {
			o := &says[i]
			o.Applied, o.Bound = tidegate.At(at), tidegate.At(at)
			if o.Role == tidegate.RolePrimary {
				o.Ceiling = tidegate.At(at)
			}
		}
	})
	c.look(nodes...)
}

// lose makes nodes fail their probes and looks at them.
func (c *cluster) lose(nodes ...int) {
	c.say(func(_ []freshness.Observation, fails []error) {
		for _, i := range nodes {
			fails[i] = errDown
		}
	})
	c.look(nodes...)
}

// made returns the demands since the last call.
func (c *cluster) made() []demand {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.demands
	c.demands = nil
	return all
}

// session returns the ledger of a session that has written up to a position.
func session(upTo uint64) *ledger.Ledger {
	l := ledger.New("main", 7, nil)
	l.Reached(epoch, tidegate.At(upTo))
	return l
}

// outcome is what a read came to.
type outcome struct {
	node     int
	reason   tidegate.Reason
	unproven bool
	waited   time.Duration
}

// begin begins a read and checks what it comes to; the caller may go on with the
// ticket.
func (c *cluster) begin(ctx context.Context, tk *Ticket, want outcome) {
	c.t.Helper()
	if err := c.router.Begin(ctx, tk); err != nil {
		c.t.Errorf("refused: %v", err)
		return
	}
	if got := (outcome{tk.Node, tk.reason, tk.unproven, time.Duration(tk.waited)}); got != want {
		c.t.Errorf("%+v, want %+v", got, want)
	}
	if role := c.Table().Nodes[tk.Node].Obs.Role; tk.Role != role || tk.Proof == nil || tk.Epoch != tk.Proof.Epoch {
		c.t.Errorf("role %v, proof %+v, epoch %+v", tk.Role, tk.Proof, tk.Epoch)
	}
	if c.router.Flying(tk.Node) == 0 {
		c.t.Error("the read does not count as in flight")
	}
}

// idle checks that no read is in flight.
func (c *cluster) idle() {
	c.t.Helper()
	for i := range c.router.slots {
		if f := c.router.Flying(i); f != 0 {
			c.t.Errorf("node %d has %d reads in flight", i, f)
		}
	}
}
