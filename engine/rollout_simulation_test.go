package engine_test

import (
	"context"
	"math/rand/v2"
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

// turnover is a run in which the rollout changes all the time, on two instances
// that know nothing of each other's, under sessions that hop between them.
type turnover struct {
	cluster *fake.Cluster
	gates   []*fake.Gate

	mu      sync.Mutex
	reasons map[tidegate.Reason]int
	wrong   string
}

// runTurnover returns what was seen in one run.
func runTurnover(t *testing.T, seed uint64) *turnover {
	v := &turnover{reasons: map[tidegate.Reason]int{}}
	chance.Seed(t, seed)
	synctest.Test(t, func(t *testing.T) {
		// Replicas show commits within a millisecond, the primary can take longer.
		v.cluster = fake.New(fake.Config{Replicas: 3, Delay: 700 * time.Microsecond})
		for i := range 2 {
			delays := rand.New(rand.NewPCG(seed, uint64(i)))
			var mu sync.Mutex
			g, err := v.cluster.Open(t.Context(), fake.Options{
				Core: engine.Config{Wait: 5 * time.Millisecond, ProbeInterval: 20 * time.Millisecond, DemandRate: 5000},
				Delay: func(_ *fake.Node, op fake.Op) time.Duration {
					mu.Lock()
					defer mu.Unlock()
					d := 100 * time.Microsecond
					if op == fake.OpShow {
						d = 3 * time.Millisecond
					}
					return time.Duration(delays.Int64N(int64(d)))
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			v.gates = append(v.gates, g)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() { v.client(ctx, rand.New(rand.NewPCG(seed, uint64(100+i))), int64(i)) })
		}
		r := rand.New(rand.NewPCG(seed, 200))
		all := []tidegate.Rollout{tidegate.RolloutOn, tidegate.RolloutOff, tidegate.RolloutShadow, tidegate.RolloutShare(.5)}
		for ctx.Err() == nil {
			v.gates[r.IntN(2)].Core().SetRollout(all[r.IntN(len(all))])
			time.Sleep(time.Duration(r.Int64N(int64(4 * time.Millisecond))))
		}
		wg.Wait()
		for _, g := range v.gates {
			for _, n := range g.Core().Status().Nodes {
				if n.Flying != 0 {
					t.Errorf("%d reads are in flight on %s", n.Flying, n.Node)
				}
			}
		}
	})
	return v
}

// client writes and reads as one session until ctx ends, and checks each read.
func (v *turnover) client(ctx context.Context, r *rand.Rand, key int64) {
	var known fake.View
	token := tidegate.NewSession().Token()
	for ctx.Err() == nil {
		s := tidegate.NewSession(token)
		ctx := tidegate.WithSession(ctx, s)
		g := v.gates[r.IntN(len(v.gates))]
		for range 1 + r.IntN(3) {
			if r.IntN(8) == 0 {
				if serial, err := g.Write(ctx, key); err == nil {
					known.Add(int(serial))
				}
				continue
			}
			class := tidegate.Causal
			if r.IntN(10) == 0 {
				class = strong
			}
			res, err := g.Look(ctx, class)
			if err != nil {
				continue
			}
			v.check(&res, known)
			known.Join(res.View)
		}
		token = s.Token()
		time.Sleep(time.Duration(r.Int64N(int64(time.Millisecond))))
	}
}

func (v *turnover) check(res *fake.Result, need fake.View) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reasons[res.Decision.Reason]++
	if m := res.View.Missing(need); m != 0 && !res.Decision.Unproven && v.wrong == "" {
		v.wrong = res.Decision.String()
	}
}

// Changing the rollout in the middle of sessions breaks neither of their promises.
func TestRolloutChangesUnderLoad(t *testing.T) {
	all := map[tidegate.Reason]int{}
	for seed := range uint64(3) {
		v := runTurnover(t, seed)
		if v.wrong != "" {
			t.Fatalf("seed %d: a read lacks what its session wrote or saw before: %s", seed, v.wrong)
		}
		for reason, n := range v.reasons {
			all[reason] += n
		}
	}
	t.Log(all)
	for _, reason := range []tidegate.Reason{tidegate.ReasonStayed, tidegate.ReasonCovered, tidegate.ReasonStrong, tidegate.ReasonRollout, tidegate.ReasonShadow} {
		if all[reason] < 100 {
			t.Errorf("%d reads were %v: too few to prove anything", all[reason], reason)
		}
	}
}

// The run notices where the rules that it is about are left out.
func TestRolloutSimulationCatches(t *testing.T) {
	for _, rule := range []rules.Rule{rules.PrimaryMustHaveShown, rules.PrimaryReadBoundsItself} {
		t.Run(rule.String(), func(t *testing.T) {
			rules.Break(t, rule)
			for seed := range uint64(10) {
				if v := runTurnover(t, seed); v.wrong != "" {
					t.Logf("seed %d: %s", seed, v.wrong)
					return
				}
			}
			t.Error("nothing was noticed")
		})
	}
}
