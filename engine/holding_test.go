package engine_test

import (
	"context"
	"time"

	"github.com/tidegatedb/tidegate"
)

// hold looks on a connection that stays in use while the request goes on: open
// rows, a read transaction, a pinned connection. What was shown counts from then
// on, also when the connection breaks before its end.
func (r *request) hold() { r.holdAt(0) }

// deepest is how many connections one request holds at one time.
const deepest = 3

func (r *request) holdAt(depth int) {
	ctx, cancel, hurried := r.context()
	defer cancel()
	w := r.c.w
	class := r.class()
	if r.chance(.3) {
		class = strong // on the primary
	}
	l := r.expect(class, hurried)
	oc, seen := tidegate.Observe(ctx)
	h, err := w.gates[r.gate].Acquire(oc, class)
	w.mu.Lock()
	l.told(seen)
	if err != nil {
		l.failed(err)
	}
	w.mu.Unlock()
	if err != nil {
		return
	}
	l.held = true
	l.node, l.life = h.Node()
	l.decision = h.Decision()
	for statements := 1 + r.r.IntN(3); statements > 0; statements-- {
		v, err := h.Look(ctx)
		w.mu.Lock()
		if err != nil {
			l.failed(err)
			w.mu.Unlock()
			break
		}
		l.done(v)
		w.mu.Unlock()
		if r.chance(.7) {
			r.meanwhile(depth)
		}
	}
	if r.chance(.2) {
		h.Break()
		w.count(&w.n.Broken)
	}
	h.Release(ctx)
	w.mu.Lock()
	w.trace.add(w, event{kind: evRelease, req: r, look: l})
	w.mu.Unlock()
	if r.chance(.3) {
		r.look()
	}
}

// meanwhile is what the request does while it holds something.
func (r *request) meanwhile(depth int) {
	for range 1 + r.r.IntN(2) {
		switch u := r.r.Float64(); {
		case u < .10 && depth < deepest-1:
			r.holdAt(depth + 1)
		case u < .15 && depth < deepest-1:
			r.transactAt(depth + 1)
		case u < .25:
			time.Sleep(r.upTo(2 * time.Millisecond))
		case u < .30:
			r.write()
		case u < .32:
			r.hear()
		case u < .36 && (r.c.keeps != merging || u < .305):
			// A merged token never loses the duty that open statements on the
			// primary put into it.
			r.respondEarly()
		default:
			w := r.c.w
			w.count(&w.n.Nested)
			r.look()
		}
	}
}

// transact is a transaction on the primary that looks around, and ends in one of
// many ways.
func (r *request) transact() { r.transactAt(0) }

func (r *request) transactAt(depth int) {
	w := r.c.w
	ctx, cancel, _ := r.context()
	defer cancel()
	tx, err := w.gates[r.gate].Begin(ctx, int64(r.c.id))
	if err != nil {
		return
	}
	w.count(&w.n.Transactions)
	if v, err := tx.Look(ctx); err == nil {
		// Nothing says what a transaction shows, but what it has shown counts.
		w.mu.Lock()
		r.knows.known.Join(v)
		w.trace.add(w, event{kind: evTx, req: r, view: v})
		w.mu.Unlock()
		r.meanwhile(depth)
	}
	switch u := r.r.Float64(); {
	case u < .5:
		r.commit(ctx, tx)
	case u < .7:
		tx.Rollback(ctx)
		r.ended(evTx, 0, nil, nil)
	case u < .9:
		// It ends by itself while it is in use, and the gate hears of it later.
		serial, err := tx.CommitItself(ctx)
		if err == nil {
			r.wrote(int(serial))
		}
		r.ended(evWrite, int(serial), tx.Process(), err)
		r.meanwhile(depth)
		tx.End(context.WithoutCancel(ctx))
		if err != nil {
			r.leave(tx.Process())
		}
	default:
		tx.Lose()
		r.ended(evDoubt, 0, tx.Process(), nil)
		r.leave(tx.Process())
	}
}
