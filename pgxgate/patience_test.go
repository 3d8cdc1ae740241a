package pgxgate_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// patience is a tracer that knows how long those who acquire connections would wait.
type patience struct {
	// shortest is the shortest time among those that have a bound, in nanoseconds;
	// bounded counts these and unbounded the others.
	shortest, bounded, unbounded atomic.Int64
}

func (p *patience) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	deadline, ok := ctx.Deadline()
	if !ok {
		p.unbounded.Add(1)
		return ctx
	}
	p.bounded.Add(1)
	p.shortest.Store(min(p.shortest.Load(), int64(time.Until(deadline))))
	return ctx
}

func (*patience) TraceAcquireEnd(context.Context, *pgxpool.Pool, pgxpool.TraceAcquireEndData) {}

func (*patience) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (*patience) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestIdleConnectionIsTakenAtOnce: a timer and a context are made only where a read may
// have to wait for its connection.
func TestIdleConnectionIsTakenAtOnce(t *testing.T) {
	c := cluster(t)
	var p patience
	db := open(t, c, func(cfg *pgxgate.Config) {
		for i := range cfg.Nodes {
			pool := must[*pgxpool.Config](t)(pgxpool.ParseConfig(cfg.Nodes[i].DSN))
			pool.ConnConfig.Tracer = &p
			cfg.Nodes[i].Pool, cfg.Nodes[i].DSN = pool, ""
		}
	})
	ctx, seen := inSession(t)
	read := func() {
		t.Helper()
		if _, err := db.Read(tidegate.Causal).Exec(ctx, "select"); err != nil {
			t.Fatal(err)
		}
	}
	read()
	d, _ := seen.Last()
	if d.Role != tidegate.RoleReplica || p.bounded.Load() != 1 || p.unbounded.Load() != 0 {
		t.Errorf("the first connection: %d bounded waits, %d others, %v", p.bounded.Load(), p.unbounded.Load(), d)
	}
	for range 20 {
		read()
	}
	if p.bounded.Load() != 1 || p.unbounded.Load() != 20 {
		t.Errorf("with an idle connection: %d bounded waits, %d others", p.bounded.Load(), p.unbounded.Load())
	}
	// The count is the pool's own, also after connections have gone.
	same := func() {
		t.Helper()
		eventually(t, "the connections to be counted", func() bool {
			counted, pooled := db.ReplicaConns(d.Node)
			return counted == int64(pooled)
		})
	}
	same()
	for _, r := range c.Replicas() {
		sql(t, r, "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'")
	}
	for range 5 {
		read()
	}
	same()
}

// TestFullPoolIsLeft holds all connections to one replica, then to both: reads go to the
// other one, then to the primary, within the time that their callers have.
func TestFullPoolIsLeft(t *testing.T) {
	c := cluster(t)
	const conns = 2
	var patience patience
	var again atomic.Uint64
	db := open(t, c, func(cfg *pgxgate.Config) {
		cfg.Hooks = []tidegate.Hook{{Decided: func(_ context.Context, d tidegate.Decision) {
			again.Add(uint64(d.Retries)) // each read here has one decision
		}}}
		for i := range cfg.Nodes {
			p := must[*pgxpool.Config](t)(pgxpool.ParseConfig(cfg.Nodes[i].DSN))
			p.MaxConns, p.ConnConfig.Tracer = conns, &patience
			cfg.Nodes[i].Pool, cfg.Nodes[i].DSN = p, ""
		}
	})
	fill := func(s *pgcluster.Server) {
		t.Helper()
		for n := 0; n < conns; {
			ctx, _ := inSession(t)
			conn := must[*pgxgate.Conn](t)(db.Acquire(ctx, tidegate.Causal))
			if conn.Decision().Node != s.Name {
				conn.Release()
				continue
			}
			n++
			t.Cleanup(conn.Release)
		}
	}
	home := func(s *pgcluster.Server) (ctx context.Context, seen *tidegate.Decisions) {
		eventually(t, "a session on the replica", func() bool {
			ctx, seen = inSession(t)
			if _, err := db.Read(tidegate.Causal).Exec(ctx, "select"); err != nil {
				t.Fatal(err)
			}
			d, _ := seen.Last()
			return d.Node == s.Name
		})
		return ctx, seen
	}
	one, other := c.Replicas()[0], c.Replicas()[1]
	home(other) // it has an idle connection
	ctx, seen := home(one)
	short, shortSeen := home(one)
	ctx, done := context.WithTimeout(ctx, 10*time.Second)
	defer done()
	fill(one)
	patience.shortest.Store(int64(time.Hour))
	if _, err := db.Read(tidegate.Causal).Exec(ctx, "select"); err != nil {
		t.Fatal(err)
	}
	if d, _ := seen.Last(); d.Node != other.Name || d.RetryCause != tidegate.RetryPool {
		t.Errorf("one pool is full: %v", d)
	}
	if wait := time.Duration(patience.shortest.Load()); wait > 50*time.Millisecond {
		t.Errorf("it waits up to %v while the other replica has an idle connection", wait)
	}
	fill(other)
	// The caller's deadline is far shorter than the wait for a connection may be.
	short, cancel := context.WithTimeout(short, 600*time.Millisecond)
	defer cancel()
	if _, err := db.Read(tidegate.Causal).Exec(short, "select"); err != nil {
		t.Fatal(err)
	}
	if d, _ := shortSeen.Last(); d.Role != tidegate.RolePrimary || d.Retries != 2 || d.RetryCause != tidegate.RetryPool {
		t.Errorf("both pools are full: %v", d)
	}
	if n := db.Stats().Retries; n[tidegate.RetryPool] != again.Load() || n.Total() != again.Load() || again.Load() < 3 {
		t.Errorf("counted %v, told of %d", n, again.Load())
	}
}

// cancels is a tracer that ends somebody's context when a connection could not be had.
type cancels struct {
	patience
	cancel context.CancelFunc
}

func (x *cancels) TraceAcquireEnd(_ context.Context, _ *pgxpool.Pool, d pgxpool.TraceAcquireEndData) {
	if d.Err != nil {
		x.cancel()
	}
}

// TestCancelledWhileThePoolIsFull: a read that is cancelled in the moment in which it would
// leave a full pool says that it was cancelled.
func TestCancelledWhileThePoolIsFull(t *testing.T) {
	ctx, _ := inSession(t)
	ctx, cancel := context.WithCancel(ctx)
	x := &cancels{cancel: cancel}
	db := open(t, cluster(t), func(cfg *pgxgate.Config) {
		cfg.Nodes = cfg.Nodes[:2]
		p := must[*pgxpool.Config](t)(pgxpool.ParseConfig(cfg.Nodes[1].DSN))
		p.MaxConns, p.ConnConfig.Tracer = 1, x
		cfg.Nodes[1].Pool, cfg.Nodes[1].DSN = p, ""
	})
	other, _ := inSession(t)
	conn := must[*pgxgate.Conn](t)(db.Acquire(other, tidegate.Causal))
	defer conn.Release()
	if d := conn.Decision(); d.Role != tidegate.RoleReplica {
		t.Fatal(d)
	}
	if _, err := db.Read(tidegate.Causal).Exec(ctx, "select"); !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if n := db.AcquiredConns(); n != 1 {
		t.Errorf("%d connections are in use, want the one that is held", n)
	}
}
