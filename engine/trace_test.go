package engine_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

type eventKind uint8

const (
	evCommit eventKind = iota
	evShown
	evCrash
	evProbe
	evArrive
	evRead
	evWrite
	evDoubt
	evWrote
	evPromote
	evWrong
)

// event is one thing that happened. It is put into words only for a story.
type event struct {
	at       time.Duration
	kind     eventKind
	client   *client
	gate     int
	node     *fake.Node
	life     tidegate.Incarnation
	serial   int
	class    tidegate.Class
	view     fake.View
	decision tidegate.Decision
	obs      engine.Observation
	req      *request
	marks    []tidegate.Mark
	err      error
}

// trace is all that happened in a run.
type trace struct {
	mu     sync.Mutex
	events []event
}

func (t *trace) add(w *world, e event) {
	e.at = w.now()
	if e.req != nil {
		e.marks = e.req.session.Token().Marks()
	}
	t.mu.Lock()
	t.events = append(t.events, e)
	t.mu.Unlock()
}

func (t *trace) probed(w *world, gate int, n *fake.Node, o engine.Observation, err error) {
	t.add(w, event{kind: evProbe, gate: gate, node: n, obs: o, err: err})
}

// story tells what led to a violation: all that its client did, and what the
// instances learnt, since it knew of the commit that it then missed.
func (t *trace) story(v *violation) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	from := 0
	for i, e := range t.events {
		knew := e.client == v.c && (e.kind == evRead && e.view.Has(v.serial) || e.serial == v.serial)
		if knew {
			from = i
			break
		}
	}
	// The request that learnt it may have begun earlier.
	for i := from; i >= 0; i-- {
		if e := t.events[i]; e.kind == evArrive && e.req == t.events[from].req {
			from = i
			break
		}
	}
	var lines []string
	for i, e := range t.events {
		mine := e.client == v.c && i >= from
		about := e.serial == v.serial && e.client == nil
		facts := i >= from && (e.kind == evProbe || e.kind == evCrash || e.kind == evPromote)
		if mine || about || facts {
			lines = append(lines, e.String())
		}
	}
	if n := len(lines); n > maxStory && !repeating() {
		lines = append(append(lines[:maxStory/4:maxStory/4], fmt.Sprintf("  ... %d lines left out ...", n-maxStory)), lines[n-maxStory*3/4:]...)
	}
	return strings.Join(lines, "\n")
}

const maxStory = 120

func (e event) String() string {
	at := fmt.Sprintf("%12v ", e.at)
	who := ""
	if e.client != nil {
		who = fmt.Sprintf("client %d on instance %d: ", e.client.id, e.gate)
	}
	node := ""
	if e.node != nil {
		node = fmt.Sprintf("%s (life %x)", e.node.Name(), uint64(e.life)&0xffffffff)
	}
	token := ""
	for _, m := range e.marks {
		token += " " + words(m)
	}
	switch e.kind {
	case evCommit:
		return fmt.Sprintf("%scommit %d is flushed, not yet shown by the primary", at, e.serial)
	case evShown:
		return fmt.Sprintf("%sthe primary shows commit %d", at, e.serial)
	case evCrash:
		return fmt.Sprintf("%s%s begins a new life and shows %s", at, node, span(e.view))
	case evPromote:
		return fmt.Sprintf("%s%s: %s", at, e.node.Name(), e.err)
	case evProbe:
		o := e.obs
		if e.err != nil {
			return fmt.Sprintf("%s    instance %d asked %s: %v", at, e.gate, e.node.Name(), e.err)
		}
		return fmt.Sprintf("%s    instance %d learns of %s (life %x): %s of line %d, applied %v, bound %v", at, e.gate, e.node.Name(),
			uint64(o.Incarnation)&0xffffffff, o.Role, o.Epoch.Line, o.Applied, o.Bound)
	case evArrive:
		return fmt.Sprintf("%s%sa %s read begins; it knows %s; token%s", at, who, e.class, span(e.view), token)
	case evRead:
		if e.err != nil {
			return fmt.Sprintf("%s%sthe %s read failed: %v; token%s", at, who, e.class, e.err, token)
		}
		return fmt.Sprintf("%s%sthe read ends: %s showed %s; %v; token%s", at, who, node, span(e.view), e.decision, token)
	case evWrite:
		return fmt.Sprintf("%s%swrote commit %d (%v); token%s", at, who, e.serial, e.err, token)
	case evDoubt:
		return fmt.Sprintf("%s%slost a write (commit %d, if any by now; %v); token%s", at, who, e.serial, e.err, token)
	case evWrote:
		return fmt.Sprintf("%s%stold of commit %d on another way; token%s", at, who, e.serial, token)
	default:
		return fmt.Sprintf("%s%s*** WRONG: %s showed %s without commit %d; %v", at, who, node, span(e.view), e.serial, e.decision)
	}
}

// words puts a mark into words.
func words(m tidegate.Mark) string {
	s := fmt.Sprintf("{line %d at %v", m.Epoch.Line, m.Position)
	if !m.Shown.IsZero() {
		s += fmt.Sprintf(" shown %v", m.Shown)
	}
	for _, id := range m.Seen {
		s += fmt.Sprintf(" seen %x", uint64(id)&0xffffffff)
	}
	if m.CatchUp {
		s += fmt.Sprintf(" catch-up of life %x pending %v", uint64(m.Primary)&0xffffffff, m.Pending)
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
