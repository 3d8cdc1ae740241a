package bench

import (
	"context"
	"fmt"

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
// the same position, and a context with a session that must see that and reads
// on a replica.
func steadyCore(ctx context.Context) (*engine.Core, context.Context, error) {
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
	return core, tidegate.WithToken(ctx, tidegate.NewToken(mark)), nil
}

// batch is how many decisions are timed at once: one takes about as long as a
// look at the clock.
const batch = 1000

// pick measures the decision for a session with a mark that stays on its
// replica, from Begin to Cancel: everything that routing does for a read but the
// look at the clock when it ends, on which most of the time of End goes.
func (b *bench) pick(ctx context.Context) ([]figure.Figure, error) {
	core, ctx, err := steadyCore(ctx)
	if err != nil {
		return nil, err
	}
	defer core.Close()
	var rd engine.Read
	first := func() error {
		if err := core.Begin(ctx, tidegate.Causal, &rd); err != nil {
			return err
		}
		core.End(&rd) // stays there from now on
		return nil
	}
	if err := first(); err != nil {
		return nil, err
	}
	rd = engine.Read{}
	once := func() error {
		if err := core.Begin(ctx, tidegate.Causal, &rd); err != nil {
			return err
		}
		core.Cancel(&rd)
		return nil
	}
	whole := func() error {
		rd = engine.Read{}
		return first()
	}
	batchOf := func(op pairs.Arm) pairs.Arm {
		return func() error {
			for range batch {
				if err := op(); err != nil {
					return err
				}
			}
			return nil
		}
	}
	var decisions, reads []pairs.Run
	var allocs []float64
	n := normal(&b.cfg, 1000, 20)
	for range b.cfg.runs() {
		for _, m := range []struct {
			op   pairs.Arm
			into *[]pairs.Run
		}{{once, &decisions}, {whole, &reads}} {
			r, err := pairs.Compare(ctx, pairs.Plan{Pairs: n}, batchOf(m.op), batchOf(m.op))
			if err != nil {
				return nil, err
			}
			*m.into = append(*m.into, r)
		}
		a, err := allocations(10*batch, once)
		if err != nil {
			return nil, err
		}
		allocs = append(allocs, tenth(a.objects))
	}
	lacking := b.cfg.tooFew(EnoughPairs)
	return []figure.Figure{
		figure.Timed(PickTime, figure.Under(30), 1./batch, decisions).Lacking(lacking).Noted("engine.Core.Begin and Cancel at %d nodes", pickNodes),
		figure.Timed(ReadRouting, nil, 1./batch, reads).Noted("engine.Core.Begin and End, all that routing does for a read"),
		figure.Plain(PickAllocs, figure.Count, figure.AtMost(0), allocs...).Lacking(lacking),
	}, nil
}
