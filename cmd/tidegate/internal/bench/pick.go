package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/bench/figure"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/bench/pairs"
	"github.com/tidegatedb/tidegate/engine"
)

const pickNodes = 5

// steady is a node that always answers the same.
type steady struct{ answer engine.Observation }

// Probe implements engine.Source.
func (s *steady) Probe(_ context.Context, pending []uint64) (engine.Observation, error) {
	o := s.answer
	o.Asked = pending
	return o, nil
}

// steadyCore returns a core over a primary and four replicas that all stand at
// the same position, and contexts with a session each that must see that and reads
// on a replica.
func steadyCore(ctx context.Context) (*engine.Core, []context.Context, error) {
	at, epoch := tidegate.At(100), tidegate.Epoch{System: 1, Line: 1}
	cfg := engine.Config{Cluster: clusterName, ProbeInterval: maxInterval}
	for i := range pickNodes {
		o := engine.Observation{
			Server: uint64(i + 1), Incarnation: tidegate.Incarnation(i + 1),
			Role: tidegate.RoleReplica, Epoch: epoch, Applied: at, Bound: at,
		}
		if i == 0 {
			o.Role, o.Ceiling = tidegate.RolePrimary, at
		}
		cfg.Nodes = append(cfg.Nodes, engine.Node{Name: fmt.Sprintf("node%d", i), Source: &steady{o}})
	}
	core, err := engine.New(cfg)
	if err != nil {
		return nil, nil, err
	}
	if err := core.Ready(ctx); err != nil {
		core.Close()
		return nil, nil, err
	}
	mark := tidegate.Mark{Cluster: clusterName, Epoch: epoch, Position: at}
	contexts := make([]context.Context, pickSessions)
	for i := range contexts {
		contexts[i] = tidegate.WithToken(ctx, tidegate.NewToken(mark))
	}
	return core, contexts, nil
}

// pickSessions is how many sessions decide in turn. The clock is looked at before
// and behind all of them: a decision takes about as long as a look at it.
const pickSessions = 8

// rounds is how often they do for one sample.
const rounds = 128

// batch is how many decisions a sample has.
const batch = pickSessions * rounds

// pick measures the decision for a session with a mark that stays on its replica:
// by itself, for reads that know their session, and with all that routing does for
// a read, from finding the session in the context to the look at the clock at the
// end.
func (b *bench) pick(ctx context.Context) ([]figure.Figure, error) {
	core, contexts, err := steadyCore(ctx)
	if err != nil {
		return nil, err
	}
	defer core.Close()
	var spent time.Duration
	reads := make([]engine.Read, pickSessions)
	decide := func() error {
		start := time.Now()
		for i := range reads {
			if err := core.Begin(contexts[i], tidegate.Causal, &reads[i]); err != nil {
				return err
			}
		}
		spent += time.Since(start)
		for i := range reads {
			core.Cancel(&reads[i])
		}
		return nil
	}
	whole := func() error {
		start := time.Now()
		for _, ctx := range contexts {
			var rd engine.Read
			if err := core.Begin(ctx, tidegate.Causal, &rd); err != nil {
				return err
			}
			core.End(&rd)
		}
		spent += time.Since(start)
		return nil
	}
	for _, op := range []pairs.Arm{whole, decide} { // the sessions stay from now on
		if err := op(); err != nil {
			return nil, err
		}
	}
	batchOf := func(op pairs.Arm) pairs.Arm {
		return func() error {
			for range rounds {
				if err := op(); err != nil {
					return err
				}
			}
			return nil
		}
	}
	inside := func(a pairs.Arm) (float64, error) {
		spent = 0
		err := a()
		return float64(spent), err
	}
	var decisions, routings []pairs.Run
	var allocs []float64
	n := normal(&b.cfg, 1000, 20)
	for range b.cfg.runs() {
		for _, m := range []struct {
			op   pairs.Arm
			into *[]pairs.Run
		}{{decide, &decisions}, {whole, &routings}} {
			r, err := pairs.Compare(ctx, pairs.Plan{Pairs: n, Measure: inside}, batchOf(m.op), batchOf(m.op))
			if err != nil {
				return nil, err
			}
			*m.into = append(*m.into, r)
		}
		a, err := allocations(10*rounds, decide)
		if err != nil {
			return nil, err
		}
		allocs = append(allocs, tenth(a.objects/pickSessions))
	}
	lacking := b.cfg.tooFew(EnoughPairs)
	return []figure.Figure{
		figure.Timed(PickTime, figure.Under(30), 1./batch, decisions).Lacking(lacking).Noted("engine.Core.Begin for reads that know their session, %d nodes, %d sessions in turn", pickNodes, pickSessions),
		figure.Timed(ReadRouting, nil, 1./batch, routings).Noted("engine.Core.Begin and End of new reads, all that routing does for a read"),
		figure.Plain(PickAllocs, figure.Count, figure.AtMost(0), allocs...).Lacking(lacking),
	}, nil
}
