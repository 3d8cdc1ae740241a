package fault

import (
	"context"
	"fmt"
	"time"
)

// hang is a replica that neither answers nor breaks a connection: a machine that swaps, a
// disk that does not come back, a virtual machine that is moved. All its processes are
// stopped, and go on later as if nothing had been. What was sent to it before anybody could
// notice has no answer before its deadline, and reads have one.
var hang = Scenario{
	Name:         "hang",
	About:        "all processes of one replica stand still for half of the run, 10 s at most; its connections stay open and nothing answers",
	Rate:         400,
	ReadDeadline: 2 * time.Second,
	Hangs:        true,
	Inject:       suspendOne,
}

func suspendOne(ctx context.Context, site *Site, duration time.Duration) (err error) {
	n := len(site.Replicas)
	victim := site.Replicas[n-1]
	if err := sleep(ctx, duration/5); err != nil {
		return nil
	}
	over := site.Trouble(n - 1)
	defer repair(ctx, &err, func(context.Context) error {
		defer over()
		site.Say("")
		return victim.Resume()
	})
	if err := victim.Suspend(); err != nil {
		return err
	}
	site.Say(fmt.Sprintf("replica %d hangs", n))
	_ = sleep(ctx, min(duration/2, 10*time.Second))
	return nil
}
