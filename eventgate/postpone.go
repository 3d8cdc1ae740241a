package eventgate

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidegatedb/tidegate"
)

// PostponedError tells that a job was not begun because no replica has what its
// token requires. It wraps [tidegate.ErrNotFresh]. A runner turns it into a retry
// that does not count as a failure.
type PostponedError struct {
	// Cluster is the cluster's name.
	Cluster string
	// Required is the position that a replica must have, zero when it is not known
	// yet.
	Required tidegate.Position
	// Observed is the newest position that a usable replica was seen to have.
	Observed tidegate.Position
	// After is when to try again: the estimated time in which the first replica
	// will have it, within the bounds of JobConfig.
	After time.Duration
	// Estimated tells that After is an estimate. It is not when no replica is
	// usable.
	Estimated bool
	// Token is what the job requires, found out as far as could be: the next try
	// should have it in place of the one that it had. See Job.ID and
	// [Gate.InjectToken].
	Token tidegate.Token
}

// Error implements error.
func (e *PostponedError) Error() string {
	return fmt.Sprintf("eventgate: the job is postponed, try again in %v: %v: cluster %s, required %v, newest replica %v", e.After, tidegate.ErrNotFresh, e.Cluster, e.Required, e.Observed)
}

// Unwrap returns [tidegate.ErrNotFresh].
func (e *PostponedError) Unwrap() error { return tidegate.ErrNotFresh }

func (j *Jobs) postponed(ctx context.Context) *PostponedError {
	st := j.cfg.Database.Status()
	e := &PostponedError{
		Cluster: st.Cluster, Required: j.cfg.Database.Explain(ctx, j.cfg.Class).Required, After: unknownAfter, Token: tidegate.SessionFrom(ctx).Token(),
	}
	e.Observed, e.Estimated = newest(st)
	if e.Estimated {
		e.After = j.cfg.MaxAfter
		for _, n := range st.Nodes {
			if n.Usable {
				// A quarter more: to come too early costs another try.
				e.After = min(e.After, n.Delay+n.Delay/4)
			}
		}
	}
	e.After = min(max(e.After, j.cfg.MinAfter), j.cfg.MaxAfter)
	return e
}

// memorySize bounds the jobs that are remembered.
const memorySize = 4096

// memory is what jobs that could not begin require. It is safe for concurrent use;
// the zero memory is empty.
type memory struct {
	mu     sync.Mutex
	tokens map[string]tidegate.Token
	// order lists the keys as they came, to forget the oldest.
	order []string
}

func (m *memory) keep(id string, t tidegate.Token) {
	if id == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tokens == nil {
		m.tokens = map[string]tidegate.Token{}
	}
	if _, ok := m.tokens[id]; !ok {
		if len(m.order) == memorySize {
			delete(m.tokens, m.order[0])
			m.order = append(m.order[:0], m.order[1:]...)
		}
		m.order = append(m.order, id)
	}
	m.tokens[id] = t
}

func (m *memory) recall(id string) (tidegate.Token, bool) {
	if id == "" {
		return tidegate.Token{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.tokens[id]
	return t, ok
}

func (m *memory) forget(id string) {
	if id == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.tokens[id]; ok {
		delete(m.tokens, id)
		m.order = slices.DeleteFunc(m.order, func(o string) bool { return o == id })
	}
}

// JobStats counts what happened to jobs since [NewJobs].
type JobStats struct {
	// Begun counts jobs that were begun, Waited those of all jobs that had to wait.
	Begun, Waited uint64
	// Postponed counts how often a PostponedError was returned.
	Postponed uint64
	// GaveUp counts jobs whose context ended while they waited.
	GaveUp uint64
}

type jobCounts struct{ begun, waited, postponed, gaveUp atomic.Uint64 }

func (c *jobCounts) wait(waited *bool) {
	if !*waited {
		*waited = true
		c.waited.Add(1)
	}
}

// Stats returns the counters.
func (j *Jobs) Stats() JobStats {
	c := &j.counts
	return JobStats{Begun: c.begun.Load(), Waited: c.waited.Load(), Postponed: c.postponed.Load(), GaveUp: c.gaveUp.Load()}
}
