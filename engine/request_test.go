package engine_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tidegatedb/tidegate"
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
	r       rand.Rand // used by the request's goroutine only
	pcg     rand.PCG

	// Guarded by w.mu.
	knows knowledge
	tolds int // how often the session was told that what it knew may be lost
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
	r.session = tidegate.NewSession(tokens...)
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
	ctx, cancel = context.WithTimeout(tidegate.WithSession(context.Background(), r.session), limit)
	if u > .98 {
		t := time.AfterFunc(r.upTo(5*time.Millisecond), cancel)
		end := cancel
		cancel = func() { t.Stop(); end() }
		r.c.w.count(&r.c.w.n.Cancelled)
	}
	return ctx, cancel, u < .02 || u > .98
}

// answer returns what a response says that is sent now; w.mu is held.
func (r *request) answer() *kept {
	return &kept{token: r.session.Token(), knows: r.knows.clone(), from: r}
}

// respond ends the request. Its response can be late, behind those to later
// requests, or never arrive; then the client knows nothing of it.
func (r *request) respond() {
	w := r.c.w
	w.mu.Lock()
	k := r.answer()
	w.mu.Unlock()
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
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n.Early++
	k := r.answer()
	r.c.receive(r, k)
	w.trace.add(w, event{kind: evRespond, req: r, kept: k, early: true})
}

// hear merges the tokens of another client's session, that came with an event.
func (r *request) hear() {
	w := r.c.w
	from := w.clients[r.r.IntN(len(w.clients))]
	w.mu.Lock()
	tokens := from.tokens
	w.mu.Unlock()
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
