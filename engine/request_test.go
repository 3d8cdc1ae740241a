package engine_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

// request is one request of a client to an instance, where it looks, holds
// connections and writes.
type request struct {
	c       *client
	n       int // for the story
	gate    int
	carried []*kept
	events  []*kept // of others, that arrived at the instance
	session *tidegate.Session
	store   storeConn
	r       rand.Rand // used by the request's goroutine only
	pcg     rand.PCG

	// Guarded by w.mu.
	knows knowledge
	tolds int // how often the session was told that what it knew may be lost
	// made is what it has written with a handle, doubts what became of what is open.
	made   fake.View
	doubts []*fake.Process
}

// newRequest begins a request; w.mu is held.
func newRequest(c *client) *request {
	w := c.w
	w.n.Requests++
	r := &request{c: c, n: w.n.Requests, gate: w.dice.n(len(w.gates)), carried: slices.Clone(c.tokens)}
	r.pcg.Seed(uint64(w.dice.n(1<<62)), uint64(r.n))
	r.r = *rand.New(&r.pcg)
	tokens := make([]tidegate.Token, 0, 4)
	for _, k := range r.carried {
		tokens = append(tokens, onTheWire(k.token))
		r.knows.join(&k.knows)
	}
	if c.keeps == storing {
		tokens = slices.DeleteFunc(tokens, tidegate.Token.IsZero)
		r.session = w.keeper.Open(c.key, tokens...)
	} else {
		r.session = tidegate.NewSession(tokens...)
	}
	w.trace.add(w, event{kind: evArrive, req: r})
	return r
}

func (r *request) chance(p float64) bool { return r.r.Float64() < p }

func (r *request) upTo(d time.Duration) time.Duration { return time.Duration(1 + r.r.IntN(int(d))) }

// context returns the context of something that the request does. A few end in
// the middle, by a deadline or without notice; hurried tells that no time is left
// for proofs.
func (r *request) context() (ctx context.Context, cancel context.CancelFunc, hurried bool) {
	limit := 5 * time.Second
	u := r.r.Float64()
	if u < .02 {
		limit = r.upTo(10 * time.Millisecond)
	}
	ctx, cancel = context.WithTimeout(tidegate.WithSession(r.toStore(), r.session), limit)
	if u > .98 {
		t := time.AfterFunc(r.upTo(5*time.Millisecond), cancel)
		end := cancel
		cancel = func() { t.Stop(); end() }
		r.c.w.count(&r.c.w.n.Cancelled)
	}
	return ctx, cancel, u < .02 || u > .98
}

// toStore is a context with the request's connection to the store.
func (r *request) toStore() context.Context {
	return context.WithValue(context.Background(), storeConnKey{}, &r.store)
}

// answer returns what a response says that is sent now: nothing, if a store has it.
func (r *request) answer() *kept {
	w := r.c.w
	w.mu.Lock()
	k := &kept{knows: r.knows.clone(), from: r}
	w.mu.Unlock()
	switch err := r.session.Save(r.toStore()); {
	case err == nil && r.c.keeps == storing:
		w.count(&w.n.Kept)
	default:
		k.token = r.session.Token()
	}
	return k
}

// crash ends a request without a response, with the instance that it is at: the
// client knows nothing of what it has read, and has sent what it has written.
func (r *request) crash() {
	w := r.c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	k := &kept{from: r}
	for _, old := range r.carried {
		k.knows.join(&old.knows)
	}
	w.store.mu.Lock()
	bare := r.store.bare
	w.store.mu.Unlock()
	if !bare {
		k.knows.known.Join(r.made)
		k.knows.acked.Join(r.made)
		k.knows.orphans = append(k.knows.orphans, r.doubts...)
	}
	w.n.Ended++
	r.c.tokens = append(r.c.tokens, k)
	w.trace.add(w, event{kind: evRespond, req: r, kept: k, drop: true})
}

// respond ends the request. Its response can be late, behind those to later
// requests, or never arrive; then the client knows nothing of it.
func (r *request) respond() {
	w := r.c.w
	ends := .03
	if w.plan.mortal {
		ends = .15
	}
	if r.c.keeps == storing && r.chance(ends) {
		r.crash()
		return
	}
	k := r.answer()
	if r.chance(.15) {
		time.Sleep(r.upTo(8 * time.Millisecond))
		w.count(&w.n.Late)
	}
	dropped := r.chance(.02)
	w.mu.Lock()
	defer w.mu.Unlock()
	if dropped {
		w.n.Dropped++
	} else {
		r.c.receive(r, k)
	}
	w.trace.add(w, event{kind: evRespond, req: r, kept: k, drop: dropped})
}

// respondEarly sends a response whose rows are still open: what has been shown by
// now counts.
func (r *request) respondEarly() {
	w := r.c.w
	k := r.answer()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n.Early++
	r.c.receive(r, k)
	w.trace.add(w, event{kind: evRespond, req: r, kept: k, early: true})
}

// hear merges the tokens of another client's session, that came with an event.
func (r *request) hear() {
	w := r.c.w
	from := w.clients[r.r.IntN(len(w.clients))]
	w.mu.Lock()
	tokens, key := slices.Clone(from.tokens), from.key
	w.mu.Unlock()
	if from.keeps == storing {
		s := w.keeper.Open(key)
		if err := s.Load(r.toStore()); err != nil {
			return
		}
		r.session.Merge(onTheWire(s.Token()))
	}
	for _, k := range tokens {
		r.session.Merge(onTheWire(k.token))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n.Heard++
	for _, k := range tokens {
		r.knows.hear(&k.knows)
	}
	r.events = append(r.events, tokens...)
	w.trace.add(w, event{kind: evHear, req: r, client: from})
}

// heard is a request that an event causes.
func (r *request) heard() {
	r.hear()
	r.several()
}
