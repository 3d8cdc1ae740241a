package lab

import (
	"context"
	"fmt"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/fault"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
)

// meterClass tells the meter's advisory locks from any others.
const meterClass = 7411

// meterSQL gives statements of the application their cost. A role finds a view of its
// own schema before the table of the same name, so that the strategies' statements are
// what they always are; the lab's own role reads the table, for nothing. The function
// runs once for each statement, before the first row is looked at. A slot is a
// lock of the statement's transaction, which nobody can keep: free ones are taken,
// and if there is none the statement queues for one of them, where the first comes first.
//
// The settings are the server's own, so that each server can have another capacity.
var meterSQL = fmt.Sprintf(`
	create schema %[1]s;
	create function %[1]s.serve() returns boolean language plpgsql as $$
	declare
		slots int := current_setting('%[2]s');
		cost float8 := current_setting('%[3]s')::float8 / 1000;
		served boolean := slots = 0;
	begin
		if cost = 0 then return true; end if;
		for slot in 1..slots loop
			served := pg_try_advisory_xact_lock(%[4]d, slot);
			exit when served;
		end loop;
		if not served then
			perform pg_advisory_xact_lock(%[4]d, 1 + floor(random() * slots)::int);
		end if;
		perform pg_sleep(cost);
		return true;
	end $$;
	create view %[1]s.%[5]s as select k, v from public.%[5]s where (select %[1]s.serve());
	grant usage on schema %[1]s to %[1]s;
	grant select, update on %[1]s.%[5]s to %[1]s;`,
	appRole, fault.SlotsSetting, fault.CostSetting, meterClass, strategy.Table)

// conflicts is how many queries the replicas have canceled so far because they were in the
// way of what had to be replayed.
func (s *stage) conflicts(ctx context.Context) (n int, err error) {
	for _, r := range s.Replicas() {
		out, err := r.SQL(ctx, "", "select sum(confl_tablespace + confl_lock + confl_snapshot + confl_bufferpin + confl_deadlock) from pg_stat_database_conflicts")
		if err != nil {
			return 0, err
		}
		var one int
		if _, err := fmt.Sscan(out, &one); err != nil {
			return 0, fmt.Errorf("recovery conflicts of %s: %w", r.Name, err)
		}
		n += one
	}
	return n, nil
}
