package fault

import (
	"context"
	"fmt"
	"time"
)

// slowReplica is a replica with everything in time and answers that are late, as one
// with a cold cache or a tired disk. What a strategy asks it of its position it answers
// at once: only the reads of the table are slow, inside the server.
var slowReplica = Scenario{
	Name:     "slow-replica",
	About:    "one replica takes 30 ms for each read instead of 1 ms, for three fifths of the run, and does not lag",
	Rate:     400,
	Replicas: Capacity{Cost: quickCost},
	Inject:   slowDown,
}

// What a read costs on a replica, and on one that is slow.
const (
	quickCost = time.Millisecond
	slowCost  = 30 * time.Millisecond
)

func slowDown(ctx context.Context, site *Site, duration time.Duration) (err error) {
	n := len(site.Replicas)
	victim := site.Replicas[n-1]
	if err := sleep(ctx, duration/5); err != nil {
		return nil
	}
	over := site.Trouble(n - 1)
	defer repair(ctx, &err, func(ctx context.Context) error {
		defer over()
		site.Say("")
		return setCost(ctx, victim, quickCost)
	})
	if err := setCost(ctx, victim, slowCost); err != nil {
		return unlessOver(ctx, err)
	}
	site.Say(fmt.Sprintf("replica %d is slow", n))
	_ = sleep(ctx, duration*3/5)
	return nil
}
