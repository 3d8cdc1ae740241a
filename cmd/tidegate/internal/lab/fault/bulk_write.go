package fault

import (
	"context"
	"fmt"
	"time"
)

// bulkWrite is lag as it comes by itself: a job writes as much as it can, and
// the replicas, which replay with one process each, fall behind.
var bulkWrite = Scenario{
	Name:          "bulk-write",
	About:         "bulk loads on the primary, one after another, which the replicas replay late",
	Opportunities: 100,
	Settings:      map[string]string{"max_wal_size": "4GB"},
	Inject:        loadInBulk,
}

// loadRows makes some 15 MB of WAL: well below what the primary keeps for a
// replica that is late.
const loadRows = 100_000

func loadInBulk(ctx context.Context, site *Site, duration time.Duration) (err error) {
	defer site.Say("")
	end := time.Now().Add(duration * 9 / 10)
	defer repair(ctx, &err, func(ctx context.Context) error { return on(ctx, site.Primary, "drop table if exists "+bulk) })
	err = on(ctx, site.Primary, "drop table if exists "+bulk+"; create table "+bulk+" (k bigint primary key)")
	for round := 1; err == nil && ctx.Err() == nil && time.Now().Before(end); round++ {
		site.Say(fmt.Sprintf("bulk load %d", round))
		err = loadOnce(ctx, site)
		site.Say("")
		if err == nil {
			_ = sleep(ctx, duration/40)
		}
	}
	return unlessOver(ctx, err)
}

// loadOnce loads and waits until every replica has it all, so that the lag of one
// load does not add to that of the next.
func loadOnce(ctx context.Context, site *Site) error {
	sql := fmt.Sprintf("truncate %[1]s; insert into %[1]s select generate_series(1, %[2]d)", bulk, loadRows)
	if err := on(ctx, site.Primary, sql); err != nil {
		return err
	}
	for _, r := range site.Replicas {
		if err := caughtUp(ctx, site.Primary, r); err != nil {
			return err
		}
	}
	return nil
}
