package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/bench/figure"
	"github.com/tidegatedb/tidegate/pgxgate"
)

const waiters = 200

// patient is a class whose reads wait for as long as the measurement takes.
var patient = tidegate.NewCausal("bench-waiter", "waits for a replica that does not catch up", tidegate.Wait(time.Hour))

// demandRate measures how often a replica is asked while many reads wait for
// it: their sessions know a write that no replica replays.
//
// The library counts the probes of all nodes together. Those of one node are
// counted where they leave this process: after a moment, nothing but probes is
// sent on a replica's connections, each in one piece, and with an interval of an
// hour all of them are asked for.
func (b *bench) demandRate(ctx context.Context) (figures []figure.Figure, err error) {
	sent := make([]atomic.Int64, 1+replicas)
	db, err := b.stage.open(ctx, readers, func(c *pgxgate.Config) {
		unasked(c)
		for i := range c.Nodes {
			c.Nodes[i].Pool.ConnConfig.AfterNetConnect = func(_ context.Context, _ *pgconn.Config, nc net.Conn) (net.Conn, error) {
				return countedConn{nc, &sent[i]}, nil
			}
		}
	})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	writer := tidegate.NewSession()
	if err := write(tidegate.WithSession(ctx, writer), db); err != nil { // the connection is there
		return nil, err
	}
	defer func() { err = errors.Join(err, b.replay(context.WithoutCancel(ctx), "resume")) }()
	if err := b.replay(ctx, "pause"); err != nil {
		return nil, err
	}
	if err := write(tidegate.WithSession(ctx, writer), db); err != nil {
		return nil, err
	}
	token := writer.Token()
	stop, done, answered := await(ctx, db, token)
	defer func() { stop(); done() }()
	if err := pause(ctx, normal(&b.cfg, time.Second, 300*time.Millisecond)); err != nil { // the burst is over
		return nil, err
	}
	var rates []float64
	window := normal(&b.cfg, 2*time.Second, 300*time.Millisecond)
	for range b.cfg.runs() {
		var before [1 + replicas]int64
		for i := range sent {
			before[i] = sent[i].Load()
		}
		start := time.Now()
		if err := pause(ctx, window); err != nil {
			return nil, err
		}
		most := int64(0)
		for i := range sent {
			most = max(most, sent[i].Load()-before[i])
		}
		// n probes have n-1 times between them.
		rates = append(rates, float64(max(most-1, 0))/time.Since(start).Seconds())
	}
	if n := db.Stats().Waits; n < waiters || answered.Load() != 0 {
		return nil, fmt.Errorf("%d reads waited instead of %d, and %d were answered", n, waiters, answered.Load())
	}
	return []figure.Figure{figure.Plain(DemandProbes, figure.PerSecond, figure.AtMost(250), rates...).Lacking(b.cfg.tooFew(EnoughPairs)).
		Noted("of the node that was asked most, while %d reads waited", waiters)}, nil
}

// await lets sessions that go on from the token read, and wait. done returns when
// all have ended after stop; answered counts the reads that did not wait until
// then.
func await(ctx context.Context, db *pgxgate.DB, token tidegate.Token) (stop context.CancelFunc, done func(), answered *atomic.Int64) {
	ctx, stop = context.WithCancel(ctx)
	answered = new(atomic.Int64)
	var wg sync.WaitGroup
	for range waiters {
		wg.Go(func() {
			err := read(tidegate.WithToken(ctx, token), db, patient)
			if err == nil || ctx.Err() == nil {
				answered.Add(1)
			}
		})
	}
	return stop, wg.Wait, answered
}

// replay pauses or resumes replay on all replicas.
func (b *bench) replay(ctx context.Context, what string) error {
	for _, s := range b.stage.Replicas() {
		if _, err := s.SQL(ctx, "", "select pg_wal_replay_"+what+"()"); err != nil {
			return err
		}
	}
	return nil
}

// countedConn counts what is sent.
type countedConn struct {
	net.Conn
	sent *atomic.Int64
}

// Write implements net.Conn.
func (c countedConn) Write(p []byte) (int, error) {
	c.sent.Add(1)
	return c.Conn.Write(p)
}
