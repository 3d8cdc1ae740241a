package engine_test

import (
	"context"
	"time"

	"github.com/tidegatedb/tidegate"
)

// deed is something that can happen in a step, with its share of all steps.
type deed struct {
	share float64
	do    func()
}

// deeds are what can happen, in a plan's proportions.
type deeds []deed

func (w *world) deeds() deeds {
	ask := func(do func(*request)) func() { return func() { w.someone().start(do) } }
	d := deeds{
		{.04, w.commit}, {.04, w.showSome}, {.15, w.receive}, {.20, w.replay}, {.01, func() { w.replica().Checkpoint() }},
		{.004, w.crash}, {.03, w.connect}, {.04, w.disconnect}, {.09, w.suspect}, {.003, w.renew},
		{.38, ask((*request).look)}, {.02, ask((*request).several)}, {.02, ask((*request).together)}, {.02, ask((*request).hold)},
		{.02, ask((*request).write)}, {.008, ask((*request).transact)}, {.003, ask((*request).lose)}, {.003, ask((*request).tell)}, {.004, ask((*request).heard)},
	}
	if w.plan.stormy {
		d = append(d, deed{.025, w.crash})
	}
	if w.plan.doubtful {
		d = append(d, deed{.025, ask((*request).lose)})
	}
	if w.plan.async {
		d = append(d, deed{.0125, func() {
			if p := w.cluster.Primary(); p != nil {
				p.Flush()
			}
		}}, deed{.001, w.restart}) // which loses what was acknowledged and not flushed
	}
	if w.plan.rough {
		d = append(d, deed{.0125, w.trouble}, deed{.001, w.restart})
	}
	if w.plan.failover {
		d = append(d, deed{.02, w.failover}, deed{.01, w.renew})
	}
	if w.plan.kept {
		d = append(d, deed{.02, w.troubleStore})
	}
	if w.plan.mortal {
		d = append(d, deed{.06, w.troubleStore}, deed{.06, ask((*request).write)})
	}
	if w.plan.restless {
		d = append(d, deed{.08, w.troubleStore}, deed{.08, ask((*request).hold)}, deed{.04, ask((*request).write)})
	}
	all := 0.
	for _, x := range d {
		all += x.share
	}
	for i := range d {
		d[i].share /= all
	}
	return d
}

// step lets one thing happen.
func (d deeds) step(k float64) {
	for _, x := range d {
		if k -= x.share; k < 0 {
			x.do()
			return
		}
	}
}

func (w *world) someone() *client { return w.clients[w.dice.n(len(w.clients))] }

// commit lets somebody commit; the primary does not show it yet.
func (w *world) commit() {
	if p := w.cluster.Primary(); p != nil {
		proc := p.Begin(int64(w.dice.n(5)))
		w.trace.add(w, event{kind: evCommit, serial: proc.Flush()})
		w.open = append(w.open, proc)
	}
}

func (w *world) showSome() {
	for i := len(w.open); i > 0; i-- {
		if w.dice.chance(.6) {
			w.end(w.dice.n(len(w.open)))
		}
	}
}

func (w *world) receive() { w.replica().Receive(1 + w.dice.n(4)) }

// replay lets a replica show and publish some; often it shows more than it has
// published.
func (w *world) replay() {
	r := w.replica()
	for range 1 + w.dice.n(6) {
		if w.dice.chance(.3) && r.Publish() || r.Show() {
			continue
		}
		r.Publish()
	}
}

func (w *world) suspect() { w.gates[w.dice.n(2)].Core().Suspect(w.dice.n(4)) }

// end ends an open write: the primary shows it.
func (w *world) end(i int) {
	p := w.open[i]
	p.End()
	w.open = append(w.open[:i], w.open[i+1:]...)
	_, serial := p.Ended()
	w.trace.add(w, event{kind: evShown, serial: serial})
}

func (w *world) crash() {
	r := w.replica()
	if !r.Up() || r.Role() != tidegate.RoleReplica {
		return
	}
	r.Crash(w.dice.n(8))
	w.count(&w.n.Crashes)
	w.trace.add(w, event{kind: evLife, what: "crashes and begins", node: r, view: r.View(), life: r.Incarnation()})
	for i := range w.gates {
		if w.dice.chance(.5) { // pools fill up again at once
			w.connectTo(i, r.Index())
		}
	}
}

// restart lets the primary crash and recover at once.
func (w *world) restart() {
	p := w.cluster.Primary()
	if p == nil {
		return
	}
	p.Crash(0)
	w.count(&w.n.Restarts)
	w.trace.add(w, event{kind: evLife, what: "crashes and begins", node: p, view: p.View(), life: p.Incarnation()})
}

// disconnect makes reads fail before their first row, so that sessions leave a
// node that is sound.
func (w *world) disconnect() { w.gates[w.dice.n(2)].Disconnect(1 + w.dice.n(3)) }

func (w *world) connect() { w.connectTo(w.dice.n(2), 1+w.dice.n(3)) }

func (w *world) connectTo(gate, node int) {
	g := w.gates[gate]
	w.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = g.Connect(ctx, node)
	})
}

// settle lets all that is under way come to its end.
func (w *world) settle() {
	for range 20 {
		for len(w.open) > 0 {
			w.end(0)
		}
		for _, n := range w.cluster.Nodes() {
			n.Hang(false)
			n.Start()
			n.Flush()
			n.Receive(1 << 20)
			for n.Show() || n.Publish() {
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// trouble makes a replica hang, refuse, or be well again.
func (w *world) trouble() {
	r := w.replica()
	switch w.dice.n(6) {
	case 0:
		r.Hang(true)
		w.trace.add(w, event{kind: evNode, node: r, what: "does not answer probes"})
	case 1:
		r.Stop()
		w.trace.add(w, event{kind: evNode, node: r, what: "is stopped"})
	default:
		r.Hang(false)
		if r.Up() {
			return
		}
		r.Start()
		w.trace.add(w, event{kind: evLife, what: "is started and begins", node: r, view: r.View(), life: r.Incarnation()})
	}
}
