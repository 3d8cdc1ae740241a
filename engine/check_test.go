package engine_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

// look is one read: what it must show, as it was known when it began, and what it
// showed.
type look struct {
	r       *request
	class   tidegate.Class
	need    knowledge
	tolds   int
	began   time.Time
	at      time.Duration // since the run began
	hurried bool          // the caller's deadline leaves no time for proofs
	held    bool          // on a connection that stays in use

	node     *fake.Node
	life     tidegate.Incarnation
	decision tidegate.Decision
	view     fake.View // the last statement's
	looks    int       // statements
	err      error
}

// violation is a broken promise.
type violation struct {
	what, why string
	serial    int           // the commit that was missed
	proc      *fake.Process // the server process whose outcome was not known
	l         *look
	text      string
}

func (v *violation) String() string { return v.text }

// expect begins a read.
func (r *request) expect(class tidegate.Class, hurried bool) *look {
	w := r.c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	r.knows.resolve()
	l := &look{r: r, class: class, need: r.knows.clone(), tolds: r.tolds, began: time.Now(), at: w.now(), hurried: hurried}
	w.trace.add(w, event{kind: evLook, req: r, look: l})
	return l
}

// told takes in the decisions; w.mu is held.
func (l *look) told(seen *tidegate.Decisions) {
	if slices.ContainsFunc(seen.All(), func(d tidegate.Decision) bool { return d.Reason == tidegate.ReasonHistoryChanged }) {
		l.r.tolds++
		l.r.knows.forget()
	}
}

// failed ends a read that failed; w.mu is held.
func (l *look) failed(err error) {
	w := l.r.c.w
	w.n.Failed++
	l.err = err
	w.trace.add(w, event{kind: evShows, req: l.r, look: l})
}

// done takes in what a statement showed and checks it; w.mu is held.
func (l *look) done(v fake.View) {
	w := l.r.c.w
	before := l.view
	l.view = v
	if l.looks++; l.looks == 1 {
		w.n.Reads++
		if l.decision.Role == tidegate.RoleReplica {
			w.n.Replica++
		}
		if w.cluster.Lacking(l.need.known) {
			w.n.Opportunities++
		}
		if l.decision.Unproven {
			w.n.Unproven++
			if l.hurried {
				w.n.Hurried++
			}
			if l.decision.Reason == tidegate.ReasonHistoryChanged {
				w.n.Changed++
			}
		}
	} else {
		w.n.Statements++
		l.shows("backwards", "the same connection had shown it before", before)
	}
	w.trace.add(w, event{kind: evShows, req: l.r, look: l, view: v})
	l.check()
	l.r.knows.known.Join(v)
}

func (l *look) check() {
	w := l.r.c.w
	switch {
	case l.decision.Unproven, l.tolds != l.r.tolds:
		return // it says so, or a parallel read of the session has
	case l.class.Need() == tidegate.NeedRelaxed:
		if d, anyAge := l.class.Budget(); !anyAge && l.looks == 1 && !w.plan.failover && !(w.plan.async && w.n.Restarts > 0) {
			l.shows("older than its budget", fmt.Sprintf("the primary showed it more than %v before the read began", d), w.cluster.Shown(l.began.Add(-d)))
		}
		return
	}
	l.shows("stale", "the session was told that it has committed", l.need.acked)
	l.shows("backwards", "the session had been shown it before the read began", l.need.known)
	for _, p := range l.need.doubts {
		ended, serial := p.Ended()
		if !ended {
			l.wrong("too early", "it was answered while the outcome of a write of the session was still open", serial, p)
		}
		if serial != 0 && !l.view.Has(serial) {
			l.wrong("stale", "the outcome of the session's write was unknown, and it has landed", serial, p)
		}
	}
}

func (l *look) shows(what, why string, need fake.View) {
	if m := l.view.Missing(need); m != 0 {
		l.wrong(what, why, m, nil)
	}
}

// wrong notes the first violation of the run.
func (l *look) wrong(what, why string, serial int, p *fake.Process) {
	w := l.r.c.w
	if w.wrong != nil {
		return
	}
	w.wrong = &violation{what: what, why: why, serial: serial, proc: p, l: l}
	w.trace.add(w, event{kind: evWrong, req: l.r, look: l, serial: serial, view: l.view})
	w.wrong.text = w.trace.story(w.plan.seed, w.wrong)
}
