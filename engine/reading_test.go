package engine_test

import (
	"context"
	"sync"
	"time"

	"github.com/tidegatedb/tidegate"
)

var (
	strong     = tidegate.Strong("strong", "a simulated decision")
	relaxed    = tidegate.Relaxed("relaxed", "simulated rollups", tidegate.Within(budget))
	relaxedAny = tidegate.Relaxed("relaxed-any", "simulated rollups of any age", tidegate.AnyStaleness())
)

const budget = 50 * time.Millisecond

func (r *request) class() tidegate.Class {
	switch u := r.r.Float64(); {
	case u < .06:
		return strong
	case u < .11:
		return relaxed
	case u < .16:
		return relaxedAny
	case u < .22:
		return reports
	case u < .25:
		return rather
	default:
		return tidegate.Causal
	}
}

// look makes one read of any class, and checks it when it has ended.
func (r *request) look() {
	ctx, cancel, hurried := r.context()
	defer cancel()
	r.lookIn(ctx, r.class(), hurried)
}

func (r *request) lookIn(ctx context.Context, class tidegate.Class, hurried bool) {
	w := r.c.w
	l := r.expect(class, hurried)
	ctx, seen := tidegate.Observe(ctx)
	res, err := w.gates[r.gate].Look(ctx, class)
	w.mu.Lock()
	defer w.mu.Unlock()
	l.told(seen)
	if err != nil {
		l.failed(err)
		return
	}
	l.node, l.life, l.decision = res.Node, res.Incarnation, res.Decision
	l.done(res.View)
}

// several makes reads one behind the other, where each sees what those before it
// showed.
func (r *request) several() {
	for range 2 + r.r.IntN(3) {
		r.look()
	}
}

// together makes reads at one time in one session.
func (r *request) together() {
	var wg sync.WaitGroup
	for range 2 + r.r.IntN(2) {
		ctx, cancel, hurried := r.context()
		class := r.class()
		wg.Go(func() {
			defer cancel()
			r.lookIn(ctx, class, hurried)
		})
	}
	wg.Wait()
}
