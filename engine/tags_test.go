package engine_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
	"github.com/tidegatedb/tidegate/internal/chance"
	"github.com/tidegatedb/tidegate/internal/rules"
)

var (
	reports = tidegate.NewCausal("reports", "a simulated report", tidegate.Require("reporting"))
	rollups = tidegate.Relaxed("rollups", "simulated rollups", tidegate.AnyStaleness(), tidegate.Require("reporting"))
	rather  = tidegate.NewCausal("rather", "a simulated report, anywhere", tidegate.Prefer("reporting"))
)

// Tags come with the nodes, and change with them; what they mean shows.
func TestTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		p, r, other := primaryStub(1, 100), replicaStub(2, 100), replicaStub(3, 100)
		c := core(t, engine.Config{Logger: slog.New(slog.NewJSONHandler(&j, nil))}, p, r, other)
		warnings := func() (n int) {
			for _, line := range j.lines(t) {
				if line == "WARN no node has the tags that the class requires: no replica answers it " {
					n++
				}
			}
			return n
		}
		read := func(class tidegate.Class, node string, reason tidegate.Reason) {
			t.Helper()
			ctx, _ := sessionAt(t.Context(), needs(50))
			rd := begin(ctx, t, c, class)
			went(t, c, rd, node, reason, false)
			c.Cancel(rd)
		}
		for range 5 {
			read(reports, "a", tidegate.ReasonNoReplica)
		}
		if n := warnings(); n != 1 {
			t.Errorf("%d warnings", n)
		}
		nodes := listed(p, r, other)
		nodes[1].Tags, nodes[1].Dedicated = []string{"reporting"}, true
		setNodes(t, c, nodes)
		nodes[1].Tags[0] = "changed" // it is the caller's
		for range 5 {
			read(reports, "b", tidegate.ReasonCovered)
			read(tidegate.Causal, "c", tidegate.ReasonCovered)
		}
		s := c.Status().Nodes[1]
		if !slices.Equal(s.Tags, []string{"reporting"}) || !s.Dedicated {
			t.Errorf("%+v", s)
		}
		if e := c.Explain(t.Context(), reports).String(); !strings.Contains(e, `- c            replica  lacks the tag "reporting"`) {
			t.Error(e)
		}
		nodes = listed(p, r, other)
		for _, next := range [][]string{{"other"}, {"reporting"}} {
			nodes = slices.Clone(nodes)
			nodes[1].Tags = next
			setNodes(t, c, nodes)
			if got := c.Status().Nodes[1]; !slices.Equal(got.Tags, next) || got.Dedicated {
				t.Errorf("%+v", got)
			}
		}
		nodes = slices.Clone(nodes)
		nodes[1].Dedicated = true
		if setNodes(t, c, nodes); !c.Status().Nodes[1].Dedicated {
			t.Error("it is not dedicated")
		}
		setNodes(t, c, listed(p, r, other)) // without tags
		for range 5 {
			read(reports, "a", tidegate.ReasonNoReplica)
		}
		if n := warnings(); n != 0 {
			t.Errorf("%d warnings more", n)
		}
		for field, change := range map[string]func(n *engine.Node){
			"Nodes[1].Tags ":      func(n *engine.Node) { n.Tags = []string{"a", ""} },
			"Nodes[1].Dedicated ": func(n *engine.Node) { n.Dedicated = true },
		} {
			nodes := listed(p, r)
			change(&nodes[1])
			if _, err := c.SetNodes(nodes); err == nil || !strings.Contains(err.Error(), "Config."+field) {
				t.Errorf("%v, want one that names %s", err, field)
			}
		}
	})
}

// apart is a run in which users and reports have replicas of their own, and sessions that
// change between them all the time.
type apart struct {
	cluster *fake.Cluster
	gates   []*fake.Gate

	mu    sync.Mutex
	on    map[string]int // reads by class and node
	wrong string
}

