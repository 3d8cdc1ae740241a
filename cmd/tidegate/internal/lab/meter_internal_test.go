package lab

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/fault"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// A statement of the application holds a slot of the primary for its cost, whether it
// reads or writes, and none can go on without one. Replicas have a capacity of their
// own, and what the lab itself asks costs nothing.
func TestMeter(t *testing.T) {
	t.Parallel()
	pgcluster.InstallForTest(t)
	const slots, cost = 2, 20 * time.Millisecond
	cfg := Config{Scenario: "steady", Replicas: 1, Instances: 1, Sessions: 2, PrimarySlots: slots, PrimaryCost: cost, ReplicaCost: time.Millisecond}
	s, err := raise(t.Context(), &cfg, fault.Scenario{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for range 2 { // what one strategy left is no trouble for the next
		if err := s.reset(t.Context(), 4); err != nil {
			t.Fatal(err)
		}
	}
	primary, replica := s.Primary(), s.Replicas()[0]
	for server, want := range map[*pgcluster.Server]string{primary: "2 of 20", replica: "0 of 1"} {
		got, err := server.SQL(t.Context(), "", "select current_setting('lab.slots') || ' of ' || current_setting('lab.cost_ms')")
		if got != want || err != nil {
			t.Errorf("%s has %q, %v, want %q", server.Name, got, err, want)
		}
	}
	connect := func(dsn string) *pgx.Conn {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}
	app, onReplica := connect(primary.DSN(appRole, "")), connect(replica.DSN(appRole, ""))
	read := func(conn *pgx.Conn) (n int, err error) {
		rows, err := conn.Query(t.Context(), strategy.ReadSQL, []int64{0, 1, 3, 4})
		if err != nil {
			return 0, err
		}
		for rows.Next() {
			n++
		}
		return n, rows.Err()
	}
	write := func(version int) (int64, error) {
		tag, err := app.Exec(t.Context(), strategy.WriteSQL, 2, version)
		return tag.RowsAffected(), err
	}

	began := time.Now()
	if n, err := read(app); n != 3 || err != nil {
		t.Errorf("read %d rows: %v", n, err)
	}
	if n, err := write(1); n != 1 || err != nil {
		t.Errorf("wrote %d rows: %v", n, err)
	}
	if took := time.Since(began); took < 2*cost {
		t.Errorf("two statements took %v", took)
	}

	// With all slots taken nothing of the application goes on, here.
	holder := connect(primary.DSN("", ""))
	for slot := range slots {
		if _, err := holder.Exec(t.Context(), "select pg_advisory_lock($1, $2)", meterClass, slot+1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := app.Exec(t.Context(), "set statement_timeout = 200"); err != nil {
		t.Fatal(err)
	}
	if n, err := read(app); err == nil {
		t.Errorf("read %d rows without a slot", n)
	}
	if n, err := write(2); err == nil {
		t.Errorf("wrote %d rows without a slot", n)
	}
	if n, err := read(onReplica); n != 3 || err != nil {
		t.Errorf("on the replica: read %d rows: %v", n, err)
	}
	if got, err := primary.SQL(t.Context(), "", "select v from "+strategy.Table+" where k = 2"); got != "1" || err != nil {
		t.Errorf("the lab's own look: %q, %v", got, err)
	}
	// One is enough, and whoever ends gives it back.
	if _, err := holder.Exec(t.Context(), "select pg_advisory_unlock($1, $2)", meterClass, slots); err != nil {
		t.Fatal(err)
	}
	if _, err := app.Exec(t.Context(), "set statement_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	for version := range 5 {
		if n, err := read(app); n != 3 || err != nil {
			t.Errorf("read %d rows: %v", n, err)
		}
		if n, err := write(version + 2); n != 1 || err != nil {
			t.Errorf("wrote %d rows: %v", n, err)
		}
	}
	locks := fmt.Sprintf("select count(*) from pg_locks where locktype = 'advisory' and classid = %d", meterClass)
	if got, err := primary.SQL(t.Context(), "", locks); got != "1" || err != nil {
		t.Errorf("%q slots are taken, %v", got, err)
	}
}
