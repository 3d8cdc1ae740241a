package lab

import (
	"context"
	"sync"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
)

const (
	// warmSessions serve at once while an instance warms up, each with a row of
	// its own behind those of the load.
	warmSessions = 8
	warmRounds   = 25
)

// warmUp lets instances serve a little before anything is measured, so that
// their connections are open and their statements prepared, whenever a strategy
// does that by itself. What fails here will fail again where it is counted.
func warmUp(ctx context.Context, instances []strategy.Instance, firstKey int64) {
	var wg sync.WaitGroup
	for n, instance := range instances {
		for i := range int64(warmSessions) {
			wg.Go(func() {
				s := &strategy.Session{ID: -1 - int(i)} // none of the load's
				keys := []int64{firstKey + i}
				for round := range warmRounds {
					if ctx.Err() != nil {
						return
					}
					_ = instance.Write(ctx, s, keys[0], int64(round*len(instances)+n)+1)
					_, _ = instance.Read(ctx, s, keys)
				}
			})
		}
	}
	wg.Wait()
}
