package fault

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// slowStandbyApply makes every replica late by the same time all along: longer
// than the pause between a write and the read that follows. The delay is counted
// from the commit's time by the primary's clock, which is also the replicas'
// here.
var slowStandbyApply = Scenario{
	Name:          "slow-standby-apply",
	About:         "all replicas apply each commit 25 ms late (--apply-delay)",
	Opportunities: 500,
	Inject:        delayApply,
}

func delayApply(ctx context.Context, site *Site, duration time.Duration) (err error) {
	const setting = "recovery_min_apply_delay"
	defer repair(ctx, &err, func(ctx context.Context) error {
		var errs []error
		for _, r := range site.Replicas {
			errs = append(errs, Alter(ctx, r, setting, ""))
		}
		site.Say("")
		return errors.Join(errs...)
	})
	for _, r := range site.Replicas {
		if err := Alter(ctx, r, setting, fmt.Sprintf("%dms", site.ApplyDelay.Milliseconds())); err != nil {
			return unlessOver(ctx, err)
		}
	}
	site.Say(fmt.Sprintf("replicas apply %v late", site.ApplyDelay))
	_ = sleep(ctx, duration)
	return nil
}
