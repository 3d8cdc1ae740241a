package tidegate

import (
	"container/list"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"
)

// MemoryConfig configures a [MemoryStore].
type MemoryConfig struct {
	// TTL is how long an entry is kept from when it was used last. Zero means one hour;
	// at least a second.
	TTL time.Duration
	// MaxEntries bounds the number of sessions; the one that was not used for longest
	// goes first, and catches up when it comes again. Zero means 100,000.
	MaxEntries int
}

// MemoryStore is a [Store] in this process, for an application with one instance,
// and for tests. What it keeps is lost with the process, and then caught up with. It
// is safe for concurrent use.
type MemoryStore struct {
	cfg     MemoryConfig
	mu      sync.Mutex
	entries map[string]*list.Element // of *memoryEntry
	used    list.List                // the one used last in front
}

type memoryEntry struct {
	key     string
	until   time.Time
	birth   string
	whole   bool // a change of this birth was saved
	tokens  []KeptToken
	markers map[string]time.Time // and when each ends
}

// NewMemoryStore returns an empty store, or an error that wraps [ErrConfig] and
// names the field.
func NewMemoryStore(cfg MemoryConfig) (*MemoryStore, error) {
	if cfg.TTL == 0 {
		cfg.TTL = time.Hour
	}
	if cfg.MaxEntries == 0 {
		cfg.MaxEntries = 100_000
	}
	switch {
	case cfg.TTL < time.Second:
		return nil, fmt.Errorf("%w: MemoryConfig.TTL is %v; use a second or more", ErrConfig, cfg.TTL)
	case cfg.MaxEntries < 1:
		return nil, fmt.Errorf("%w: MemoryConfig.MaxEntries is %d; use 1 or more", ErrConfig, cfg.MaxEntries)
	}
	return &MemoryStore{cfg: cfg, entries: make(map[string]*list.Element)}, nil
}

// TTL implements [Store].
func (m *MemoryStore) TTL() time.Duration { return m.cfg.TTL }

// Len returns how many sessions are kept.
func (m *MemoryStore) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire(time.Now())
	return len(m.entries)
}

// Load implements [Store]. Its error is always nil.
func (m *MemoryStore) Load(_ context.Context, key, marker string) (Kept, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	e := m.use(key, now)
	kept := Kept{Birth: e.birth, Whole: e.whole && len(e.markers) == 0, Tokens: slices.Clone(e.tokens)}
	if marker != "" {
		if e.markers == nil {
			e.markers = make(map[string]time.Time)
		}
		e.markers[marker] = now.Add(m.cfg.TTL)
	}
	return kept, nil
}

// Save implements [Store]. Its error is always nil.
func (m *MemoryStore) Save(_ context.Context, key string, s Saving) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.use(key, time.Now())
	e.tokens = slices.DeleteFunc(e.tokens, func(t KeptToken) bool { return t.Name == s.Add.Name || slices.Contains(s.Forget, t.Name) })
	if len(e.tokens) >= MaxKept {
		e.tokens, e.birth, e.whole = nil, rand.Text(), false
	}
	e.tokens = append(e.tokens, s.Add)
	for _, marker := range s.Clear {
		delete(e.markers, marker)
	}
	e.whole = e.whole || s.Birth == e.birth
	return nil
}

// use returns the key's entry, which is the one used last now. The caller holds m.mu.
func (m *MemoryStore) use(key string, now time.Time) *memoryEntry {
	m.expire(now)
	el := m.entries[key]
	if el == nil {
		if len(m.entries) >= m.cfg.MaxEntries {
			m.remove(m.used.Back())
		}
		el = m.used.PushFront(&memoryEntry{key: key, birth: rand.Text()})
		m.entries[key] = el
	}
	m.used.MoveToFront(el)
	e := el.Value.(*memoryEntry)
	e.until = now.Add(m.cfg.TTL)
	for marker, until := range e.markers {
		if !now.Before(until) {
			delete(e.markers, marker)
		}
	}
	return e
}

// expire removes what is too old: all that is used lives equally long, so it is at
// the back.
func (m *MemoryStore) expire(now time.Time) {
	for el := m.used.Back(); el != nil && !now.Before(el.Value.(*memoryEntry).until); el = m.used.Back() {
		m.remove(el)
	}
}

func (m *MemoryStore) remove(el *list.Element) {
	delete(m.entries, el.Value.(*memoryEntry).key)
	m.used.Remove(el)
}
