package strategy

import (
	"context"
	"math"
)

// Unlimited is tidegate with no limit of its own on the reads that fall back to the
// primary: they take all connections that reads may have there, and queue for those
// for as long as their deadlines let them. It shows what the limit is for.
type Unlimited struct{ Tidegate }

// Name implements Strategy.
func (Unlimited) Name() string { return "tidegate-unlimited" }

// About implements Strategy.
func (Unlimited) About() string {
	return "tidegate without a limit on the reads that fall back to the primary"
}

// Open implements Strategy.
func (u Unlimited) Open(ctx context.Context, instance int, nodes Nodes, cfg Config) (Instance, error) {
	cfg.FallbackReads, cfg.FixedFallbacks = math.MaxInt32, true
	return u.Tidegate.Open(ctx, instance, nodes, cfg)
}
