package engine_test

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

var (
	strong     = tidegate.Strong("strong", "a simulated decision")
	relaxed    = tidegate.Relaxed("relaxed", "simulated rollups", tidegate.Within(budget))
	relaxedAny = tidegate.Relaxed("relaxed-any", "simulated rollups of any age", tidegate.AnyStaleness())
)

const budget = 50 * time.Millisecond

// client is one session. Between its requests there are only its tokens, which
// it keeps in one of two ways: all merged into one, or as a set of write-once
// names, where a response adds one and deletes those that its request carried.
type client struct {
	w      *world
	id     int
	merges bool

	// Guarded by w.mu.
	tokens  map[int]tidegate.Token
	next    int
	flying  int
	writing bool
	acked   fake.View // own writes that were acknowledged
	known   fake.View // these, and all that it has seen
	doubts  []*fake.Process
}

func newClient(w *world, id int) *client {
	// A merged token never forgets a history that is no more, so whoever keeps one
	// is told of its loss with every read.
	c := &client{w: w, id: id, merges: w.dice.chance(.5) && !w.plan.failover}
	c.forget()
	return c
}

// forget begins a new session.
func (c *client) forget() {
	// A token of nobody's history, with a nonce of our choice.
	b := binary.BigEndian.AppendUint64([]byte{1}, uint64(c.w.dice.n(1<<62))|1)
	first, err := tidegate.ParseBinary(append(b, 0))
	if err != nil {
		panic(err)
	}
	c.tokens = map[int]tidegate.Token{c.next: first}
	c.next++
	c.told()
}

// told is called when the session has been told that what it knew may be lost.
func (c *client) told() { c.known, c.acked, c.doubts = nil, nil, nil }

// request is one request of a client to an instance.
type request struct {
	c       *client
	gate    int
	carried []int
	session *tidegate.Session
}

// request begins a request; w.mu is held.
func (c *client) request() *request {
	r := &request{c: c, gate: c.w.dice.n(len(c.w.gates))}
	var tokens []tidegate.Token
	for name := range c.tokens {
		r.carried = append(r.carried, name)
	}
	slices.Sort(r.carried)
	for _, name := range r.carried {
		b, err := c.tokens[name].AppendBinary(nil)
		if err != nil {
			panic(err)
		}
		t, err := tidegate.ParseBinary(b)
		if err != nil {
			panic(err)
		}
		tokens = append(tokens, t)
	}
	r.session = tidegate.NewSession(tokens...)
	return r
}

// respond ends a request: its token reaches the client. w.mu is held.
func (r *request) respond() {
	c, t := r.c, r.session.Token()
	if c.merges {
		c.tokens[r.carried[0]] = c.tokens[r.carried[0]].Merge(t)
		return
	}
	for _, name := range r.carried {
		delete(c.tokens, name)
	}
	c.tokens[c.next] = t
	c.next++
}

func (r *request) context(limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(tidegate.WithSession(context.Background(), r.session), limit)
}

// read begins a read of any class; it checks it when it has ended.
func (c *client) read() {
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.flying >= w.par {
		return
	}
	c.flying++
	r := c.request()
	class := tidegate.Causal
	switch u := w.dice.float(); {
	case u < .06:
		class = strong
	case u < .11:
		class = relaxed
	case u < .16:
		class = relaxedAny
	}
	limit, hurried := 5*time.Second, w.dice.chance(.02)
	if hurried {
		limit = w.dice.upTo(10 * time.Millisecond)
	}
	chk := check{c: c, hurried: hurried, class: class, need: c.known.Clone(), acked: c.acked.Clone(), doubts: slices.Clone(c.doubts), began: time.Now()}
	w.trace.add(w, event{kind: evArrive, client: c, gate: r.gate, class: class, req: r, view: chk.need})
	w.wg.Go(func() {
		ctx, cancel := r.context(limit)
		defer cancel()
		ctx, seen := tidegate.Observe(ctx)
		res, err := w.gates[r.gate].Look(ctx, class)
		w.mu.Lock()
		defer w.mu.Unlock()
		c.flying--
		if slices.ContainsFunc(seen.All(), func(d tidegate.Decision) bool { return d.Reason == tidegate.ReasonHistoryChanged }) {
			c.told()
		}
		if err != nil {
			w.n.errors++
		} else {
			chk.done(r, &res)
			c.known.Join(res.View)
		}
		r.respond()
		w.trace.add(w, event{kind: evRead, client: c, gate: r.gate, class: class, req: r, err: err, node: res.Node, life: res.Incarnation, view: res.View, decision: res.Decision})
	})
}

// write commits a write of the client.
func (c *client) write() {
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.writing {
		return
	}
	c.writing = true
	r := c.request()
	w.wg.Go(func() {
		ctx, cancel := r.context(5 * time.Second)
		defer cancel()
		serial, err := w.gates[r.gate].Write(ctx, int64(c.id))
		w.mu.Lock()
		defer w.mu.Unlock()
		c.writing = false
		if err == nil {
			w.n.writes++
			c.known.Add(int(serial))
			c.acked.Add(int(serial))
		}
		r.respond()
		w.trace.add(w, event{kind: evWrite, client: c, gate: r.gate, serial: int(serial), req: r, err: err})
	})
}

// doubt loses the connection of a write: its outcome is decided later.
func (c *client) doubt() {
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.writing || c.merges {
		return
	}
	c.writing = true
	r := c.request()
	early, late, lands := w.dice.chance(.3), w.dice.upTo(5*time.Millisecond), w.dice.chance(.7)
	w.wg.Go(func() {
		ctx, cancel := r.context(5 * time.Second)
		defer cancel()
		p, err := w.gates[r.gate].WriteInDoubt(ctx, int64(c.id))
		serial := 0
		if err == nil && early {
			serial = p.Flush()
		}
		w.mu.Lock()
		c.writing = false
		if err == nil {
			w.n.doubts++
			c.doubts = append(c.doubts, p)
		}
		r.respond()
		w.trace.add(w, event{kind: evDoubt, client: c, gate: r.gate, serial: serial, req: r, err: err})
		w.mu.Unlock()
		if err != nil {
			return
		}
		c.read() // did it land?
		time.Sleep(late)
		if lands && serial == 0 {
			serial = p.Flush()
			time.Sleep(late / 2)
		}
		p.End()
		w.trace.add(w, event{kind: evShown, serial: serial})
	})
}

// wrote commits a write on another way and tells the session of it.
func (c *client) wrote() {
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.merges {
		return
	}
	r := c.request()
	ctx, cancel := r.context(time.Second)
	defer cancel()
	to, err := w.gates[r.gate].Core().BeginWrite(ctx)
	if err != nil {
		return
	}
	w.gates[r.gate].Core().EndWrite(&to) // it goes another way
	p := w.cluster.Nodes()[to.Node].Begin(int64(c.id))
	serial := p.Flush()
	if p.End(); serial == 0 {
		return
	}
	tidegate.Wrote(ctx, cluster)
	c.known.Add(serial)
	c.acked.Add(serial)
	r.respond()
	w.trace.add(w, event{kind: evWrote, client: c, gate: r.gate, serial: serial, req: r})
}
