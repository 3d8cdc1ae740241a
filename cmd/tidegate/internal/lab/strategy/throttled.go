package strategy

import (
	"context"
	"time"

	"github.com/tidegatedb/tidegate/pgxgate"
)

// Throttling is an instance that holds bulk jobs back.
type Throttling interface {
	// Throttle returns when a bulk job may write its next batch.
	Throttle(ctx context.Context) error
	// Throttled is how many batches had to wait so far, and for how long in all.
	Throttled() (waits int, waited time.Duration)
}

// Throttled is tidegate whose bulk jobs ask before each batch whether replicas are near
// enough.
type Throttled struct{ Tidegate }

// Name implements Strategy.
func (Throttled) Name() string { return "tidegate-throttled" }

// About implements Strategy.
func (Throttled) About() string {
	return "tidegate, with bulk jobs that wait while a replica is behind"
}

// The marks. Reads notice a lag that is longer than they may wait, so that the age is
// not above that. The bytes are about what one batch of the job writes: replicas have to
// replay it before the next, and the job does not go on until an age shows.
const (
	throttleAge = 100 * time.Millisecond
	throttleLag = 8 << 10
)

// Open implements Strategy.
func (t Throttled) Open(ctx context.Context, instance int, nodes Nodes, cfg Config) (Instance, error) {
	opened, err := t.Tidegate.Open(ctx, instance, nodes, cfg)
	if err != nil {
		return nil, err
	}
	g := opened.(*gated)
	th, err := g.db.NewThrottle(pgxgate.ThrottleConfig{MaxStaleness: throttleAge, MaxLag: throttleLag})
	if err != nil {
		g.Close()
		return nil, err
	}
	return &throttled{g, th}, nil
}

type throttled struct {
	*gated
	throttle *pgxgate.Throttle
}

// Throttle implements Throttling.
func (t *throttled) Throttle(ctx context.Context) error { return t.throttle.Wait(ctx) }

// Throttled implements Throttling.
func (t *throttled) Throttled() (waits int, waited time.Duration) {
	s := t.throttle.Stats()
	return int(s.Waits), s.Waited
}
