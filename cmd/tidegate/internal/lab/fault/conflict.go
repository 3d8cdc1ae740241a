package fault

import (
	"context"
	"time"
)

// conflict is what a replica does to a query whose snapshot still needs rows that the
// primary has cleaned away: it waits for a moment, and cancels it. Every read lasts
// longer than that moment, so that many are canceled before they have answered.
var conflict = Scenario{
	Name:      "conflict",
	About:     "reads take replicas 30 ms, the primary vacuums ten times a second, and replicas cancel what is in the way after 5 ms",
	Settings:  map[string]string{"max_standby_streaming_delay": "5ms", "autovacuum": "off"},
	Rate:      300,
	Replicas:  Capacity{Cost: 30 * time.Millisecond},
	Conflicts: true,
	Inject:    vacuumOften,
}

func vacuumOften(ctx context.Context, site *Site, duration time.Duration) error {
	site.Say("the primary vacuums")
	defer site.Say("")
	end := time.Now().Add(duration * 9 / 10)
	for time.Now().Before(end) {
		if err := on(ctx, site.Primary, "vacuum "+site.Table); err != nil {
			return unlessOver(ctx, err)
		}
		if sleep(ctx, 100*time.Millisecond) != nil {
			return nil
		}
	}
	return nil
}
