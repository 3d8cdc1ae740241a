package freshness

import (
	"sync"
	"time"
)

const (
	// pendingLife is how long a wish for a process's fate lives after it was
	// last made. Whoever waits makes it again with each look.
	pendingLife = int64(10 * time.Second)
	// maxPendingAsked bounds what one probe asks.
	maxPendingAsked = 64
)

// pendingSet is the set of server processes whose fate somebody waits for. It
// is empty nearly always.
type pendingSet struct {
	mu     sync.Mutex
	wanted map[uint64]int64 // process -> when it was last asked for; 0 until a probe is sent
}

func (s *pendingSet) want(processes []uint64) {
	if len(processes) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted == nil {
		s.wanted = make(map[uint64]int64)
	}
	for _, p := range processes {
		if len(s.wanted) < maxPendingAsked || s.wanted[p] != 0 {
			s.wanted[p] = 0
		}
	}
}

// now returns the processes to ask about in a probe sent at that time.
func (s *pendingSet) now(sent int64) []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.wanted) == 0 {
		return nil
	}
	var all []uint64
	for p, at := range s.wanted {
		switch {
		case at == 0:
			s.wanted[p] = sent
		case sent-at > pendingLife:
			delete(s.wanted, p)
			continue
		}
		all = append(all, p)
	}
	return all
}

// settled forgets the processes that a probe has found gone. Whoever has missed
// that answer asks again.
func (s *pendingSet) settled(o *Observation) {
	if len(o.Asked) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range o.Asked {
		if o.Settled(p) {
			delete(s.wanted, p)
		}
	}
}
