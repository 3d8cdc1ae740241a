package fault

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// deploy replaces every instance of the application, twice, while a replica lags:
// what an instance knew of a session is gone unless the session's carrier brings
// it along, and the lagging replica shows who has lost it.
var deploy = Scenario{
	Name:          "deploy",
	About:         "all application instances are replaced within seconds, twice, while one replica lags",
	Strategies:    []string{"tidegate", "tidegate-memory", "tidegate-amnesia"},
	Opportunities: 1000,
	Inject:        replaceInstances,
}

func replaceInstances(ctx context.Context, site *Site, duration time.Duration) error {
	var lag sync.WaitGroup
	var lagErr error
	n := len(site.Replicas)
	lag.Go(func() {
		what := fmt.Sprintf("replica %d replays nothing", n)
		lagErr = pauseReplay(ctx, site, []int{n - 1}, what, duration/5, duration*3/5)
	})
	err := replaceTwice(ctx, site, duration)
	lag.Wait()
	return errors.Join(lagErr, err)
}

func replaceTwice(ctx context.Context, site *Site, duration time.Duration) error {
	start := time.Now()
	for _, tenths := range []time.Duration{4, 6} {
		if err := sleep(ctx, time.Until(start.Add(duration*tenths/10))); err != nil {
			return nil
		}
		for i := range site.Instances {
			site.Say(fmt.Sprintf("instance %d is replaced", i+1))
			if err := site.Replace(ctx, i); err != nil {
				return unlessOver(ctx, err)
			}
		}
		site.Say("")
	}
	return nil
}
