package pgxgate

import (
	"context"
	"sync"

	"github.com/tidegatedb/tidegate/engine"
)

// The throttle for bulk jobs; see package engine for its meaning. A lag is in bytes
// of the log.
type (
	// Throttle holds a bulk job back while replicas are too far behind.
	Throttle = engine.Throttle
	// ThrottleConfig says when.
	ThrottleConfig = engine.ThrottleConfig
	// ThrottleStats counts what a Throttle did.
	ThrottleStats = engine.ThrottleStats
	// LaggingError says what lag there was when a job had waited as long as it may.
	LaggingError = engine.LaggingError
)

// NewThrottle returns a throttle for one bulk job, which calls its Wait before each
// batch. The job's workers share it. Errors wrap [tidegate.ErrConfig] and name the
// field.
func (db *DB) NewThrottle(cfg ThrottleConfig) (*Throttle, error) { return db.core.NewThrottle(cfg) }

// defaultThrottle is the throttle of those who have made none.
type defaultThrottle struct {
	once sync.Once
	*Throttle
}

// Throttle returns when replicas are near enough to the primary for a bulk job's
// next batch, by the throttle of the zero [ThrottleConfig], which all callers share:
//
//	for more {
//		if err := db.Throttle(ctx); err != nil {
//			return err
//		}
//		more, err = batch(ctx)
//		...
//	}
//
// Errors are [tidegate.ErrClosed] or wrap the context's.
func (db *DB) Throttle(ctx context.Context) error {
	th := &db.throttle
	th.once.Do(func() { th.Throttle, _ = db.core.NewThrottle(ThrottleConfig{}) }) // the zero value is valid
	return th.Wait(ctx)
}
