package pgxgate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate/engine"
)

const (
	// acquireWait is how long a read waits for a connection to a replica while another
	// replica that will do has an idle one.
	acquireWait = 50 * time.Millisecond
	// longestAcquire is how long it waits while none has: whoever is behind a full pool
	// everywhere is better off in the queue for the primary, which is bounded.
	longestAcquire = time.Second
)

// errNoConnection means that a replica had no connection to give in time.
var errNoConnection = errors.New("pgxgate: the replica had no connection to give in time")

// acquireInTime waits for a connection to a replica that seems to have none idle: one has
// to be given back, or made. It leaves half of the caller's time to what comes after. A
// connection that is being made when the read goes elsewhere is there for the next one.
func (l *lease) acquireInTime(ctx context.Context, n *node) (*pgxpool.Conn, error) {
	limit := longestAcquire
	if l.db.core.Alternative(&l.read, hasIdle) {
		limit = acquireWait
	}
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)/2)
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c, err := n.acquire(within, replicaReads)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("%w (%v)", errNoConnection, limit)
	}
	return c, err
}

// hasIdle reports whether a node has an idle connection for a read.
func hasIdle(s engine.Source, flying int64) bool { return nodeOf(s).idle(flying) }

// idle reports whether the node has an idle connection for reads as a replica, while so
// many reads are in flight there. Its pool would know, and takes a lock and allocates to
// say so.
func (n *node) idle(flying int64) bool { return flying < n.open.Load() }
