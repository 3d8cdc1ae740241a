package pgxgate_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// TestClocksThatAreWrong: for its role one replica's clock is 744 seconds fast and the other's
// as slow, as far as SQL can tell. Nothing of what is decided knows.
func TestClocksThatAreWrong(t *testing.T) {
	c := cluster(t)
	fast, slow := c.Replicas()[0], c.Replicas()[1]
	wrong := func(name string) string {
		return "create function wrong." + name + "() returns timestamptz language sql volatile as $$ select pg_catalog." + name +
			"() + interval '744 seconds' * case current_setting('cluster_name') when '" + fast.Name + "' then 1 when '" + slow.Name + "' then -1 else 0 end $$;"
	}
	sql(t, c.Primary(), "create role clocks login; grant all on kv to clocks; create schema wrong; grant usage on schema wrong to clocks;"+
		wrong("now")+wrong("clock_timestamp")+wrong("statement_timestamp")+wrong("transaction_timestamp")+wrong("pg_postmaster_start_time")+
		"alter role clocks set search_path = wrong, pg_catalog, public")
	afterwards(t, c.Primary(), "drop schema wrong cascade; drop owned by clocks; drop role clocks")
	caughtUp(t, c)

	db := open(t, c, func(cfg *pgxgate.Config) {
		for i, s := range c.Servers() {
			cfg.Nodes[i].DSN = s.DSN("clocks", "postgres")
		}
		cfg.LongestLag = time.Minute
	})
	fresh := tidegate.Relaxed("wrong-clocks", "test", tidegate.Within(30*time.Second))
	wrote, _ := inSession(t)
	k := key(t)
	used := map[string]int{}
	for i := range int64(100) {
		must[any](t)(db.Write().Exec(wrote, update, k, i))
		var v int64
		if err := db.Read(tidegate.Causal).QueryRow(wrote, get, k).Scan(&v); err != nil || v != i {
			t.Fatalf("got %d, want %d, error %v", v, i, err)
		}
		// A session without a mark takes no replica that is older than LongestLag.
		for _, class := range []tidegate.Class{tidegate.Causal, fresh} {
			ctx, seen := inSession(t)
			var shows float64
			if err := db.Read(class).QueryRow(ctx, "select extract(epoch from now())::float8").Scan(&shows); err != nil {
				t.Fatal(err)
			}
			d, _ := seen.Last()
			off := shows - float64(time.Now().Unix())
			if want := map[string]float64{fast.Name: 744, slow.Name: -744}[d.Node]; math.Abs(off-want) > 60 {
				t.Fatalf("the clock of %s is %v seconds off, want %v", d.Node, off, want)
			}
			if d.Role != tidegate.RoleReplica || d.Waited > 0 || !d.StalenessKnown || d.Staleness > 30*time.Second {
				t.Errorf("%s: %v", class.Name(), d)
			}
			used[d.Node]++
		}
	}
	t.Logf("reads by node: %v", used)
	if min(used[fast.Name], used[slow.Name]) < 50 {
		t.Errorf("they were used %v times", used)
	}
	for _, n := range db.Status().Nodes {
		if n.Err != nil || n.Ejection != tidegate.EjectionNone || n.Role == tidegate.RoleReplica && (!n.StalenessKnown || n.Staleness > 30*time.Second) {
			t.Errorf("%+v", n)
		}
	}
	// The opportunity: what the servers themselves say of their lag.
	for s, want := range map[*pgcluster.Server]float64{fast: 744, slow: -744} {
		out := sql(t, s, "set role clocks; set search_path = wrong, pg_catalog; select extract(epoch from now() - pg_last_xact_replay_timestamp())")
		if lag, err := strconv.ParseFloat(out, 64); err != nil || math.Abs(lag-want) > 60 {
			t.Errorf("%s takes its lag for %s seconds, want about %v", s.Name, out, want)
		}
	}
}
