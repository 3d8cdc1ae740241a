package engine_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// stub is a node that answers what a test says.
type stub struct {
	mu     sync.Mutex
	answer engine.Observation
	err    error
	took   time.Duration // one probe
	hung   bool
	hides  bool // as a primary, something of what it has committed

	flying, most, asked int
	sent                []time.Time
}

func (s *stub) set(f func(s *stub)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func (s *stub) Probe(ctx context.Context, pending []uint64) (engine.Observation, error) {
	s.mu.Lock()
	s.flying++
	s.most = max(s.most, s.flying)
	s.asked++
	s.sent = append(s.sent, time.Now())
	took, hung := s.took, s.hung
	o, err := s.answer, s.err
	s.mu.Unlock()
	o.Asked = pending
	if hung {
		<-ctx.Done()
		err = ctx.Err()
	}
	time.Sleep(took)
	s.mu.Lock()
	s.flying--
	s.mu.Unlock()
	return o, err
}

// Snapshot, Committed, Shows, Open and Ended make a stub an engine.Prover whose
// primary shows all that it has, or never does.
func (s *stub) Snapshot(context.Context) (engine.Snapshot, error) { return nil, nil }

func (s *stub) Committed(context.Context, engine.Snapshot) (tidegate.Position, engine.Transactions, error) {
	return s.prove()
}

func (s *stub) Open(context.Context) (tidegate.Position, engine.Transactions, error) {
	return s.prove()
}

func (s *stub) prove() (tidegate.Position, engine.Transactions, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answer.Applied, "all of them", nil
}

func (s *stub) Shows(context.Context, engine.Transactions) (bool, error) { return s.ended() }

func (s *stub) Ended(context.Context, engine.Transactions) (bool, error) { return s.ended() }

func (s *stub) ended() (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.hides, nil
}

// epoch returns a line of the stubs' history.
func epoch(line uint64) tidegate.Epoch { return tidegate.Epoch{System: 1, Line: line} }

// primaryStub and replicaStub return nodes that stand at a position of line 1.
func primaryStub(server uint64, n uint64) *stub {
	p := tidegate.At(n)
	return &stub{answer: engine.Observation{Server: server, Incarnation: tidegate.Incarnation(server * 100), Role: tidegate.RolePrimary,
		Epoch: epoch(1), Applied: p, Bound: p, Ceiling: p}}
}

func replicaStub(server uint64, n uint64) *stub {
	p := tidegate.At(n)
	return &stub{answer: engine.Observation{Server: server, Incarnation: tidegate.Incarnation(server * 100), Role: tidegate.RoleReplica,
		Epoch: epoch(1), Applied: p, Bound: p}}
}

// at moves a stub to a position.
func (s *stub) at(n uint64) {
	s.set(func(s *stub) {
		p := tidegate.At(n)
		s.answer.Applied, s.answer.Bound = p, p
		if s.answer.Role == tidegate.RolePrimary {
			s.answer.Ceiling = p
		}
	})
}

// born returns what a connection that was made now saw of the stub.
func (s *stub) born() *engine.Observation {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.answer
	o.Sent, o.Received = engine.Now(), engine.Now()
	return &o
}

// core returns a core over the stubs, which nobody probes unasked after the
// start unless cfg says so. It is closed with the test.
func core(t *testing.T, cfg engine.Config, stubs ...*stub) *engine.Core {
	t.Helper()
	cfg.Cluster = "main"
	for i, s := range stubs {
		cfg.Nodes = append(cfg.Nodes, engine.Node{Name: string(rune('a' + i)), Source: s})
	}
	if cfg.ProbeInterval == 0 {
		cfg.ProbeInterval = time.Hour
	}
	c, err := engine.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// sessionAt returns a context whose session must see the marks.
func sessionAt(ctx context.Context, marks ...tidegate.Mark) (context.Context, *tidegate.Session) {
	for i := range marks {
		marks[i].Cluster = "main"
	}
	s := tidegate.NewSession(tidegate.NewToken(marks...))
	return tidegate.WithSession(ctx, s), s
}

// needs returns a mark of line 1 at a position.
func needs(n uint64, seen ...tidegate.Incarnation) tidegate.Mark {
	return tidegate.Mark{Epoch: epoch(1), Position: tidegate.At(n), Seen: seen}
}

// begin begins a read and fails the test if it cannot.
func begin(ctx context.Context, t *testing.T, c *engine.Core, class tidegate.Class) *engine.Read {
	t.Helper()
	rd := &engine.Read{}
	if err := c.Begin(ctx, class, rd); err != nil {
		t.Fatal(err)
	}
	return rd
}

// went fails the test if the read went elsewhere or for another reason.
func went(t *testing.T, c *engine.Core, rd *engine.Read, node string, reason tidegate.Reason, unproven bool) tidegate.Decision {
	t.Helper()
	d := c.Decision(rd)
	if d.Node != node || d.Reason != reason || d.Unproven != unproven {
		t.Errorf("%v, want node %s, %v, unproven %v", d, node, reason, unproven)
	}
	return d
}
