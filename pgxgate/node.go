package pgxgate

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/pgxgate/internal/wire"
)

// use is what a pool's connections are for.
type use uint8

const (
	// writes: the user's own settings, positions are taken.
	writes use = iota
	// primaryReads: read-only, few, positions are taken: the bulkhead between
	// reads that fall back and writes.
	primaryReads
	// replicaReads: read-only.
	replicaReads
	uses
)

// readOnlySetting keeps Read handles from writing, also on a server that has
// been promoted under them. Servers from 14 on report it, so that a statement
// that switched it off is noticed before its connection is used again.
const readOnlySetting = "default_transaction_read_only"

// errNodeGone means that the node was taken out of the cluster's list.
var errNodeGone = errors.New("pgxgate: the node was taken away")

// node is one server and the pools to it, made when they are first needed.
//
// It is the engine's source for the server, too: from what a decision says to the
// pool is one step.
type node struct {
	watch
	given Node // as the application gave it
	name  string
	base  *pgxpool.Config
	pools [uses]atomic.Pointer[pgxpool.Pool]
	// open counts the connections for reads as a replica.
	open atomic.Int64

	mu     sync.Mutex // serialises making pools
	closed atomic.Bool
}

// nodeOf returns the node that is a source of ours; without a source one that is
// gone.
func nodeOf(s engine.Source) *node {
	if n, ok := s.(*node); ok {
		return n
	}
	gone := &node{}
	gone.closed.Store(true)
	return gone
}

// pool returns the node's pool for a use.
func (n *node) pool(u use) (*pgxpool.Pool, error) {
	if n.closed.Load() {
		return nil, errNodeGone
	}
	if p := n.pools[u].Load(); p != nil {
		return p, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed.Load() {
		return nil, errNodeGone
	}
	if p := n.pools[u].Load(); p != nil {
		return p, nil
	}
	// A background context: the pool outlives the call that needed it first.
	p, err := pgxpool.NewWithConfig(context.Background(), n.config(u))
	if err != nil {
		return nil, err
	}
	n.pools[u].Store(p)
	return p, nil
}

// acquire returns a connection for a use.
func (n *node) acquire(ctx context.Context, u use) (*pgxpool.Conn, error) {
	p, err := n.pool(u)
	if err != nil {
		return nil, err
	}
	c, err := p.Acquire(ctx)
	if err != nil && n.closed.Load() {
		return nil, errNodeGone
	}
	return c, err
}

// errDemoted means that the server is a standby now.
var errDemoted = errors.New("pgxgate: the server is a standby now")

// acquireWriter returns a connection for writes to a server that has not said since then
// that it is a standby; the others that it has are over, too. try makes sure that the server
// is still at the other end: nothing that matters has been sent until then.
func (n *node) acquireWriter(ctx context.Context, try bool) (*pgxpool.Conn, error) {
	c, err := n.acquire(ctx, writes)
	if err != nil {
		return nil, err
	}
	if try {
		err = c.Ping(ctx)
	}
	demoted := otherRole(c.Conn().PgConn(), true)
	if err == nil && !demoted {
		return c, nil
	}
	closeNow(c.Conn())
	c.Release()
	if demoted {
		n.demoted()
		return nil, errDemoted
	}
	return nil, err
}

// demoted throws away the connections that the node has as the primary: those in use when
// they are given back. They lead to a server that is a standby now.
func (n *node) demoted() {
	for _, u := range []use{writes, primaryReads} {
		if p := n.pools[u].Load(); p != nil {
			p.Reset()
		}
	}
}

// primaryReads is how many connections Read handles have to the node while it is the
// primary.
func (n *node) primaryReads() int32 {
	if c := n.db.cfg.PrimaryReads; c != 0 {
		return c
	}
	return max(1, n.base.MaxConns/4*3+n.base.MaxConns%4*3/4)
}

// config returns the user's configuration with our hooks behind the user's.
func (n *node) config(u use) *pgxpool.Config {
	cfg := n.base.Copy()
	if u != writes {
		cfg.ConnConfig.RuntimeParams[readOnlySetting] = "on"
		if n.db.cfg.ReadUser != "" {
			cfg.ConnConfig.User, cfg.ConnConfig.Password = n.db.cfg.ReadUser, n.db.cfg.ReadPassword
		}
		// One statement at a time: a simple-protocol string could hold several.
		if cfg.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
			cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
		}
	}
	if u == primaryReads {
		cfg.MaxConns = n.primaryReads()
		cfg.MinConns, cfg.MinIdleConns = min(cfg.MinConns, cfg.MaxConns), min(cfg.MinIdleConns, cfg.MaxConns)
	}
	dialed := cfg.ConnConfig.AfterNetConnect
	cfg.ConnConfig.AfterNetConnect = func(ctx context.Context, c *pgconn.Config, nc net.Conn) (net.Conn, error) {
		if dialed != nil {
			var err error
			if nc, err = dialed(ctx, c, nc); err != nil {
				return nc, err
			}
		}
		if u == replicaReads {
			return &tagged{Conn: nc}, nil
		}
		return wire.Wrap(nc), nil
	}
	user := cfg.AfterConnect
	cfg.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		if user != nil {
			if err := user(ctx, c); err != nil {
				return err
			}
		}
		w, _ := c.PgConn().Conn().(*wire.Conn)
		s, err := bear(ctx, c.PgConn(), w, n.db.cfg.AsyncCommits)
		if err != nil {
			return err
		}
		s.otherRole = otherRole(c.PgConn(), u != replicaReads)
		tag(c, s)
		if u == replicaReads {
			n.open.Add(1)
		}
		return nil
	}
	if u == replicaReads {
		closing := cfg.BeforeClose
		cfg.BeforeClose = func(c *pgx.Conn) {
			n.open.Add(-1)
			if closing != nil {
				closing(c)
			}
		}
		if cfg.PingTimeout == 0 {
			cfg.PingTimeout = longestAcquire
		}
	}
	return cfg
}

func (n *node) closePools() {
	n.mu.Lock()
	n.closed.Store(true)
	n.mu.Unlock()
	for u := range n.pools {
		if p := n.pools[u].Load(); p != nil {
			p.Close()
		}
	}
}
