package strategy

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// ProbePerRead takes the primary's position after each write, and before each
// read of a session that has written asks the replica whose turn it is whether
// it has replayed that far; if not, the primary answers. Some load balancers of
// large applications do so. Its token is the position. Each such read costs a
// second round trip, and what a session has read is not known.
type ProbePerRead struct{}

// Name implements Strategy.
func (ProbePerRead) Name() string { return "probe-per-read" }

// About implements Strategy.
func (ProbePerRead) About() string {
	return "asks a replica before each read whether it has the session's last write, else the primary"
}

// Open implements Strategy.
func (ProbePerRead) Open(ctx context.Context, instance int, nodes Nodes, cfg Config) (Instance, error) {
	p, err := openPools(ctx, instance, nodes, cfg)
	if err != nil {
		return nil, err
	}
	return &probing{p}, nil
}

type probing struct{ *pools }

const (
	// positionSQL is asked after the write's transaction: a position from inside
	// is before the commit.
	positionSQL = "select pg_current_wal_insert_lsn()::text"
	// reachedSQL is false on a server that has replayed nothing.
	reachedSQL = "select coalesce(pg_last_wal_replay_lsn() >= $1::text::pg_lsn, false)"
)

// Read implements Instance.
func (p *probing) Read(ctx context.Context, s *Session, keys []int64) (record.Answer, error) {
	if s.Token == "" {
		return p.onReplica(ctx, keys, nil)
	}
	return p.onReplica(ctx, keys, func(ctx context.Context, conn *pgxpool.Conn) (yes bool, err error) {
		err = conn.QueryRow(ctx, reachedSQL, s.Token).Scan(&yes)
		return yes, err
	})
}

// Write implements Instance. A write whose position could not be taken counts as
// one whose outcome is not known.
func (p *probing) Write(ctx context.Context, s *Session, key, version int64) error {
	conn, err := p.primary.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if err := write(ctx, conn, key, version); err != nil {
		return err
	}
	return conn.QueryRow(ctx, positionSQL).Scan(&s.Token)
}
