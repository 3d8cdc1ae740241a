package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/bench/figure"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/bench/pairs"
)

// used is CPU time: of this process, and of the replicas' servers, each.
type used struct{ process, replica time.Duration }

func (b *bench) used() (used, error) {
	own, err := ownCPU()
	if err != nil {
		return used{}, err
	}
	u := used{process: own}
	for _, s := range b.stage.Replicas() {
		cpu, err := s.CPU()
		if err != nil {
			return used{}, err
		}
		u.replica += cpu / replicas
	}
	return u, nil
}

// probeMargin is how much CPU two idle phases may differ by: a fifth of the
// target.
const probeMargin = 0.002

// probeCPU measures the CPU that probing takes at the default interval while
// nothing else is done: of one replica's server, and of this process for one
// node. It compares phases with an open database with phases without one; the
// control are two phases without. The kernel tells a server's CPU in steps of 10
// ms, much for one run, so all runs together are the value.
func (b *bench) probeCPU(ctx context.Context) ([]figure.Figure, error) {
	phase := normal(&b.cfg, 2500*time.Millisecond, 200*time.Millisecond)
	var share, control []float64
	var process, replica []float64
	for i := range b.cfg.runs() {
		b.progress.Show(fmt.Sprintf("%s: run %d of %d", b.now, i+1, b.cfg.runs()))
		// Without, with, with, without.
		var got [4]used
		for n, with := range [4]bool{false, true, true, false} {
			u, err := b.idle(ctx, phase, with)
			if err != nil {
				return nil, err
			}
			got[n] = u
		}
		part := func(of func(used) time.Duration) float64 {
			return float64(of(got[1])+of(got[2])-of(got[0])-of(got[3])) / float64(2*phase)
		}
		nodes := time.Duration(len(b.stage.Servers()))
		perNode := func(u used) time.Duration { return u.process/nodes + u.replica }
		share = append(share, part(perNode))
		process = append(process, part(func(u used) time.Duration { return u.process / nodes }))
		replica = append(replica, part(func(u used) time.Duration { return u.replica }))
		control = append(control, float64(perNode(got[3])-perNode(got[0]))/float64(phase))
	}
	f := figure.Plain(ProbeCPU, figure.Core, figure.Under(0.01), share...).Beside(control, probeMargin).Averaged()
	return []figure.Figure{f.Lacking(b.cfg.tooFew(EnoughPairs)).Noted("per node and instance: %.4f of it on the replica, %.4f in this process; the mean of the runs counts",
		pairs.Mean(replica), pairs.Mean(process))}, nil
}

// idle does nothing for the time, with or without an open database, and returns
// what CPU time that took.
func (b *bench) idle(ctx context.Context, d time.Duration, with bool) (used, error) {
	if with {
		db, err := b.stage.open(ctx, 1, nil)
		if err != nil {
			return used{}, err
		}
		defer db.Close()
	}
	// The opening, or the closing before it, is not probing.
	if err := pause(ctx, 100*time.Millisecond); err != nil {
		return used{}, err
	}
	before, err := b.used()
	if err != nil {
		return used{}, err
	}
	if err := pause(ctx, d); err != nil {
		return used{}, err
	}
	after, err := b.used()
	return used{after.process - before.process, after.replica - before.replica}, err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
