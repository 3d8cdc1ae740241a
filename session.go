package tidegate

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// Session is one user's or one job's causal history: the marks that its reads
// must respect. It is safe for concurrent use; requests of one session may run
// in parallel. Create one with [NewSession]; the zero Session works too, but
// then first reads of parallel requests need not agree on a replica.
//
// A Session does not know what a replica is and never expires by itself: it
// lives as long as the request, job or connection that holds it, and goes on in
// its [Token].
type Session struct {
	nonce   uint64
	mu      sync.Mutex // serialises writers of entries
	entries atomic.Pointer[[]sessionEntry]
	// rest tells that a cluster which is not among the entries must be caught up
	// with. It is changed under mu.
	rest atomic.Bool
	// kept is how the session is kept in a store, nil if it is not.
	kept *keeping
}

// A Ledger is an adapter's bookkeeping of one session in one cluster: marks with
// the times and the reads in flight that turn them into decisions. It is safe
// for concurrent use.
type Ledger interface {
	// Marks returns what the session must see, one mark for each epoch.
	Marks() []Mark
	// Merge joins marks that arrive from elsewhere.
	Merge([]Mark)
	// CatchUp makes the session require all that is committed up to now.
	CatchUp()
}

type sessionEntry struct {
	cluster string
	ledger  Ledger // nil until a database of this cluster is used
	marks   []Mark // what arrived before that
}

// NewSession starts the history of somebody who has none, or goes on with the
// histories that the tokens carry.
func NewSession(tokens ...Token) *Session {
	s := &Session{}
	for _, t := range tokens {
		if s.nonce == 0 {
			s.nonce = t.nonce
		}
	}
	if s.nonce == 0 {
		s.nonce = rand.Uint64() | 1
	}
	for _, t := range tokens {
		s.Merge(t)
	}
	return s
}

func (s *Session) load() []sessionEntry {
	if p := s.entries.Load(); p != nil {
		return *p
	}
	return nil
}

// Ledger returns the session's ledger for a cluster, made by open when there is
// none yet. It is for adapters. open gets the session's nonce, by which parallel
// first reads agree on a replica, and the marks that have arrived so far; it
// must not call the session.
func (s *Session) Ledger(cluster string, open func(nonce uint64, marks []Mark) Ledger) Ledger {
	for _, e := range s.load() {
		if e.cluster == cluster && e.ledger != nil {
			return e.ledger
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, commit := s.edit(cluster)
	if e.ledger == nil {
		// A Token call may still read the published marks: open gets a copy.
		e.ledger, e.marks = open(s.nonce, mergeMarks(nil, e.marks)), nil
		commit()
	}
	return e.ledger
}

// edit returns a copy of the cluster's entry in a copy of the list, and the
// function that publishes the list. The caller holds s.mu.
func (s *Session) edit(cluster string) (*sessionEntry, func()) {
	next := append([]sessionEntry(nil), s.load()...)
	for i := range next {
		if next[i].cluster == cluster {
			return &next[i], func() { s.entries.Store(&next) }
		}
	}
	e := sessionEntry{cluster: cluster}
	if s.rest.Load() {
		e.marks = []Mark{{Cluster: cluster, CatchUp: true}}
	}
	next = append(next, e)
	return &next[len(next)-1], func() { s.entries.Store(&next) }
}

// Merge joins what a token says into the session: afterwards the session must
// see what either required. An event that makes another user's session read
// again carries such a token. The session stays its own: one that goes on with what
// its client presents is made by [NewSession] with the token, and so keeps to its
// replica and to its share of a rollout.
func (s *Session) Merge(t Token) {
	s.merge(t)
	if s.kept != nil {
		s.kept.news.Store(true)
	}
}

// merge is Merge of what need not be saved.
func (s *Session) merge(t Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.load() {
		if t.inRest(e.cluster) {
			s.catchUp(e.cluster)
		}
	}
	for _, cluster := range t.clusters() {
		var of []Mark
		for _, m := range t.marks {
			if m.Cluster == cluster {
				of = append(of, m.Clone())
			}
		}
		s.join(cluster, of)
	}
	if t.rest {
		s.rest.Store(true) // from here on: what the token names is not of its rest
	}
}

// join joins marks of a cluster. The caller holds s.mu.
func (s *Session) join(cluster string, marks []Mark) {
	e, commit := s.edit(cluster)
	if e.ledger != nil {
		e.ledger.Merge(marks)
		return
	}
	// The published list is immutable: merge into a copy of the marks.
	e.marks = mergeMarks(mergeMarks(nil, e.marks), marks)
	commit()
}

func clusterSeen(marks []Mark, cluster string) bool {
	for _, m := range marks {
		if m.Cluster == cluster {
			return true
		}
	}
	return false
}

// CatchUp makes the session's next reads of a cluster see all that is committed
// by now. It is for a write whose outcome is not known and for one that went
// another way: see [Wrote].
func (s *Session) CatchUp(cluster string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUp(cluster)
	if s.kept != nil {
		s.kept.news.Store(true) // also if it was to catch up already: with more, now
	}
}

// catchUp is CatchUp. The caller holds s.mu.
func (s *Session) catchUp(cluster string) {
	if e, _ := s.edit(cluster); e.ledger != nil {
		e.ledger.CatchUp()
		return
	}
	s.join(cluster, []Mark{{Cluster: cluster, CatchUp: true}})
}

// Token returns the session's history for the wire. Reads in flight count as
// made. One that is kept by a [Keeper] and was not loaded yet does not know its history:
// its token says to catch up, so [Session.Load] comes first.
func (s *Session) Token() Token {
	t := s.history()
	if s.kept != nil && !s.kept.loaded.Load() {
		t.rest = true
	}
	return t
}

// history is what the session knows that it requires.
func (s *Session) history() Token {
	t := Token{nonce: s.nonce, rest: s.rest.Load()}
	for _, e := range s.load() {
		marks := e.marks
		if e.ledger != nil {
			marks = e.ledger.Marks()
		}
		t.marks = mergeMarks(t.marks, marks)
	}
	return t
}
