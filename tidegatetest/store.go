package tidegatetest

import (
	"slices"
	"sync"
)

// store knows the values of writes. The cluster in memory replicates writes that
// are numbers; each Put is one of its own, so that what it wrote is known before
// anybody can see it.
type store struct {
	mu     sync.Mutex
	values []string // by write - 1
	of     map[string][]int64
}

// add returns a new write of the key.
func (s *store) add(key, value string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[string][]int64{}
	}
	s.values = append(s.values, value)
	write := int64(len(s.values))
	s.of[key] = append(s.of[key], write)
	return write
}

// writes returns all writes of the key so far.
func (s *store) writes(key string) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.of[key])
}

// newest returns the value of the write that was committed last among those that
// are shown. commit returns a write's place in the order of commits, zero for one
// that is not shown.
func (s *store) newest(writes []int64, commit func(write int64) int64) (value string, ok bool) {
	var newest, last int64
	for _, w := range writes {
		if at := commit(w); at > last {
			newest, last = w, at
		}
	}
	if newest == 0 {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[newest-1], true
}
