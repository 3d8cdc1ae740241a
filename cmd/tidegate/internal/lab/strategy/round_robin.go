package strategy

import (
	"context"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// RoundRobin sends writes to the primary and reads to each replica in turn, as
// most applications with replicas do. It knows nothing of what a session has
// seen, and its token is empty.
type RoundRobin struct{}

// Name implements Strategy.
func (RoundRobin) Name() string { return "round-robin" }

// About implements Strategy.
func (RoundRobin) About() string {
	return "writes to the primary, reads to each replica in turn"
}

// Open implements Strategy.
func (RoundRobin) Open(ctx context.Context, instance int, nodes Nodes, cfg Config) (Instance, error) {
	p, err := openPools(ctx, instance, nodes, cfg)
	if err != nil {
		return nil, err
	}
	return &roundRobin{p}, nil
}

type roundRobin struct{ *pools }

// Read implements Instance.
func (r *roundRobin) Read(ctx context.Context, _ *Session, keys []int64) (record.Answer, error) {
	return r.onReplica(ctx, keys, nil)
}
