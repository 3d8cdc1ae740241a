package fault_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/fault"
)

func find(t *testing.T, name string) fault.Scenario {
	t.Helper()
	s, err := fault.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What these do, they do by what they say.
func TestScenariosWithoutAFault(t *testing.T) {
	t.Parallel()
	if s := find(t, "idle"); s.WritesEnd != 0.2 || s.Settings["autovacuum"] != "off" || s.Opportunities != 0 {
		t.Errorf("idle: %+v", s)
	}
	if s := find(t, "churn"); s.ConnLifetime != time.Second {
		t.Errorf("churn: connections live %v", s.ConnLifetime)
	}
	for _, s := range fault.All() {
		if loses := s.Name == "lost-token"; s.Drops > 0 != loses || loses && (s.Drops > 0.1 || s.Inject == nil) {
			t.Errorf("%s: clients lose their tokens before %v of the operations", s.Name, s.Drops)
		}
		if may := slices.Contains([]string{"crash-backend", "restart-replica", "kill-replica"}, s.Name); s.Errors != may {
			t.Errorf("%s: errors are possible: %v", s.Name, s.Errors)
		}
	}
}

// A job writes its batches faster than replicas replay them, unless something has it wait.
func TestBackfill(t *testing.T) {
	t.Parallel()
	tr, s := newTrial(t, "backfill")
	const d = 3 * time.Second
	// run returns the rows of the job, and what replicas need after it for those that they
	// have yet to replay.
	run := func(throttle func(context.Context) error) (rows int, late time.Duration) {
		t.Helper()
		site := tr.site()
		site.Throttle = throttle
		var last time.Time
		site.Batch = func(n int) { rows, last = rows+n, time.Now() }
		site.Say = func(what string) {
			if what == "" {
				late = time.Since(last)
			}
		}
		if err := s.Inject(t.Context(), site, d); err != nil {
			t.Fatal(err)
		}
		return rows, late
	}
	// On a machine that is busy enough the job is too slow for replicas to be late.
	for again := 4; ; again-- {
		rows, free := run(nil)
		waits := 0
		throttled, held := run(func(ctx context.Context) error {
			waits++
			return tr.cluster.Primary().WaitCaughtUp(ctx, 2)
		})
		if rows == 0 || throttled == 0 || waits*100 != throttled {
			t.Fatalf("%d rows, and %d with %d waits", rows, throttled, waits)
		}
		if free >= 2*held {
			break
		}
		t.Logf("replicas were late by %v, and by %v where the job waits for them", free, held)
		if again == 0 {
			t.Fatal("the job never made replicas late")
		}
	}
	const tables = "select count(*) from pg_tables where tablename like 'lab%'"
	tr.query(tr.cluster.Primary(), tables, "0")
	tr.cutShort(s, d)
	tr.query(tr.cluster.Primary(), tables, "0")
}

func TestIdleWriter(t *testing.T) {
	t.Parallel()
	tr, s := newTrial(t, "idle-writer")
	const sitting = "select count(*) from pg_stat_activity where state = 'idle in transaction' and backend_xid is not null"
	seen := ""
	site := tr.site()
	site.Say = func(what string) {
		if what != "" {
			seen, _ = tr.cluster.Primary().SQL(t.Context(), "", sitting)
		}
	}
	if err := s.Inject(t.Context(), site, 100*time.Millisecond); err != nil {
		t.Error(err)
	}
	if seen != "1" {
		t.Errorf("%q transactions sat idle", seen)
	}
	tr.cutShort(s, time.Minute)
	tr.query(tr.cluster.Primary(), sitting, "0")
	tr.query(tr.cluster.Primary(), "select count(*) from pg_tables where tablename like 'lab%'", "0")
}

// The migration makes a cached plan fail, drops many tables in a transaction that
// the witness tells of, and leaves the table as it was.
func TestDDL(t *testing.T) {
	t.Parallel()
	tr, s := newTrial(t, "ddl")
	conn, err := pgx.Connect(t.Context(), tr.cluster.Primary().DSN("", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Prepare(t.Context(), "read", "select v from r where k = 0"); err != nil {
		t.Fatal(err)
	}
	said := map[string]string{} // what was wrong when it was said
	site := tr.site()
	last := ""
	site.Say = func(what string) {
		if what == "" && last != "" { // it has just happened
			_, err := conn.Exec(t.Context(), "read")
			said[last] = ""
			if err != nil {
				said[last] = err.Error()
				_ = conn.DeallocateAll(t.Context())
				_, _ = conn.Prepare(t.Context(), "read", "select v from r where k = 0")
			}
		}
		last = what
	}
	if err := s.Inject(t.Context(), site, 3*time.Second); err != nil {
		t.Fatal(err)
	}
	for what, wrong := range map[string]bool{
		"a column is added": false, "an index is created": false, "300 tables are dropped": false,
		"a column's type changes": true, "a column's type changes back": true,
	} {
		got, happened := said[what]
		if !happened || strings.Contains(got, "cached plan must not change result type") != wrong {
			t.Errorf("%s: happened %v, the cached plan says %q", what, happened, got)
		}
	}
	tr.query(tr.cluster.Primary(), "select v from r where k = 1", "2")
	asBefore := func() {
		t.Helper()
		tr.query(tr.cluster.Primary(), "select count(*) from pg_tables where tablename like 'lab%'", "0")
		tr.query(tr.cluster.Primary(), "select string_agg(attname || ' ' || atttypid::regtype, ', ') from pg_attribute where attrelid = 'r'::regclass and attnum > 0 and not attisdropped", "k bigint, v bigint")
		tr.query(tr.cluster.Primary(), "select count(*) from pg_indexes where tablename = 'r'", "0")
	}
	asBefore()
	tr.cutShort(s, time.Second)
	asBefore()
	// Cut short where the most is to be undone.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	site = tr.site()
	site.Say = func(what string) {
		if what == "300 tables are dropped" {
			cancel()
		}
	}
	if err := s.Inject(ctx, site, time.Second); err != nil {
		t.Errorf("cut short: %v", err)
	}
	asBefore()
}

func TestDeploy(t *testing.T) {
	t.Parallel()
	tr, s := newTrial(t, "deploy")
	lagging := 0
	site := tr.site()
	site.Replace = func(_ context.Context, instance int) error {
		tr.replaced = append(tr.replaced, instance)
		if instance == 0 && tr.paused() { // to ask takes time, on a busy machine more than there is
			lagging++
		}
		return nil
	}
	if err := s.Inject(t.Context(), site, 3*time.Second); err != nil {
		t.Fatal(err)
	}
	if want := []int{0, 1, 2, 0, 1, 2}; !slices.Equal(tr.replaced, want) || lagging != 2 {
		t.Errorf("replaced were %v, %d times while a replica lagged", tr.replaced, lagging)
	}
	if tr.paused() {
		t.Error("a replica stays paused")
	}
	tr.cutShort(s, time.Second)
	if tr.paused() {
		t.Error("cut short: a replica stays paused")
	}
}
