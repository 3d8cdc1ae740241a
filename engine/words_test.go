package engine_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

// lines puts all events into words.
func (t *trace) lines() (all []string) {
	for i := range t.events {
		all = append(all, t.words(&t.events[i]))
	}
	return all
}

// words puts an event into words.
func (t *trace) words(e *event) string {
	s := ""
	if e.req != nil {
		s = e.req.String() + " "
	}
	node := ""
	if e.node != nil {
		node = e.node.Name()
	}
	switch e.kind {
	case evCommit:
		s += fmt.Sprintf("somebody's commit %d is flushed; the primary does not show it yet", e.serial)
	case evShown:
		s += "the primary shows commit " + strconv.Itoa(e.serial)
		if e.serial == 0 {
			s = "a server process ends without a commit"
		}
	case evLife:
		s += fmt.Sprintf("%s %s %s, which shows %s", node, e.what, life(e.life), span(e.view))
	case evNode:
		s += node + " " + e.what
	case evProbe:
		s += t.probeWords(e)
	case evArrive:
		s += "begins" + tokens("it carries", e.req.carried)
	case evLook:
		s += fmt.Sprintf("begins a %s read; it knows of %s", e.look.class, span(e.look.need.known))
		if n := len(e.look.need.doubts); n > 0 {
			s += fmt.Sprintf(" and of %d writes of unknown outcome", n)
		}
	case evShows:
		s += e.look.words(e.view)
	case evRelease:
		s += "gives the connection to " + e.look.node.Name() + " back"
	case evTx:
		s += "is in a transaction on the primary, which shows " + span(e.view)
		if e.view == nil {
			s = e.req.String() + " rolls its transaction back"
		}
	case evWrite:
		if s += fmt.Sprintf("is told that its commit %d is done", e.serial); e.err != nil {
			s = fmt.Sprintf("%v commits and does not learn the outcome: %v", e.req, e.err)
		}
	case evDoubt:
		if s += "loses the connection in a write, whose outcome is not known"; e.err != nil {
			s = fmt.Sprintf("%v cannot write: %v", e.req, e.err)
		}
	case evWrote:
		s += fmt.Sprintf("writes commit %d on another way and tells the session of it", e.serial)
	case evHear:
		s += fmt.Sprintf("gets an event from client %d", e.client.id) + tokens("with", e.req.events)
	case evRespond:
		s += respondWords(e)
	case evWrong:
		s = fmt.Sprintf("*** %v is not shown commit %d", e.req, e.serial)
		if e.serial == 0 {
			s = fmt.Sprintf("*** %v has its answer", e.req)
		}
	}
	return fmt.Sprintf("%12v  %s", e.at.Round(time.Microsecond), s)
}

func (t *trace) probeWords(e *event) string {
	p := &t.probes[e.serial]
	s := fmt.Sprintf("  instance %d hears from %s, asked at %v: ", e.gate, e.node.Name(), p.asked.Round(time.Microsecond))
	if e.err != nil {
		return s + e.err.Error()
	}
	return s + fmt.Sprintf("%s, %s, line %d, applied %v, can have shown up to %v", p.role, life(p.life), p.line, p.applied, p.bound)
}

func respondWords(e *event) string {
	s := "responds"
	switch {
	case e.drop:
		return "responds, and the response is lost"
	case e.early:
		s = "responds while its rows are open"
	}
	return s + tokens("the client gets", []*kept{e.kept})
}

// words tells what a statement of the read showed, or why it failed.
func (l *look) words(v fake.View) string {
	if l.err != nil && v == nil {
		return fmt.Sprintf("fails in its %s read: %v", l.class, l.err)
	}
	s := fmt.Sprintf("is shown %s by %s", span(v), life(l.life))
	if l.held {
		s += " on a connection that it keeps"
	}
	return s + fmt.Sprintf("; %v", l.decision)
}

func (r *request) String() string {
	return fmt.Sprintf("request %d of client %d on instance %d", r.n, r.c.id, r.gate)
}

// life names an incarnation by its number and its node.
func life(id tidegate.Incarnation) string {
	if id == ^tidegate.Incarnation(0) {
		return "lives of several primaries"
	}
	node := "p"
	if i := uint64(id)>>32 - 1000; i > 0 {
		node = fmt.Sprintf("r%d", i)
	}
	return fmt.Sprintf("life %d of %s", uint64(id)&0xffffffff, node)
}

func tokens(verb string, all []*kept) string {
	s := ""
	for _, k := range all {
		for _, m := range k.token.Marks() {
			s += " " + mark(m)
		}
	}
	if s == "" {
		s = " an empty token"
	}
	return "; " + verb + s
}

// mark puts a mark into words.
func mark(m tidegate.Mark) string {
	s := fmt.Sprintf("{line %d, mark %v", m.Epoch.Line, m.Position)
	if !m.Shown.IsZero() {
		s += fmt.Sprintf(", shown %v", m.Shown)
	}
	for i, id := range m.Seen {
		if i == 0 {
			s += ", seen"
		}
		s += " " + life(id)
	}
	if m.CatchUp {
		s += ", must catch up"
		if m.Primary != 0 {
			s += " with " + life(m.Primary)
		}
		if len(m.Pending) > 0 {
			s += fmt.Sprintf(" and processes %v", m.Pending)
		}
	}
	return s + "}"
}

// span puts a view into words: "1..9 11 13..20".
func span(v fake.View) string {
	var parts []string
	for s := 1; s < 64*len(v); s++ {
		if !v.Has(s) {
			continue
		}
		from := s
		for v.Has(s + 1) {
			s++
		}
		if from == s {
			parts = append(parts, strconv.Itoa(s))
		} else {
			parts = append(parts, fmt.Sprintf("%d..%d", from, s))
		}
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, " ")
}
