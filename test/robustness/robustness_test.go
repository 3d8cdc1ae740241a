package robustness_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate/internal/pgcluster"
	"github.com/tidegatedb/tidegate/pgxgate"
	"github.com/tidegatedb/tidegate/test/robustness/fault"
	"github.com/tidegatedb/tidegate/test/robustness/record"
	"github.com/tidegatedb/tidegate/test/robustness/traffic"
	"github.com/tidegatedb/tidegate/test/robustness/validate"
)

var (
	duration = flag.Duration("robust.duration", 15*time.Second, "how long each run lasts, the last fault excepted")
	seed     = flag.Uint64("robust.seed", 1, "the seed of the first run")
	runs     = flag.Int("robust.runs", 1, "how many runs, each with the next seed")
	only     = flag.String("robust.faults", "", "only these faults, separated by commas")
	keep     = flag.String("robust.keep", "", "the folder for histories of runs that fail; empty is the system's temporary one")
)

// roles are what the instances connect as, by what they may.
var roles = map[string]string{
	"app": "", "monitor": "in role pg_monitor", "replication": "replication in role pg_monitor",
}

func TestRobust(t *testing.T) {
	for i := range *runs {
		for role := range roles {
			if want := []string{"replication", "monitor", "app"}[(*seed+uint64(i))%3]; role == want {
				t.Run(fmt.Sprintf("seed-%d-%s", *seed+uint64(i), role), func(t *testing.T) { robust(t, *seed+uint64(i), role) })
			}
		}
	}
}

// robust makes one run.
func robust(t *testing.T, seed uint64, role string) {
	c := pgcluster.ForTest(t, pgcluster.Config{Replicas: 2, Links: true, Settings: map[string]string{
		"autovacuum": "off", "max_standby_streaming_delay": "100ms", "wal_sender_timeout": "2s", "wal_receiver_timeout": "2s", "wal_keep_size": "1GB",
	}})
	site, err := fault.NewSite(c, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(site.Close)
	ask := func(sql string) {
		t.Helper()
		if _, err := c.Primary().SQL(t.Context(), "", sql); err != nil {
			t.Fatal(err)
		}
	}
	ask(traffic.Setup)
	for name, may := range roles {
		ask("create role " + name + " login " + may + "; grant all on kv to " + name)
	}
	if err := c.Primary().WaitCaughtUp(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	load := traffic.Load{Sessions: 24, Seed: seed, Pause: 20 * time.Millisecond}
	for range 3 {
		var nodes []pgxgate.Node
		for _, s := range c.Servers() {
			nodes = append(nodes, pgxgate.Node{Name: s.Name, DSN: site.DSN(s, role) + " pool_max_conns=8"})
		}
		db, err := pgxgate.Open(t.Context(), pgxgate.Config{Cluster: "main", Nodes: nodes, DemandRate: 80, ProbeTimeout: 500 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		load.Instances = append(load.Instances, db)
	}

	h, begun := &record.History{}, time.Now()
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { load.Drive(ctx, h, begun) })
	control := naive(ctx, t, site, &all)
	names := map[string]int{}
	var chosen []string
	if *only != "" {
		chosen = strings.Split(*only, ",")
	}
	for _, f := range site.Schedule(1000, chosen...) {
		if time.Since(begun) > *duration {
			break
		}
		from := time.Since(begun)
		if err := site.Do(t.Context(), f); err != nil {
			t.Errorf("the cluster could not be mended: %v", err)
			break
		}
		h.AddFault(record.Fault{Name: f.Name, Began: from, Ended: time.Since(begun)})
		names[f.Name]++
		time.Sleep(200 * time.Millisecond) // a moment of peace: sessions go back to replicas
	}
	stop()
	all.Wait()
	stale, reads := control()
	judge(t, seed, h, names, stale, reads)
	for i, db := range load.Instances {
		if s := db.Status(); s.FallbacksNow != 0 || s.FallbacksQueued != 0 {
			t.Errorf("instance %d: %d fallback slots are in use and %d reads queue though nobody reads", i, s.FallbacksNow, s.FallbacksQueued)
		} else {
			for _, n := range s.Nodes {
				if n.Flying != 0 {
					t.Errorf("instance %d: %d reads are in flight on %s though nobody reads", i, n.Flying, n.Node)
				}
			}
		}
	}
}

// naive is the control: somebody who writes to the primary that there is and reads the row
// from one replica after the other, without a token. It returns how often that was stale.
func naive(ctx context.Context, t *testing.T, site *fault.Site, all *sync.WaitGroup) func() (stale, reads int) {
	var pools []*pgxpool.Pool
	for _, s := range site.Cluster.Servers() {
		p, err := pgxpool.New(t.Context(), site.DSN(s, "app"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		pools = append(pools, p)
	}
	var stale, reads int
	all.Go(func() {
		for v := int64(1); ctx.Err() == nil; v++ {
			within, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			wrote := false
			for _, p := range pools { // whichever takes it
				if tag, err := p.Exec(within, "update kv set v = $1 where k = 999 and v < $1", v); err == nil && tag.RowsAffected() == 1 {
					wrote = true
					break
				}
			}
			var got int64
			if wrote && pools[int(v)%len(pools)].QueryRow(within, "select v from kv where k = 999").Scan(&got) == nil {
				if reads++; got < v {
					stale++
				}
			}
			cancel()
			time.Sleep(2 * time.Millisecond)
		}
	})
	return func() (int, int) { return stale, reads }
}

// judge checks the history and says what there was.
func judge(t *testing.T, seed uint64, h *record.History, faults map[string]int, stale, reads int) {
	ops := h.Ops()
	counts := map[string]int{}
	for _, op := range ops {
		counts[string(op.Kind)+" "+string(op.Outcome)]++
		if op.Replica && op.Outcome == record.OK {
			counts["by replicas"]++
		}
		if op.Told {
			counts["told"]++
		} else if op.Unproven {
			counts["unproven"]++
		}
	}
	t.Logf("seed %d: %v; faults %v; the naive reader was stale in %d of %d", seed, counts, faults, stale, reads)
	if counts["read ok"] < 100 || counts["by replicas"] == 0 || reads > 100 && stale == 0 {
		t.Error("too little happened to show anything")
	}
	bad := validate.Check(ops)
	for i, v := range bad {
		if i < 5 {
			t.Error(v)
		}
	}
	if t.Failed() {
		name := filepath.Join(*keep, fmt.Sprintf("robust-seed-%d.jsonl", seed))
		if *keep == "" {
			name = filepath.Join(os.TempDir(), filepath.Base(name))
		}
		f, err := os.Create(name)
		if err == nil {
			err = h.Save(f)
		}
		if err == nil {
			err = f.Close()
		}
		t.Errorf("%d violations; the history is in %s (%v); again: go test ./robustness -run TestRobust -robust.seed=%d -robust.duration=%v", len(bad), name, err, seed, *duration)
	}
}
