package strategy

import (
	"context"
	"sync"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// ReadRelaxed implements Relaxed.
func (g *gated) ReadRelaxed(ctx context.Context, s *Session, keys []int64, b record.Budget) (record.Answer, error) {
	return g.read(ctx, s, classes.of(b), keys)
}

// classes are the classes of the lab's budgets. An application declares its own where
// it uses them; the lab's come with the scenario.
var classes = registry{known: map[record.Budget]tidegate.Class{}}

// registry declares each class once: names of classes are unique in a process.
type registry struct {
	mu    sync.Mutex
	known map[record.Budget]tidegate.Class
}

// of returns the class of a budget.
func (r *registry) of(b record.Budget) tidegate.Class {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.known[b]
	if !ok {
		c = tidegate.Relaxed("lab-"+b.Name(), "the lab wants a part of the reads to be content with less", tidegate.Within(b.Within), onBreach(b.OnBreach)...)
		r.known[b] = c
	}
	return c
}

func onBreach(b record.Breach) []tidegate.RelaxedOption {
	switch b {
	case record.StaleWhenShed:
		return []tidegate.RelaxedOption{tidegate.StaleWhenShed()}
	case record.ServeStale:
		return []tidegate.RelaxedOption{tidegate.ServeStale()}
	case record.Fail:
		return []tidegate.RelaxedOption{tidegate.FailWhenStale()}
	}
	return nil
}
