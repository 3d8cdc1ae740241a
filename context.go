package tidegate

import (
	"context"
	"sync"
)

// scope is what a context says to adapters. One look finds all of it, because
// every read looks, and contexts can be long chains.
type scope struct {
	session  *Session
	observer *Decisions
}

// scopeKey is a pointer: comparing keys is all that most links of a chain do.
var scopeKey = &struct{ _ byte }{}

func scopeOf(ctx context.Context) scope {
	if s, ok := ctx.Value(scopeKey).(*scope); ok {
		return *s
	}
	return scope{}
}

func (s scope) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, scopeKey, &s)
}

// WithSession returns a context whose reads and writes belong to s.
func WithSession(ctx context.Context, s *Session) context.Context {
	sc := scopeOf(ctx)
	sc.session = s
	return sc.in(ctx)
}

// SessionFrom returns the context's session, or nil. Without one a causal read
// goes to the primary and is counted: forgetting the session costs load, never
// correctness.
func SessionFrom(ctx context.Context) *Session { return scopeOf(ctx).session }

// ObserverFrom returns the collection that a context's decisions go to, or nil. It
// is for adapters.
func ObserverFrom(ctx context.Context) *Decisions { return scopeOf(ctx).observer }

// From returns the context's session and the collection that its decisions go to,
// each nil if there is none. It is for adapters.
func From(ctx context.Context) (*Session, *Decisions) {
	s := scopeOf(ctx)
	return s.session, s.observer
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
	sc := scopeOf(ctx)
	sc.observer = &Decisions{outer: sc.observer}
	return sc.in(ctx), sc.observer
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
