package fault

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ddl is a migration while the sessions go on. Changing a column's type makes
// the plans useless that connections have cached for their statements. Dropping
// many tables takes a replica a while after it has shown the commit and before
// it says so; the witness, written in the same transaction, lets sessions see
// that commit.
var ddl = Scenario{
	Name:     "ddl",
	About:    "a migration of the table that is read: new column, index, types; and hundreds of tables are dropped at once",
	Witness:  true,
	Migrates: true,
	// While the tables are dropped the replicas stand still.
	Opportunities: 50,
	Inject:        migrate,
}

// droppedTables are dropped in one transaction.
const droppedTables = 300

const (
	createTables = `do $$ begin for i in 1..%d loop execute format('create table lab_drop_%%s (k bigint)', i); end loop; end $$`
	dropTables   = `do $$ begin for i in 1..%d loop execute format('drop table if exists lab_drop_%%s', i); end loop; end $$`
)

func migrate(ctx context.Context, site *Site, duration time.Duration) (err error) {
	start := time.Now()
	defer site.Say("")
	defer repair(ctx, &err, func(ctx context.Context) error {
		return errors.Join(
			on(ctx, site.Primary, fmt.Sprintf(dropTables, droppedTables)),
			on(ctx, site.Primary, "drop index if exists lab_by_version"),
			on(ctx, site.Primary, fmt.Sprintf("alter table %[1]s drop column if exists note; alter table %[1]s alter column v type bigint", site.Table)),
		)
	})
	table := site.Table
	steps := []struct {
		tenth    int
		say, sql string
	}{
		{1, "a column is added", "alter table " + table + " add column note text"},
		{2, "an index is created", "create index concurrently lab_by_version on " + table + " (v)"},
		{3, "a column's type changes", "alter table " + table + " alter column v type integer"},
		{4, "", ""},
		{6, "a column's type changes back", "alter table " + table + " alter column v type bigint"},
		{7, "", ""},
	}
	for _, s := range steps {
		if s.sql == "" {
			// Made ready before its time.
			if err := on(ctx, site.Primary, fmt.Sprintf(createTables, droppedTables)); err != nil {
				return unlessOver(ctx, err)
			}
			s.say = fmt.Sprintf("%d tables are dropped", droppedTables)
		}
		if err := sleep(ctx, time.Until(start.Add(duration*time.Duration(s.tenth)/10))); err != nil {
			return nil
		}
		if s.sql == "" {
			s.sql = fmt.Sprintf(dropTables, droppedTables) + "; " + site.Witness()
		}
		site.Say(s.say)
		err := on(ctx, site.Primary, s.sql)
		site.Say("")
		if err != nil {
			return unlessOver(ctx, err)
		}
	}
	return nil
}
