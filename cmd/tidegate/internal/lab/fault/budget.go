package fault

import (
	"context"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// budget has half of the reads be content with an older answer, of a stated age:
// while replicas have it they take load off a primary that cannot have all, and when
// they have not each class does what it says. The pause is longer than the shorter
// budgets and, in a run of less than half a minute, shorter than the longest.
var budget = Scenario{
	Name:          "budget",
	About:         "half of the reads may be 100 ms, 1 s or 10 s old, and all replicas stop replaying for two fifths of the run",
	Sessions:      256,
	Rate:          400,
	Primary:       smallPrimary,
	Relaxed:       0.5,
	Budgets:       record.Budgets(100*time.Millisecond, time.Second, 10*time.Second),
	ReadDeadline:  time.Second,
	Sheds:         true,
	Opportunities: 100,
	Inject: func(ctx context.Context, site *Site, duration time.Duration) error {
		return pauseReplay(ctx, site, everyReplica(site), "no replica replays anything", duration/5, duration*2/5)
	},
}
