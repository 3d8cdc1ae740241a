package tidegate

import (
	"context"
	"sync"
)

type contextKey uint8

const (
	sessionKey contextKey = iota
	observerKey
)

// WithSession returns a context whose reads and writes belong to s.
func WithSession(ctx context.Context, s *Session) context.Context {
	return context.WithValue(ctx, sessionKey, s)
}

// SessionFrom returns the context's session, or nil. Without one a causal read
// goes to the primary and is counted: forgetting the session costs load, never
// correctness.
func SessionFrom(ctx context.Context) *Session {
	s, _ := ctx.Value(sessionKey).(*Session)
	return s
}

// WithToken returns a context with a new session that goes on where the token
// ends. It serves code that has a token and no session, such as a job.
func WithToken(ctx context.Context, t Token) context.Context {
	return WithSession(ctx, NewSession(t))
}

// Wrote tells the context's session of a write to a cluster that went another
// way than through a Write handle: an ORM's hidden commit, a plain pool, another
// program. The next causal read sees it, and everything committed before this
// call. Without a session it does nothing.
func Wrote(ctx context.Context, cluster string) {
	if s := SessionFrom(ctx); s != nil {
		s.CatchUp(cluster)
	}
}

// Decisions collects the decisions made under a context, oldest first. It is
// safe for concurrent use.
type Decisions struct {
	outer *Decisions // of the context that was observed once more
	mu    sync.Mutex
	all   []Decision
}

// Observe returns a context under which every read leaves its [Decision] in the
// returned collection. It serves code whose rows are hidden, such as generated
// queries. A context that is observed already leaves its decisions in both.
func Observe(ctx context.Context) (context.Context, *Decisions) {
	d := &Decisions{outer: ObserverFrom(ctx)}
	return context.WithValue(ctx, observerKey, d), d
}

// ObserverFrom returns the collection that a context's decisions go to, or nil.
// It is for adapters.
func ObserverFrom(ctx context.Context) *Decisions {
	d, _ := ctx.Value(observerKey).(*Decisions)
	return d
}

// Add appends a decision. A nil collection ignores it.
func (d *Decisions) Add(x Decision) {
	for ; d != nil; d = d.outer {
		d.mu.Lock()
		d.all = append(d.all, x)
		d.mu.Unlock()
	}
}

// All returns a copy of the decisions so far.
func (d *Decisions) All() []Decision {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]Decision(nil), d.all...)
}

// Last returns the newest decision, and false when there is none.
func (d *Decisions) Last() (Decision, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.all) == 0 {
		return Decision{}, false
	}
	return d.all[len(d.all)-1], true
}
