package engine_test

import (
	"fmt"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

// check is what one read must show, as it was known when it began.
type check struct {
	c           *client
	class       tidegate.Class
	need, acked fake.View
	doubts      []*fake.Process
	began       time.Time
	hurried     bool // the caller's deadline leaves no time for proofs
}

// violation is a broken promise.
type violation struct {
	what   string
	serial int
	c      *client
	text   string
}

func (v *violation) String() string { return v.text }

// done checks a read that has ended; w.mu is held.
func (k *check) done(r *request, res *fake.Result) {
	w := k.c.w
	w.n.reads++
	replica := res.Decision.Role == tidegate.RoleReplica
	if replica {
		w.n.replica++
	}
	for _, n := range w.cluster.Nodes() {
		if n.Role() == tidegate.RoleReplica && n.Up() && n.View().Missing(k.need) != 0 {
			w.n.opportunities++
			break
		}
	}
	if res.Decision.Unproven {
		w.n.unproven++
		if k.hurried {
			w.n.hurried++
		}
		if res.Decision.Reason == tidegate.ReasonHistoryChanged {
			w.n.changed++
		}
		return
	}
	if k.class.Need() == tidegate.NeedRelaxed {
		if d, anyAge := k.class.Budget(); !anyAge && !w.plan.failover {
			k.shows(r, res, "older than its budget", w.cluster.Shown(k.began.Add(-d)))
		}
		return
	}
	k.shows(r, res, "stale: it lacks an acknowledged write of its own session", k.acked)
	k.shows(r, res, "backwards: it lacks what the session had seen", k.need)
	for _, p := range k.doubts {
		ended, serial := p.Ended()
		if !ended {
			k.wrong(r, res, "it was answered while the outcome of a write was still open", serial)
		}
		if serial != 0 && !res.View.Has(serial) {
			k.wrong(r, res, "it lacks a write whose outcome was unknown and which landed", serial)
		}
	}
}

func (k *check) shows(r *request, res *fake.Result, what string, need fake.View) {
	if m := res.View.Missing(need); m != 0 {
		k.wrong(r, res, what, m)
	}
}

// wrong notes the first violation of the run.
func (k *check) wrong(r *request, res *fake.Result, what string, serial int) {
	w := k.c.w
	if w.wrong != nil {
		return
	}
	w.wrong = &violation{what: what, serial: serial, c: k.c}
	w.trace.add(w, event{kind: evWrong, client: k.c, gate: r.gate, serial: serial, req: r, node: res.Node, life: res.Incarnation, view: res.View, decision: res.Decision})
	w.wrong.text = fmt.Sprintf("seed %d: %s\n%s", w.plan.seed, what, w.trace.story(w.wrong))
}
