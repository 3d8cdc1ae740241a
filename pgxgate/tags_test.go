package pgxgate_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// Reports read from the replica that is tagged for them and nobody else does, while many
// sessions write, and change between the two.
func TestReportingApart(t *testing.T) {
	c := cluster(t)
	users, reporting := c.Replicas()[0].Name, c.Replicas()[1].Name
	report := tidegate.NewCausal("report", "test", tidegate.Require("reporting"))
	rollup := tidegate.Relaxed("rollup", "test", tidegate.Within(time.Minute), tidegate.Require("reporting"), tidegate.FailWhenStale())
	board := tidegate.Relaxed("board", "test", tidegate.AnyStaleness())
	db := open(t, c, func(cfg *pgxgate.Config) {
		cfg.Nodes[2].Tags, cfg.Nodes[2].Dedicated = []string{"reporting"}, true
	})
	wants := map[tidegate.Class]string{tidegate.Causal: users, board: users, report: reporting, rollup: reporting}
	on := map[tidegate.Class]*atomic.Int64{}
	for class := range wants {
		on[class] = &atomic.Int64{}
	}
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
	defer stop()
	var wg sync.WaitGroup
	for range 8 {
		k := key(t)
		wg.Go(func() {
			s := tidegate.WithSession(t.Context(), tidegate.NewSession())
			written := int64(0)
			read := func(class tidegate.Class) {
				s, seen := tidegate.Observe(s)
				var v int64
				err := db.Read(class).QueryRow(s, get, k).Scan(&v)
				d, _ := seen.Last()
				if err != nil || class.Need() == tidegate.NeedCausal && v != written {
					t.Errorf("%d after %d, error %v (%v)", v, written, err, d)
				}
				for _, d := range seen.All() {
					if d.Role == tidegate.RoleReplica && d.Node != wants[class] {
						t.Errorf("went to %v", d)
					}
				}
				if d.Role == tidegate.RoleReplica {
					on[class].Add(1)
				}
			}
			for i := int64(1); ctx.Err() == nil && !t.Failed(); i++ {
				if i%10 == 1 {
					written = i
					if _, err := db.Write().Exec(s, update, k, i); err != nil {
						t.Errorf("a write: %v", err)
						return
					}
				}
				read(tidegate.Causal)
				read([]tidegate.Class{report, board, rollup, tidegate.Causal}[i%4])
				if i%7 == 0 { // at one time, in one session
					var both sync.WaitGroup
					for _, class := range []tidegate.Class{tidegate.Causal, report} {
						both.Go(func() { read(class) })
					}
					both.Wait()
				}
			}
		})
	}
	wg.Wait()
	for class, n := range on {
		if t.Logf("%v: %d reads on replicas", class, n.Load()); n.Load() < 50 {
			t.Errorf("%v: %d reads on replicas are too few to prove anything", class, n.Load())
		}
	}
	n := db.Status().Nodes[2]
	if !slices.Equal(n.Tags, []string{"reporting"}) || !n.Dedicated {
		t.Errorf("%+v", n)
	}
	if e := db.Explain(t.Context(), board).String(); !strings.Contains(e, "is dedicated to classes that require or prefer one of its tags") {
		t.Error(e)
	}
}

// What a session saw in a report it sees as a user, also where the users' replica is far
// behind; and the other way round.
func TestLeavingForATag(t *testing.T) {
	c := cluster(t)
	report := tidegate.NewCausal("report", "test", tidegate.Require("reporting"))
	for i, class := range []tidegate.Class{tidegate.Causal, report} { // that of the one that lags
		db := open(t, c, func(cfg *pgxgate.Config) {
			cfg.Nodes[2].Tags, cfg.Nodes[2].Dedicated = []string{"reporting"}, true
		})
		other := report
		if class == report {
			other = tidegate.Causal
		}
		behind := c.Replicas()[i]
		resume := pause(t, behind)
		k := key(t)
		sql(t, c.Primary(), "update kv set v = 7 where k = "+itoa(k)) // of somebody else
		ahead := c.Replicas()[1-i]
		eventually(t, "replay", func() bool { return sql(t, ahead, "select v from kv where k = "+itoa(k)) == "7" })
		ctx, seen := inSession(t)
		for _, class := range []tidegate.Class{other, class, other} {
			var v int64
			err := db.Read(class).QueryRow(ctx, get, k).Scan(&v)
			d, _ := seen.Last()
			if err != nil || v != 7 || d.Node == behind.Name || d.Unproven {
				t.Errorf("%d, error %v: %v", v, err, d)
			}
		}
		if d := seen.All()[0]; d.Node != ahead.Name {
			t.Errorf("%v", d)
		}
		resume()
	}
}

// Tags change with SetNodes, and no connection is lost for that.
func TestSetNodesChangesTags(t *testing.T) {
	c := cluster(t)
	all := nodes(c)
	db := open(t, c)
	read := func(class tidegate.Class) string {
		ctx, seen := inSession(t)
		var v int64
		if err := db.Read(class).QueryRow(ctx, get, 1).Scan(&v); err != nil {
			t.Fatal(err)
		}
		d, _ := seen.Last()
		return d.Node
	}
	report := tidegate.NewCausal("report", "test", tidegate.Require("reporting"))
	for i := range 6 {
		to := 1 + i%2
		for j := range all {
			all[j].Tags, all[j].Dedicated = nil, false
		}
		all[to].Tags, all[to].Dedicated = []string{"reporting"}, true
		probes := db.Status().Nodes[to].Probes
		set(t, db, all...)
		for range 20 {
			if n := read(report); n != all[to].Name {
				t.Errorf("a report on %s, want %s", n, all[to].Name)
			}
			if n := read(tidegate.Causal); n != all[3-to].Name {
				t.Errorf("a user on %s, want %s", n, all[3-to].Name)
			}
		}
		if n := db.Status().Nodes[to].Probes; n < probes {
			t.Errorf("what was known of %s is lost", all[to].Name)
		}
	}
	bad := slices.Clone(all)
	bad[1].Tags = []string{""}
	if err := db.SetNodes(bad); err == nil || !strings.Contains(err.Error(), "Config.Nodes[1].Tags") {
		t.Error(err)
	}
}
