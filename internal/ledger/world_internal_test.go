package ledger

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// truth is what somebody has been shown or told: per line of the history the
// newest transaction. Transactions are numbered by their position.
type truth map[uint64]uint64

func (a truth) join(b truth) {
	for line, n := range b {
		a[line] = max(a[line], n)
	}
}

// server is one node as it really is. It shows at most one transaction more than
// it has published as applied.
type server struct {
	id       tidegate.Incarnation
	primary  bool
	line     uint64
	app, vis uint64
}

// world is a cluster as it really is, and two processes that learn of it late.
type world struct {
	r       *rand.Rand
	servers []*server
	forks   map[uint64]uint64 // line -> where the next one began
	lastID  tidegate.Incarnation
	places  [2]*place
}

// place is a process: its own idea of the cluster, and its part of the session.
type place struct {
	l     *Ledger
	table *freshness.Table
	// asked are probes on their way: sent, perhaps sampled.
	asked map[int]*freshness.Observation
	// known is what the session may rely on here, replicas what of that it was
	// shown by replicas.
	known, replicas truth
	reads           []flying
}

// flying is a read in flight.
type flying struct {
	node int
	id   tidegate.Incarnation
}

func newWorld(seed uint64) *world {
	w := &world{r: rand.New(rand.NewPCG(seed, 3)), forks: map[uint64]uint64{}}
	for i := range 4 {
		w.servers = append(w.servers, &server{id: w.id(), primary: i == 0, line: 1, app: 50, vis: 50})
	}
	for i := range w.places {
		p := &place{l: New("main", 1, nil), asked: map[int]*freshness.Observation{}, known: truth{}, replicas: truth{}}
		p.table = &freshness.Table{Primary: none, Nodes: make([]freshness.Node, len(w.servers))}
		p.l.Births(func() (tidegate.Epoch, tidegate.Incarnation) {
			if o := p.table.PrimaryObs(); o != nil {
				return p.table.Epoch, o.Incarnation
			}
			return p.table.Epoch, 0
		})
		for i := range w.servers { // it is ready: it has looked at all of them
			for range 3 {
				w.probe(p, i)
			}
		}
		w.places[i] = p
	}
	return w
}

func (w *world) id() tidegate.Incarnation { w.lastID++; return w.lastID }

func (w *world) primary() *server {
	return w.servers[slices.IndexFunc(w.servers, func(s *server) bool { return s.primary })]
}

// has reports whether the state at a position of a line includes all of t.
func (w *world) has(line, n uint64, t truth) bool {
	for of, v := range t {
		upTo := n
		for l := of; l < line; l++ {
			upTo = min(upTo, w.forks[l])
		}
		if of > line || v > upTo {
			return false
		}
	}
	return true
}

// replicate lets a replica receive, show and publish a little.
func (w *world) replicate() {
	s, p := w.servers[w.r.IntN(len(w.servers))], w.primary()
	if s.primary {
		return
	}
	if s.line != p.line { // it follows only a history that contains its own
		if s.line != p.line-1 || s.vis > w.forks[s.line] {
			return
		}
		s.line = p.line
	}
	for range 1 + w.r.IntN(3) {
		switch {
		case s.vis > s.app:
			s.app++
		case s.vis < p.vis:
			s.vis++
		}
	}
}

// crash gives a server a new life; a replica's visible state goes back, and one
// that cannot follow is rebuilt.
func (w *world) crash() {
	s, p := w.servers[w.r.IntN(len(w.servers))], w.primary()
	if s.primary && w.r.IntN(4) > 0 {
		return
	}
	s.id = w.id()
	if s.primary {
		return
	}
	if s.line != p.line {
		s.line = p.line
		s.app = min(s.app, w.forks[s.line-1])
	}
	s.app -= min(s.app, w.r.Uint64N(4))
	s.vis = s.app
}

// promote makes a replica the primary of a new line. It may have missed the end
// of the old one; the former primary is rebuilt as its replica.
func (w *world) promote() {
	s, p := w.servers[w.r.IntN(len(w.servers))], w.primary()
	if s.primary || s.line != p.line {
		return
	}
	s.app = s.vis
	w.forks[s.line] = s.vis
	s.line, s.primary = s.line+1, true
	if w.r.IntN(2) == 0 {
		s.id = w.id()
	}
	p.primary, p.id, p.line = false, w.id(), s.line
	p.app = min(p.app, s.vis)
	p.vis = p.app
}

// probe sends a probe of a node, or samples one that was sent, or brings its
// answer.
func (w *world) probe(p *place, i int) {
	s := w.servers[i]
	o := p.asked[i]
	switch {
	case o == nil:
		p.asked[i] = &freshness.Observation{Sent: mono.Now()}
	case o.Incarnation == 0:
		o.Incarnation, o.Epoch = s.id, tidegate.Epoch{System: 1, Line: s.line}
		o.Applied, o.Bound, o.Role = at(s.app), beyond(s.app), tidegate.RoleReplica
		if s.vis == s.app && w.r.IntN(2) == 0 {
			o.Bound = at(s.app) // it has received nothing more
		}
		if s.primary {
			o.Role, o.Bound, o.Ceiling = tidegate.RolePrimary, o.Applied, o.Applied
		}
	default:
		delete(p.asked, i)
		p.learn(i, o)
	}
}

// learn replaces the table by one with the look.
func (p *place) learn(i int, o *freshness.Observation) {
	t := &freshness.Table{Primary: none, Epoch: p.table.Epoch, Nodes: slices.Clone(p.table.Nodes)}
	t.Nodes[i] = freshness.Node{Applied: o.Applied, Incarnation: o.Incarnation, Sent: o.Sent, Epoch: o.Epoch, Obs: o}
	newest := uint64(0)
	for j := range t.Nodes {
		n := &t.Nodes[j]
		if n.Obs == nil {
			continue
		}
		newest = max(newest, n.Epoch.Line)
		if n.Obs.Role == tidegate.RolePrimary && (t.Primary == none || n.Epoch.Line > t.Nodes[t.Primary].Epoch.Line) {
			t.Primary = j
		}
	}
	if t.Primary != none && t.Nodes[t.Primary].Epoch.Line < newest {
		t.Primary = none
	} else if t.Primary != none {
		t.Epoch = t.Nodes[t.Primary].Epoch
	}
	for j := range t.Nodes {
		n := &t.Nodes[j]
		n.Usable = n.Obs != nil && n.Obs.Role == tidegate.RoleReplica && n.Epoch == t.Epoch
	}
	p.table = t
}

// token is what travels from one place to the other, with the truth that it
// stands for.
type token struct {
	marks           []tidegate.Mark
	known, replicas truth
}

func (p *place) token() token {
	return token{p.l.Marks(), maps.Clone(p.known), maps.Clone(p.replicas)}
}
