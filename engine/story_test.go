package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

// maxStory bounds the part of a story that tells everything, but for a seed that
// is looked into.
const maxStory = 100

// story tells of a violation: what was promised, then the chain of requests and
// tokens that brought the knowledge of the missed commit to the read, then all
// that the clients of the chain did and the instances learnt meanwhile.
func (t *trace) story(seed uint64, v *violation) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := v.l
	var b strings.Builder
	missed := fmt.Sprintf("does not show commit %d", v.serial)
	if v.serial == 0 {
		missed = "is answered"
	}
	fmt.Fprintf(&b, "seed %d, %s: the %s read of %v is answered by %s and %s, although %s\n", seed, v.what, l.class, l.r, l.node.Name(), missed, v.why)
	chain, from := t.chain(v)
	b.WriteString("how it came about (the first n commits of a log end at position 10 n):\n")
	for i := range t.events {
		if chain[i] {
			fmt.Fprintln(&b, t.words(&t.events[i]))
		}
	}
	fmt.Fprintf(&b, "all that client %d did and the instances learnt from there on:\n", l.r.c.id)
	b.WriteString(t.everything(v, from, chain))
	return b.String()
}

// everything lists what the client did and what the instances learnt that was
// new to them.
func (t *trace) everything(v *violation, from int, chain map[int]bool) string {
	type asked struct {
		gate int8
		node *fake.Node
	}
	last := map[asked]probe{}
	var lines []string
	for i := from; i < len(t.events); i++ {
		e := &t.events[i]
		tell := e.req != nil && e.req.c == v.l.r.c || e.kind == evLife || e.kind == evNode || e.serial == v.serial && e.req == nil
		if e.kind == evProbe {
			k, p := asked{e.gate, e.node}, t.probes[e.serial]
			p.asked = 0
			tell = chain[i] || last[k] != p
			last[k] = p
		}
		if tell {
			lines = append(lines, t.words(e))
		}
	}
	if n := len(lines); n > maxStory && !repeating() {
		lines = append([]string{fmt.Sprintf("  ... %d lines left out, which a repetition of the seed prints ...", n-maxStory)}, lines[n-maxStory:]...)
	}
	return strings.Join(lines, "\n")
}

// longestPath bounds the requests that are told of.
const longestPath = 7

// chain picks the events that explain a violation; from is where it begins.
func (t *trace) chain(v *violation) (chain map[int]bool, from int) {
	chain = map[int]bool{}
	has := v.knows
	path, over := path(v.l.r, has)
	if n := len(path); n > longestPath {
		// The token goes through many hands; the first and the last ones matter.
		path = append(path[:2:2], path[n-longestPath+2:]...)
		over = over[:longestPath-2]
	}
	first := t.learnt(v, path[0])
	nodes := []*fake.Node{v.l.node}
	if first >= 0 {
		if l := t.events[first].look; l != nil && l.node != v.l.node {
			nodes = append(nodes, l.node)
		}
		chain[first] = true
	}
	began := map[*request]bool{}
	for i := range t.events {
		e := &t.events[i]
		switch {
		case e.serial == v.serial && v.serial != 0 && (e.kind == evCommit || e.kind == evShown || e.kind == evWrite || e.kind == evWrote):
			chain[i] = true
		case e.req == v.l.r:
			chain[i] = true // all that it did itself
		case i < first:
		case (e.kind == evLife || e.kind == evNode) && (slices.Contains(nodes, e.node) || e.kind == evNode):
			chain[i] = true
		case e.kind == evRespond && slices.Contains(over, e.kept) && !e.drop:
			chain[i] = true
		case e.kind == evHear && slices.Contains(path, e.req):
			chain[i] = true
		case e.kind == evArrive && slices.Contains(path[1:], e.req) && !began[e.req]:
			began[e.req], chain[i] = true, true
		}
	}
	t.looksOf(v, chain, first, nodes)
	return chain, max(first, 0)
}

// looksOf adds the probes that the instance of the read rests on: of each node
// the first that was asked behind the beginning, and the last one.
func (t *trace) looksOf(v *violation, chain map[int]bool, first int, nodes []*fake.Node) {
	since := time.Duration(0)
	if first >= 0 {
		since = t.events[first].at
	}
	for _, n := range nodes {
		early, late := -1, -1
		for i := range t.events {
			e := &t.events[i]
			if e.kind != evProbe || int(e.gate) != v.l.r.gate || e.node != n || e.err != nil {
				continue
			}
			if early < 0 && t.probes[e.serial].asked > since {
				early = i
			}
			late = i
		}
		for _, i := range []int{early, late} {
			if i >= 0 {
				chain[i] = true
			}
		}
	}
}

// knows reports whether the missed commit is among what somebody knows.
func (v *violation) knows(k *knowledge) bool {
	return v.serial != 0 && k.known.Has(v.serial) || slices.ContainsFunc(k.doubts, func(p *fake.Process) bool {
		_, serial := p.Ended()
		return p == v.proc || serial != 0 && serial == v.serial
	})
}

// path returns the requests over which the knowledge came to r, the first one
// first, and the tokens between them.
func path(r *request, has func(*knowledge) bool) (requests []*request, tokens []*kept) {
	for r != nil {
		requests = append(requests, r)
		var from *kept
		for _, k := range slices.Concat(r.carried, r.events) {
			if has(&k.knows) {
				from = k
				break
			}
		}
		if from == nil {
			break
		}
		for from.older != nil && has(&from.older.knows) {
			from = from.older
		}
		tokens = append(tokens, from)
		r = from.from
	}
	slices.Reverse(requests)
	return requests, tokens
}

// learnt returns the event by which a request learnt of the missed commit, or -1.
func (t *trace) learnt(v *violation, r *request) int {
	return slices.IndexFunc(t.events, func(e event) bool {
		if e.req != r {
			return false
		}
		switch e.kind {
		case evShows, evTx:
			return v.serial != 0 && e.view.Has(v.serial)
		case evWrite, evWrote, evDoubt:
			return v.serial != 0 && e.serial == v.serial || v.proc != nil && e.proc == v.proc
		default:
			return false
		}
	})
}
