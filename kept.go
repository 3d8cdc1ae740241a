package tidegate

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// keeping is how one session is kept in a store.
type keeping struct {
	k   *Keeper
	key string
	// loaded tells that the session has its history, or catches up for want of it.
	loaded atomic.Bool
	// news tells that the session may require more than the last save says although its
	// token is the same: a read has ended, or it was told to catch up once more. reads
	// counts the reads in flight, which show more all the time.
	news  atomic.Bool
	reads atomic.Int32
	// turn is held by whoever talks to the store.
	turn  chan struct{}
	birth string   // of the entry; changed in turn
	names []string // of the kept tokens that the session has merged; changed in turn
	told  Token    // what is kept, if that is one token; changed in turn

	mu sync.Mutex
	// markers are those that writes count on which are not over, or not saved; set is
	// when the last of them was set, open how many such writes are not over. over lists
	// the markers of writes that are.
	markers []string
	set     time.Time
	open    int
	over    []string
	// bare tells of a write that has no marker in the store and no save yet.
	bare bool
}

// enter waits for the turn, and returns the context's error if that comes first.
func (kp *keeping) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case kp.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (kp *keeping) leave() { <-kp.turn }

// Load fetches what a [Keeper] has kept of the session, once. Adapters and carriers
// call it before they need its history. A session that cannot be loaded catches up
// instead, so that the only error is the context's; without a Keeper it does nothing.
func (s *Session) Load(ctx context.Context) error {
	if s.kept == nil { // short enough to be inlined: every read asks
		return nil
	}
	return s.kept.load(ctx, s)
}

func (kp *keeping) load(ctx context.Context, s *Session) error {
	if kp.loaded.Load() {
		return nil
	}
	if err := kp.enter(ctx); err != nil {
		return err
	}
	defer kp.leave()
	if kp.loaded.Load() {
		return nil
	}
	_, err := kp.fetch(ctx, s, "")
	return err
}

// fetch loads the entry, in turn, and joins it into the session. It reports whether the
// store has answered; the error is the context's.
func (kp *keeping) fetch(ctx context.Context, s *Session, marker string) (ok bool, err error) {
	c := &kp.k.counters
	c.loads.Add(1)
	kept, failed := ask(ctx, kp.k.cfg.Timeout, func(ctx context.Context) (Kept, error) {
		return kp.k.cfg.Store.Load(ctx, kp.key, marker)
	})
	if failed != nil {
		c.failedLoads.Add(1)
		if err := ctx.Err(); err != nil {
			return false, err
		}
		kp.catchUp(s)
		return false, nil
	}
	kp.birth = kept.Birth
	for _, t := range kept.Tokens {
		if !slices.Contains(kp.names, t.Name) {
			kp.names = append(kp.names, t.Name)
			s.merge(t.Token)
		}
	}
	kp.told = Token{}
	if len(kp.names) == 1 && len(kept.Tokens) == 1 {
		kp.told = kept.Tokens[0].Token // else there is something to put together
	}
	if !kept.Whole {
		kp.catchUp(s)
	}
	kp.loaded.Store(true)
	return true, nil
}

func (kp *keeping) catchUp(s *Session) {
	kp.k.counters.catchUps.Add(1)
	kp.news.Store(true)
	for _, cluster := range kp.k.cfg.Clusters {
		s.CatchUp(cluster)
	}
	kp.loaded.Store(true)
}

// BeginWrite is called by adapters before a write of the session is sent: a
// [Keeper] then has a marker in its store, so that a write whose save fails is known
// of. EndWrite follows in every case but an error, which is the context's. A store that
// does not answer keeps no write from being made; see [Session.Save]. Without a Keeper
// it does nothing.
func (s *Session) BeginWrite(ctx context.Context) error {
	kp := s.kept
	if kp == nil || kp.join() {
		return nil
	}
	if err := kp.enter(ctx); err != nil {
		return err
	}
	defer kp.leave()
	if kp.join() {
		return nil
	}
	marker := rand.Text()
	ok, err := kp.fetch(ctx, s, marker)
	kp.mu.Lock()
	defer kp.mu.Unlock()
	switch {
	case err != nil:
		kp.over = append(kp.over, marker) // it may be there, and its write never was
		return err
	case !ok:
		kp.k.counters.failedMarkers.Add(1)
		kp.bare = true
	}
	kp.markers, kp.set, kp.open = append(kp.markers, marker), time.Now(), kp.open+1
	return nil
}

