package engine_test

import (
	"context"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

// write commits a write of the client; now and then it reads it at once.
func (r *request) write() {
	ctx, cancel, _ := r.context()
	defer cancel()
	tx, err := r.c.w.gates[r.gate].Begin(ctx, int64(r.c.id))
	if err != nil {
		return // nothing was written
	}
	r.commit(ctx, tx)
	if r.chance(.3) {
		r.look()
	}
}

// commit commits; an error leaves the outcome open.
func (r *request) commit(ctx context.Context, tx *fake.Tx) {
	serial, err := tx.Commit(ctx)
	if err == nil {
		r.wrote(int(serial))
	} else {
		r.leave(tx.Process())
	}
	r.ended(evWrite, int(serial), tx.Process(), err)
}

func (r *request) wrote(serial int) {
	w := r.c.w
	w.mu.Lock()
	r.knows.wrote(serial)
	r.made.Add(serial)
	w.n.Writes++
	w.mu.Unlock()
}

func (r *request) ended(kind eventKind, serial int, p *fake.Process, err error) {
	w := r.c.w
	w.mu.Lock()
	w.trace.add(w, event{kind: kind, req: r, serial: serial, proc: p, err: err})
	w.mu.Unlock()
}

// leave leaves a process behind that nobody has a connection to. Whether it
// commits is decided later; the session's reads have to wait for it.
func (r *request) leave(p *fake.Process) {
	w := r.c.w
	w.mu.Lock()
	r.knows.doubt(p)
	r.doubts = append(r.doubts, p)
	w.n.Doubts++
	w.mu.Unlock()
	// Probes are about as long as a short way to its end.
	long := []time.Duration{w.latency, 5 * time.Millisecond}[r.r.IntN(2)]
	late, shown, lands := r.upTo(long), r.upTo(long/2), r.chance(.7)
	w.wg.Go(func() {
		time.Sleep(late)
		if lands {
			p.Flush()
			time.Sleep(shown)
		}
		p.End()
		_, serial := p.Ended()
		w.trace.add(w, event{kind: evShown, serial: serial, proc: p})
	})
}

// lose begins a write and loses the connection: its outcome is decided later,
// while the request reads.
func (r *request) lose() {
	if r.c.keeps == merging && r.chance(.9) {
		return // a merged token never loses the duty to catch up
	}
	ctx, cancel, _ := r.context()
	defer cancel()
	p, err := r.c.w.gates[r.gate].WriteInDoubt(ctx, int64(r.c.id))
	if err != nil {
		r.ended(evDoubt, 0, nil, err)
		return
	}
	serial := 0
	if r.chance(.3) {
		serial = p.Flush()
	}
	r.ended(evDoubt, serial, p, nil)
	r.leave(p)
	if r.chance(.8) {
		r.look() // did it land?
	}
}

// tell commits a write on another way and tells the session of it.
func (r *request) tell() {
	if r.c.keeps == merging && r.chance(.9) {
		return
	}
	w := r.c.w
	ctx, cancel, _ := r.context()
	defer cancel()
	// Which primary it went to is known only where the session has used the
	// instance before; while two live, or a life can lose what it has acknowledged, that matters.
	of := context.Background()
	if w.plan.failover || w.plan.async {
		of = ctx
	}
	core := w.gates[r.gate].Core()
	to, err := core.BeginWrite(of)
	if err != nil {
		return
	}
	core.EndWrite(&to)
	p := w.cluster.Nodes()[to.Node].Begin(int64(r.c.id))
	serial := p.Flush()
	if p.End(); serial == 0 {
		return
	}
	tidegate.Wrote(ctx, cluster)
	w.mu.Lock()
	r.knows.wrote(serial)
	w.trace.add(w, event{kind: evWrote, req: r, serial: serial})
	w.mu.Unlock()
	if r.chance(.5) {
		r.look()
	}
}
