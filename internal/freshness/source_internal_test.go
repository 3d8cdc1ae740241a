package freshness

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/mono"
)

var (
	first  = tidegate.Epoch{System: 1, Line: 1}
	second = tidegate.Epoch{System: 1, Line: 2}

	errDown = errors.New("connection refused")
)

// says is what a healthy node answers: node 0 is the primary. Its incarnation is
// its number and ten.
func says(node int, at uint64) Observation {
	o := Observation{
		Server: uint64(node + 1), Incarnation: tidegate.Incarnation(node + 10), Role: tidegate.RoleReplica, Epoch: first,
		Applied: tidegate.At(at), Bound: tidegate.At(at),
	}
	if node == 0 {
		o.Role, o.Ceiling = tidegate.RolePrimary, tidegate.At(at)
	}
	return o
}

// source is a node that answers what the test wants.
type source struct {
	mu      sync.Mutex
	answer  Observation
	err     error
	takes   time.Duration // how long a probe takes; it ends with its context
	sent    []int64       // when each probe was sent
	pending [][]uint64    // what each was asked
	flying  int
	most    int // probes at a time
}

func (s *source) Probe(ctx context.Context, pending []uint64) (Observation, error) {
	s.mu.Lock()
	s.sent = append(s.sent, mono.Now())
	s.pending = append(s.pending, slices.Clone(pending))
	s.flying++
	s.most = max(s.most, s.flying)
	takes := s.takes
	s.mu.Unlock()
	timer := time.NewTimer(takes)
	defer timer.Stop()
	var err error
	select {
	case <-timer.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flying--
	if err == nil {
		err = s.err
	}
	o := s.answer
	o.Asked = pending
	return o, err
}

// set changes what the node answers.
func (s *source) set(change func(s *source)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// probes returns when the probes were sent since the last call.
func (s *source) probes() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := s.sent
	s.sent = nil
	return sent
}

// calm is a configuration under which nothing happens by itself for an hour.
func calm(sources ...Source) Config {
	return Config{Sources: sources, Interval: time.Hour, Timeout: time.Second, DemandRate: 1e6, DemandBurst: 1000, ProofWait: time.Second}
}

// healthy returns n nodes that have applied 100.
func healthy(n int) []*source {
	nodes := make([]*source, n)
	for i := range nodes {
		nodes[i] = &source{answer: says(i, 100)}
	}
	return nodes
}

func asSources(nodes []*source) []Source {
	var all []Source
	for _, n := range nodes {
		all = append(all, n)
	}
	return all
}

// running starts a watcher, waits for the first look at every node, and stops it
// at the end of the test. It must be called in a bubble.
func running(t *testing.T, cfg Config) *Watcher {
	t.Helper()
	w := New(cfg)
	w.Start(t.Context())
	t.Cleanup(w.Close)
	<-w.First()
	synctest.Wait()
	return w
}

// look probes nodes now and waits for the answers.
func look(w *Watcher, nodes ...int) {
	time.Sleep(time.Microsecond)
	for _, i := range nodes {
		w.Demand(i, mono.Now())
	}
	synctest.Wait()
}
