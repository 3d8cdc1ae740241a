package engine_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tidegatedb/tidegate"
)

// storeMistakes are rules of a store, or of who uses it, that are left out.
type storeMistakes struct {
	NoMarkers      bool // before a write
	ClearsAll      bool // a save clears the markers of others too
	ForgetsAll     bool // a save replaces what others have saved
	IgnoresBirth   bool // whoever saves makes an entry whole
	IgnoresHistory bool // what the server was does not matter
	NoLifetime     bool // a save makes whole what has another history
	HidesFailures  bool // a save that failed is not told of
}

// simStore is the store of the simulation, which both instances use. Its answers are
// late, or never come; it loses entries, and fails over to a copy that is older, while
// requests that are under way go on with the old one.
type simStore struct {
	w        *world
	mistakes storeMistakes
	dice     *dice

	mu       sync.Mutex
	serving  *storeCopy
	snapshot *storeCopy
	down     time.Time // until when
	births   int
}

// storeCopy is a server of the store. It is suspect when it knows that it had another
// history before: a run is shorter than a lifetime.
type storeCopy struct {
	history int
	suspect bool
	entries map[string]*storeEntry
}

type storeEntry struct {
	history int
	birth   string
	whole   bool
	tokens  []tidegate.KeptToken
	markers map[string]bool
}

func newSimStore(w *world) *simStore {
	empty := func() *storeCopy { return &storeCopy{entries: map[string]*storeEntry{}} }
	return &simStore{w: w, mistakes: w.plan.store, dice: newDice(w.plan.seed, 200), serving: empty(), snapshot: empty()}
}

func (c *storeCopy) clone() *storeCopy {
	d := &storeCopy{history: c.history, suspect: c.suspect, entries: map[string]*storeEntry{}}
	for k, e := range c.entries {
		copied := *e
		copied.tokens, copied.markers = slices.Clone(e.tokens), maps.Clone(e.markers)
		d.entries[k] = &copied
	}
	return d
}

// storeConn is a request's connection to the store: it stays with the server that it
// was made to.
type storeConn struct {
	to *storeCopy
	// bare tells of a write before which no marker could be set. If its instance ends
	// too, before it has answered, nobody is left to tell.
	bare bool
}

type storeConnKey struct{}

// TTL implements tidegate.Store.
func (s *simStore) TTL() time.Duration { return 24 * time.Hour }

var errStoreDown = errors.New("the store is down")

// call carries f out on the copy that the caller is connected to. Something can go
// wrong before and after.
func (s *simStore) call(ctx context.Context, f func(*storeCopy)) error {
	conn, _ := ctx.Value(storeConnKey{}).(*storeConn)
	way := func() {
		d := s.dice.upTo(300 * time.Microsecond)
		if s.dice.chance(.02) {
			d = s.dice.upTo(8 * time.Millisecond) // longer than anybody waits
		}
		time.Sleep(d)
	}
	way()
	s.mu.Lock()
	if time.Now().Before(s.down) || s.dice.chance(.01) {
		s.mu.Unlock()
		return errStoreDown
	}
	if conn.to == nil {
		conn.to = s.serving
	}
	f(conn.to)
	s.mu.Unlock()
	if way(); s.dice.chance(.01) {
		return errStoreDown
	}
	return nil
}

// entry returns the entry of a key; s.mu is held.
func (s *simStore) entry(c *storeCopy, key string) *storeEntry {
	e := c.entries[key]
	born := func() string {
		s.births++
		return strconv.Itoa(s.births)
	}
	switch {
	case e == nil:
		e = &storeEntry{history: c.history, birth: born(), markers: map[string]bool{}}
		c.entries[key] = e
	case e.history != c.history && !s.mistakes.IgnoresHistory:
		e.history, e.birth, e.whole = c.history, born(), false
	}
	return e
}

// Load implements tidegate.Store.
func (s *simStore) Load(ctx context.Context, key, marker string) (kept tidegate.Kept, err error) {
	err = s.call(ctx, func(c *storeCopy) {
		e := s.entry(c, key)
		kept = tidegate.Kept{Birth: e.birth, Whole: e.whole && !c.suspect && len(e.markers) == 0, Tokens: slices.Clone(e.tokens)}
		if marker != "" && !s.mistakes.NoMarkers {
			e.markers[marker] = true
		}
	})
	if conn, _ := ctx.Value(storeConnKey{}).(*storeConn); marker != "" && (err != nil || ctx.Err() != nil) {
		s.mu.Lock()
		conn.bare = true
		s.mu.Unlock()
	}
	return kept, err
}

// Save implements tidegate.Store.
func (s *simStore) Save(ctx context.Context, key string, x tidegate.Saving) error {
	err := s.call(ctx, func(c *storeCopy) {
		e := s.entry(c, key)
		e.tokens = slices.DeleteFunc(e.tokens, func(t tidegate.KeptToken) bool { return s.mistakes.ForgetsAll || slices.Contains(x.Forget, t.Name) })
		e.tokens = append(e.tokens, tidegate.KeptToken{Name: x.Add.Name, Token: onTheWire(x.Add.Token)})
		for _, m := range x.Clear {
			delete(e.markers, m)
		}
		if s.mistakes.ClearsAll {
			clear(e.markers)
		}
		e.whole = e.whole || x.Birth == e.birth || s.mistakes.IgnoresBirth
	})
	if s.mistakes.HidesFailures {
		return nil
	}
	return err
}

// troubleStore lets something happen to the store.
func (w *world) troubleStore() {
	s := w.store
	s.mu.Lock()
	defer s.mu.Unlock()
	first := time.Duration(w.plan.steps) * w.pace / 3 // before that a run checks what is whole
	if w.plan.restless {
		first = 0
	}
	switch u := s.dice.float(); {
	case u < .60:
		s.snapshot = s.serving.clone() // a copy has caught up
	case u < .75:
		s.down = time.Now().Add(s.dice.upTo(10 * time.Millisecond))
	case u < .95:
		keys := slices.Sorted(maps.Keys(s.serving.entries))
		if len(keys) == 0 {
			return
		}
		// An entry that is lost after its instance was, with a write whose outcome is
		// open, is more than can be helped: a catch-up comes too early.
		if key := keys[s.dice.n(len(keys))]; len(s.serving.entries[key].markers) == 0 {
			delete(s.serving.entries, key)
			w.count(&w.n.Evicted)
		}
	case w.now() > first:
		s.snapshot.history, s.snapshot.suspect = s.serving.history+1, !s.mistakes.NoLifetime && !s.mistakes.IgnoresHistory
		s.serving = s.snapshot
		s.snapshot = s.serving.clone()
		w.count(&w.n.StoreFailovers)
	}
}
