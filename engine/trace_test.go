package engine_test

import (
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
	evLife // a node begins a new life
	evNode // something else happens to a node
	evProbe
	evArrive
	evLook
	evShows
	evRelease
	evTx
	evWrite
	evDoubt
	evWrote
	evHear
	evRespond
	evWrong
)

// event is one thing that happened. It is put into words only for a story.
type event struct {
	at     time.Duration
	kind   eventKind
	early  bool
	drop   bool
	gate   int8
	serial int // of a commit; of a probe, its place in the trace's list
	req    *request
	look   *look
	kept   *kept
	client *client
	node   *fake.Node
	life   tidegate.Incarnation
	view   fake.View
	proc   *fake.Process
	what   string
	err    error
}

// probe is what is kept of an observation.
type probe struct {
	asked          time.Duration
	life           tidegate.Incarnation
	role           tidegate.Role
	line           uint64
	applied, bound tidegate.Position
}

// trace is all that happened in a run. The memory of one goes to the next.
type trace struct {
	mu     sync.Mutex
	events []event
	probes []probe
}

func (t *trace) reset() {
	clear(t.events)
	t.events, t.probes = t.events[:0], t.probes[:0]
}

func (t *trace) add(w *world, e event) {
	e.at = w.now()
	t.mu.Lock()
	t.events = append(t.events, e)
	t.mu.Unlock()
}

func (t *trace) probed(w *world, gate int, n *fake.Node, asked time.Time, o *engine.Observation, err error) {
	at := w.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, event{at: at, kind: evProbe, gate: int8(gate), node: n, serial: len(t.probes), err: err})
	t.probes = append(t.probes, probe{asked.Sub(w.begun), o.Incarnation, o.Role, o.Epoch.Line, o.Applied, o.Bound})
}
