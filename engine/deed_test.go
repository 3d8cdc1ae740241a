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

// deeds are what can happen, in a plan's proportions. What is left of the steps
// is time for requests and probes under way.
func (w *world) deeds() []deed {
	d := []deed{
		{.03, w.commit}, {.03, w.showSome}, {.12, w.receive}, {.16, w.replay}, {.01, func() { w.replica().Checkpoint() }},
		{.003, w.crash}, {.02, w.connect}, {.03, w.disconnect}, {.08, w.suspect},
		{.02, func() { w.someone().write() }}, {.003, func() { w.someone().doubt() }}, {.003, func() { w.someone().wrote() }}, {.20, func() { w.someone().read() }},
	}
	if w.plan.stormy {
		d = append(d, deed{.02, w.crash})
	}
	if w.plan.doubtful {
		d = append(d, deed{.02, func() { w.someone().doubt() }})
	}
	if w.plan.async {
		d = append(d, deed{.01, func() {
			if p := w.cluster.Primary(); p != nil {
				p.Flush()
			}
		}})
	}
	if w.plan.rough {
		d = append(d, deed{.01, w.trouble})
	}
	if w.plan.failover {
		d = append(d, deed{.01, w.failover}, deed{.01, w.renew})
	}
	return d
}

// step lets one thing happen.
func (w *world) step(deeds []deed) {
	k := w.dice.float()
	for _, d := range deeds {
		if k -= d.share; k < 0 {
			d.do()
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
	w.n.crashes++
	w.trace.add(w, event{kind: evCrash, node: r, view: r.View(), life: r.Incarnation()})
	for i := range w.gates {
		if w.dice.chance(.5) { // pools fill up again at once
			w.connectTo(i, r.Index())
		}
	}
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
	case 1:
		r.Stop()
	default:
		r.Hang(false)
		r.Start()
	}
}