// markerHolds is how long writes of one session count on one marker. The store can lose
// it with the entry, and ends it after a TTL, and a session may live longer than that
// without a save: a stream, a job.
const markerHolds = time.Second

// join makes a write count on the marker that is there, and reports whether one is.
func (kp *keeping) join() bool {
	kp.mu.Lock()
	defer kp.mu.Unlock()
	if len(kp.markers) == 0 || time.Since(kp.set) >= markerHolds {
		return false
	}
	kp.open++
	return true
}

// EndWrite is called by adapters when a write is over and the session has its
// position, or owes it.
func (s *Session) EndWrite() {
	if kp := s.kept; kp != nil {
		kp.mu.Lock()
		kp.open--
		kp.mu.Unlock()
	}
}

// BeginRead is called by adapters before a read of the session is sent, and EndRead when
// its last row has been delivered, or it came to nothing: also a read that changes nothing
// of what the session requires has seen more than those before. Without a [Keeper]
// they do nothing.
func (s *Session) BeginRead() {
	if kp := s.kept; kp != nil {
		kp.reads.Add(1)
	}
}

// EndRead ends what BeginRead has begun.
func (s *Session) EndRead() {
	if kp := s.kept; kp != nil {
		kp.news.Store(true)
		kp.reads.Add(-1)
	}
}

// Save keeps what the session requires now, if that is not kept already. Carriers call
// it before the answer that tells of the session's reads and writes. An error is the
// context's or wraps [ErrNotKept]: the store may not have it, no marker could be set
// before a write, or the outcome of one is not known yet. Then the token must go out with
// the answer too. A save that fails can be repeated. Without a [Keeper] it does nothing.
func (s *Session) Save(ctx context.Context) error {
	kp := s.kept
	if kp == nil {
		return nil
	}
	if err := kp.enter(ctx); err != nil {
		return err
	}
	defer kp.leave()

	// What is over is noted before what it left: a marker must not be cleared by a
	// token that does not tell of its write.
	flying := kp.reads.Load() > 0
	news := kp.news.Swap(false) || flying
	over, bare := kp.finished()
	token := s.history()
	if len(over) == 0 && !bare && token.Same(kp.told) && !(news && token.Momentary()) {
		return nil
	}
	saving := Saving{Birth: kp.birth, Add: KeptToken{Name: rand.Text(), Token: token}, Forget: kp.names, Clear: over}
	c := &kp.k.counters
	c.saves.Add(1)
	_, err := ask(ctx, kp.k.cfg.Timeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, kp.k.cfg.Store.Save(ctx, kp.key, saving)
	})
	if err != nil {
		c.failedSaves.Add(1)
		kp.mu.Lock()
		kp.over = append(kp.over, over...)
		kp.bare = kp.bare || bare
		kp.mu.Unlock()
		if news {
			kp.news.Store(true)
		}
		// It may have been carried out all the same: then it is one to forget.
		kp.names = append(slices.Clone(kp.names), saving.Add.Name)
		return fmt.Errorf("%w: %w", ErrNotKept, err)
	}
	kp.names, kp.told = []string{saving.Add.Name}, token
	switch {
	case bare:
		return fmt.Errorf("%w: no marker could be set before a write", ErrNotKept)
	case slices.ContainsFunc(token.marks, func(m Mark) bool { return len(m.Pending) > 0 }):
		// Should the store lose it, a catch-up would be too little: what is pending can
		// commit after that.
		return fmt.Errorf("%w: the outcome of a write is not known yet", ErrNotKept)
	}
	return nil
}

// finished takes the markers of writes that are over, and whether one had none.
func (kp *keeping) finished() (over []string, bare bool) {
	kp.mu.Lock()
	defer kp.mu.Unlock()
	if kp.open == 0 {
		kp.over, kp.markers = append(kp.over, kp.markers...), nil
	}
	over, kp.over = kp.over, nil
	if kp.open == 0 {
		bare, kp.bare = kp.bare, false
	} else {
		bare = kp.bare
	}
	return over, bare
}
