package strategy

import (
	"context"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// PrimaryOnly reads and writes on the primary. Nothing can be stale there; it is
// what the others are compared with for the load that they take off the primary.
type PrimaryOnly struct{}

// Name implements Strategy.
func (PrimaryOnly) Name() string { return "primary-only" }

// About implements Strategy.
func (PrimaryOnly) About() string { return "reads and writes on the primary" }

// Open implements Strategy.
func (PrimaryOnly) Open(ctx context.Context, instance int, nodes Nodes, cfg Config) (Instance, error) {
	p, err := openPools(ctx, instance, Nodes{Primary: nodes.Primary}, cfg)
	if err != nil {
		return nil, err
	}
	return &primaryOnly{p}, nil
}

type primaryOnly struct{ *pools }

// Read implements Instance. A connection that has broken is replaced once, as
// the other strategies go elsewhere once.
func (p *primaryOnly) Read(ctx context.Context, _ *Session, keys []int64) (record.Answer, error) {
	answer, err := p.onPrimary(ctx, keys, reasonAlways)
	if err != nil && ctx.Err() == nil {
		answer, err = p.onPrimary(ctx, keys, reasonAlways)
	}
	return answer, err
}
