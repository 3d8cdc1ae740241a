package lab

import (
	"context"
	"sync"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/traffic"
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
func warmUp(ctx context.Context, fleet traffic.Backend, instances int, firstKey int64) {
	var wg sync.WaitGroup
	for n := range instances {
		for i := range int64(warmSessions) {
			wg.Go(func() {
				client := fleet.Client(-1 - int(i)) // none of the load's
				key := firstKey + i
				for round := range warmRounds {
					if ctx.Err() != nil {
						return
					}
					client.Write(ctx, &record.Op{Instance: n, Key: key, Version: int64(round*instances+n) + 1})
					client.Read(ctx, &record.Op{Instance: n, Asked: []int64{key}})
				}
			})
		}
	}
	wg.Wait()
}