func runApart(t *testing.T, seed uint64) *apart {
	v := &apart{on: map[string]int{}}
	chance.Seed(t, seed)
	synctest.Test(t, func(t *testing.T) {
		v.cluster = fake.New(fake.Config{Replicas: 4, Delay: 300 * time.Microsecond})
		v.cluster.Nodes()[4].SetDelay(time.Millisecond)
		for i := range 2 {
			delays := rand.New(rand.NewPCG(seed, uint64(i)))
			var mu sync.Mutex
			g, err := v.cluster.Open(t.Context(), fake.Options{
				Core: engine.Config{Wait: 5 * time.Millisecond, ProbeInterval: 5 * time.Millisecond, DemandRate: 5000},
				Tags: [][]string{nil, nil, {"users"}, {"reporting"}, {"reporting", "slow"}}, Dedicated: []bool{4: true},
				Delay: func(*fake.Node, fake.Op) time.Duration {
					mu.Lock()
					defer mu.Unlock()
					return time.Duration(delays.Int64N(int64(100 * time.Microsecond)))
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			v.gates = append(v.gates, g)
		}
		ctx, stop := context.WithTimeout(t.Context(), 400*time.Millisecond)
		defer stop()
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() { v.client(ctx, rand.New(rand.NewPCG(seed, uint64(100+i))), int64(i)) })
		}
		wg.Wait()
	})
	return v
}

// client writes and reads as one session until ctx ends, also in parallel, and checks each
// read.
func (v *apart) client(ctx context.Context, r *rand.Rand, key int64) {
	var known fake.View
	token := tidegate.NewSession().Token()
	classes := []tidegate.Class{tidegate.Causal, tidegate.Causal, reports, rollups, rather, relaxedAny}
	for ctx.Err() == nil {
		s := tidegate.NewSession(token)
		ctx := tidegate.WithSession(ctx, s)
		g := v.gates[r.IntN(len(v.gates))]
		for range 1 + r.IntN(5) {
			if r.IntN(20) == 0 {
				if serial, err := g.Write(ctx, key); err == nil {
					known.Add(int(serial))
				}
				continue
			}
			var wg sync.WaitGroup
			seen := make([]fake.View, 1+r.IntN(8)/7)
			for i := range seen {
				class := classes[r.IntN(len(classes))]
				wg.Go(func() {
					if res, err := g.Look(ctx, class); err == nil {
						v.check(&res, known)
						seen[i] = res.View
					}
				})
			}
			wg.Wait()
			for i := range seen {
				known.Join(seen[i])
			}
		}
		token = s.Token()
		time.Sleep(time.Duration(r.Int64N(int64(time.Millisecond))))
	}
}

func (v *apart) check(res *fake.Result, need fake.View) {
	d := res.Decision
	v.mu.Lock()
	defer v.mu.Unlock()
	v.on[d.Class.Name()+" on "+d.Node]++
	placed := d.Role == tidegate.RolePrimary
	switch d.Class {
	case reports, rollups:
		placed = placed || d.Node == "r3" || d.Node == "r4"
	case rather:
		placed = true
	default:
		placed = placed || d.Node != "r4"
	}
	older := d.Class.Need() == tidegate.NeedCausal && !d.Unproven && res.View.Missing(need) != 0
	if v.wrong == "" && (!placed || older) {
		v.wrong = d.String()
	}
}

// Users never read from the replica that is dedicated to reports, reports only where their
// tag is, and sessions that change between them keep what they saw.
func TestReportingApart(t *testing.T) {
	all := map[string]int{}
	for seed := range uint64(3) {
		v := runApart(t, seed)
		if v.wrong != "" {
			t.Fatalf("seed %d: %s", seed, v.wrong)
		}
		for k, n := range v.on {
			all[k] += n
		}
	}
	t.Log(all)
	for _, k := range []string{"causal on r1", "causal on r2", "causal on r3", "reports on r3", "reports on r4", "rollups on r4", "rather on r4"} {
		if all[k] < 20 {
			t.Errorf("%s: %d reads are too few to prove anything", k, all[k])
		}
	}
}

// The run notices where a session that leaves does not remember what it has seen.
func TestReportingApartCatches(t *testing.T) {
	for _, rule := range []rules.Rule{rules.SeenKept, rules.EveryClassLeavesSeen, rules.SeenIsASet} {
		t.Run(rule.String(), func(t *testing.T) {
			rules.Break(t, rule)
			for seed := range uint64(20) {
				if v := runApart(t, seed); v.wrong != "" {
					t.Logf("seed %d: %s", seed, v.wrong)
					return
				}
			}
			t.Error("nothing was noticed")
		})
	}
}
