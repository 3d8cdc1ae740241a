package fault

import (
	"context"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// smallPrimary serves 250 statements a second.
var smallPrimary = Capacity{Slots: 4, Cost: 16 * time.Millisecond}

// stampede is the worst moment for a primary: it is sized for the writes, and all at
// once every read wants it, because no replica has what the sessions have written.
// With this load it has more than twice the room that the writes need, and half of
// what they and the reads take together. There are many sessions: each has one request
// at a time, and few would hold each other back instead of coming all at once. A fifth
// of the reads takes an old answer rather than none.
var stampede = Scenario{
	Name:          "stampede",
	About:         "all replicas stop replaying for the middle third of the run, and a primary with little room gets all their reads",
	Strategies:    []string{"tidegate", "tidegate-unlimited"},
	Sessions:      256,
	Rate:          400,
	Primary:       smallPrimary,
	Relaxed:       0.2,
	Budgets:       []record.Budget{{Within: time.Second, OnBreach: record.StaleWhenShed}},
	ReadDeadline:  time.Second,
	Sheds:         true,
	Opportunities: 100, // reads that are sent away were in none
	Inject: func(ctx context.Context, site *Site, duration time.Duration) error {
		return pauseReplay(ctx, site, everyReplica(site), "no replica replays anything", duration/3, duration/3)
	},
}
