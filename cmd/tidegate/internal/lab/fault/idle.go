package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// idle is the time when nothing happens. Replicas that have everything must not
// look late because nothing new comes.
var idle = Scenario{
	Name:      "idle",
	About:     "sessions write for a fifth of the run, and then nothing is written at all",
	Settings:  map[string]string{"autovacuum": "off"}, // it writes, too
	WritesEnd: 0.2,
}

// idleWriter is a forgotten transaction: what it wrote is in the log, its commit
// will never be.
var idleWriter = Scenario{
	Name:   "idle-writer",
	About:  "a transaction on the primary has written and sits idle for the run",
	Inject: sitIdle,
}

// idleRows is the table of the transaction that sits idle.
const idleRows = "lab_idle"

func sitIdle(ctx context.Context, site *Site, duration time.Duration) (err error) {
	defer repair(ctx, &err, func(ctx context.Context) error { return on(ctx, site.Primary, "drop table if exists "+idleRows) })
	if err := on(ctx, site.Primary, "drop table if exists "+idleRows+"; create table "+idleRows+" (k bigint)"); err != nil {
		return unlessOver(ctx, err)
	}
	conn, err := pgx.Connect(ctx, site.Primary.DSN("", ""))
	if err != nil {
		return unlessOver(ctx, err)
	}
	defer hangUp(conn) // which rolls back, before the table is dropped
	if _, err := conn.Exec(ctx, fmt.Sprintf("begin; insert into %s select generate_series(1, 1000)", idleRows)); err != nil {
		return unlessOver(ctx, err)
	}
	site.Say("a transaction has written and sits idle")
	defer site.Say("")
	_ = sleep(ctx, duration)
	if conn.PgConn().TxStatus() != 'T' {
		return errors.New("the idle transaction has ended by itself")
	}
	return nil
}
