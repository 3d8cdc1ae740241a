package pgxgate

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// DB routes the statements of one cluster. It is safe for concurrent use.
type DB struct {
	core  *engine.Core
	cfg   Config
	async asyncState

	mu    sync.Mutex // serialises changes of nodes, and Close
	nodes []*node
	// leaving waits for nodes that were taken away and whose connections are still
	// in use, and for the discovery.
	leaving sync.WaitGroup
	cancel  context.CancelFunc // of the discovery, or nil

	closeOnce sync.Once
	throttle  defaultThrottle
}

// Open starts to watch the cluster's nodes and returns when each has been asked
// once, with whatever result, or when ctx ends. Nodes may be down, and there need
// not be a primary: writes say so until there is one. Errors wrap
// [tidegate.ErrConfig] and name the field, wrap that of the Discoverer and say so,
// or are the context's. The caller must [DB.Close] it.
//
// Each node gets one connection for probes, and pools that are made when they
// are first used: for writes and for reads on the primary, for reads on a
// replica.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	logger := cfg.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	db := &DB{cfg: cfg, async: asyncState{declared: cfg.AsyncCommits, logger: logger.With("cluster", cfg.Cluster)}}
	listed := cfg.Nodes
	if cfg.Discoverer != nil {
		var err error
		if listed, err = cfg.Discoverer.Discover(ctx); err != nil {
			return nil, fmt.Errorf("pgxgate: Config.Discoverer has not found the nodes of %s: %w", cfg.Cluster, err)
		}
	}
	var known []engine.Node
	var err error
	if db.nodes, known, err = db.meet(listed); err != nil {
		return nil, err
	}
	fallbacks := cfg.FallbackReads
	if fallbacks == 0 {
		fallbacks = db.fallbackReads()
	}
	if db.core, err = engine.New(engine.Config{
		Suspects: cfg.Suspects, LongestLag: cfg.LongestLag, MostLag: cfg.MostLag, Fallbacks: int(fallbacks), FixedFallbacks: cfg.FixedFallbacks, FallbackWait: cfg.FallbackWait,
		FallbackShare: cfg.FallbackShare, FallbackWindow: cfg.FallbackWindow, PrimaryWait: cfg.PrimaryWait, Foreign: cfg.Foreign,
		Cluster: cfg.Cluster, Nodes: known, Zone: cfg.Zone, Wait: cfg.Wait, ProofWait: cfg.ProofWait, ProbeInterval: cfg.ProbeInterval,
		ProbeTimeout: cfg.ProbeTimeout, DemandRate: cfg.DemandRate, DemandBurst: cfg.DemandBurst,
		Rollout: cfg.Rollout, Hooks: cfg.Hooks, Logger: cfg.Logger,
	}); err != nil {
		return nil, err
	}
	if err := db.core.Ready(ctx); err != nil {
		db.Close()
		return nil, err
	}
	if cfg.Discoverer != nil {
		db.discover(logger.With("cluster", cfg.Cluster))
	}
	return db, nil
}

// Closed reports whether Close has been called.
func (db *DB) Closed() bool { return db.core.Closed() }

// Close stops watching, and closes all connections when those in use have been
// given back. Reads and writes fail with [tidegate.ErrClosed] from then on.
func (db *DB) Close() {
	db.closeOnce.Do(func() {
		if db.cancel != nil {
			db.cancel()
		}
		db.core.Close()
		db.mu.Lock()
		nodes := db.nodes
		db.nodes = nil
		db.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		for _, n := range nodes {
			n.watch.close(ctx)
		}
		for _, n := range nodes {
			n.closePools()
		}
		db.leaving.Wait()
	})
}

// Read returns the handle for reads of a class. It is cheap, safe for concurrent
// use, and has the methods that sqlc and its like ask of a database.
func (db *DB) Read(class tidegate.Class) Reader { return Reader{db, class} }

// Write returns the handle for writes. It is cheap, safe for concurrent use, and
// has the methods that sqlc and its like ask of a database.
func (db *DB) Write() Writer { return Writer{db} }

// Primary returns the plain pool of the primary, for migrations, LISTEN, job
// queues and whatever else needs a connection as it is. Nothing is captured on
// it: tell the session of writes by [tidegate.Wrote]. It fails with
// [tidegate.ErrNoPrimary]. After a failover it is another pool: ask again.
func (db *DB) Primary() (*pgxpool.Pool, error) {
	s, ok := db.core.Primary()
	if !ok {
		return nil, tidegate.ErrNoPrimary
	}
	return nodeOf(s).pool(writes)
}

// Explain says for each node why a read of the class may or may not go there now
// for the context's session.
func (db *DB) Explain(ctx context.Context, class tidegate.Class) engine.Explanation {
	return db.core.Explain(ctx, class)
}

// Stats returns counters since Open.
func (db *DB) Stats() engine.Stats { return db.core.Stats() }

// Status returns the freshness table: what is known of each node now.
func (db *DB) Status() engine.Status { return db.core.Status() }

// SetFloor makes every read of this process that goes to a replica, of any class, with a
// session and without, need one that has what the token requires of this cluster. A process
// that is deployed with a migration sets the token of the session that has migrated, and its
// reads meet no replica that lacks the new column. A floor only rises; one of a history that
// is over is dropped, and the log and the hooks say so.
func (db *DB) SetFloor(token tidegate.Token) { db.core.SetFloor(token) }

// SetRollout changes which reads are routed to replicas, from the next read on.
func (db *DB) SetRollout(r tidegate.Rollout) { db.core.SetRollout(r) }

// Rollout returns which reads are routed to replicas.
func (db *DB) Rollout() tidegate.Rollout { return db.core.Rollout() }
