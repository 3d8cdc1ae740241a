package tidegate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
)

// shelf is a MemoryStore that can fail, hang, and lose what it has.
type shelf struct {
	*tidegate.MemoryStore
	mu      sync.Mutex
	loads   []string // markers, "" without one
	saves   []tidegate.Saving
	failing error
	hung    chan struct{} // closed when it goes on; nil when it does not hang
	late    bool          // what fails is carried out all the same
}

var errDown = errors.New("down")

func newShelf(t testing.TB, ttl time.Duration) *shelf {
	t.Helper()
	m, err := tidegate.NewMemoryStore(tidegate.MemoryConfig{TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	return &shelf{MemoryStore: m}
}

func (s *shelf) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *shelf) fault(note func()) (hung chan struct{}, late bool, failing error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	note()
	return s.hung, s.late, s.failing
}

func (s *shelf) Load(ctx context.Context, key, marker string) (kept tidegate.Kept, err error) {
	hung, late, failing := s.fault(func() { s.loads = append(s.loads, marker) })
	if failing == nil || late {
		kept, err = s.MemoryStore.Load(ctx, key, marker)
	}
	if hung != nil {
		<-hung // whatever the context says: a bad client
	}
	return kept, errors.Join(err, failing)
}

func (s *shelf) Save(ctx context.Context, key string, saving tidegate.Saving) (err error) {
	hung, late, failing := s.fault(func() { s.saves = append(s.saves, saving) })
	if failing == nil || late {
		err = s.MemoryStore.Save(ctx, key, saving)
	}
	if hung != nil {
		<-hung
	}
	return errors.Join(err, failing)
}

func newKeeper(t testing.TB, store tidegate.Store) *tidegate.Keeper {
	t.Helper()
	k, err := tidegate.NewKeeper(tidegate.KeeperConfig{Store: store, Clusters: []string{"main"}})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

var keptEpoch = tidegate.Epoch{System: 7, Line: 1}

func reached(n uint64) tidegate.Token {
	return tidegate.NewToken(tidegate.Mark{Cluster: "main", Epoch: keptEpoch, Position: tidegate.At(n)})
}

func sawOn(ids ...tidegate.Incarnation) tidegate.Token {
	return tidegate.NewToken(tidegate.Mark{Cluster: "main", Epoch: keptEpoch, Seen: ids})
}

// whole opens a session and saves it once, so that the entry is whole.
func whole(t testing.TB, k *tidegate.Keeper, n uint64) {
	t.Helper()
	s := k.Open("ann")
	load(t, s)
	s.Merge(reached(n))
	save(t, s)
}

func load(t testing.TB, s *tidegate.Session) {
	t.Helper()
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func save(t testing.TB, s *tidegate.Session) {
	t.Helper()
	if err := s.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// opened loads the session and returns what it requires.
func opened(t testing.TB, k *tidegate.Keeper) (position uint64, catchesUp bool) {
	t.Helper()
	s := k.Open("ann")
	load(t, s)
	for _, m := range s.Token().Marks() {
		position, catchesUp = max(position, m.Position.Number()), catchesUp || m.CatchUp
	}
	return position, catchesUp
}

func TestKeptSession(t *testing.T) {
	t.Parallel()
	store := newShelf(t, time.Hour)
	k := newKeeper(t, store)
	if _, catches := opened(t, k); !catches {
		t.Error("of a key that is not known nothing is known")
	}
	whole(t, k, 5)
	if n, catches := opened(t, k); n != 5 || !catches {
		// The session that was saved had caught up for want of a history.
		t.Errorf("%d, catches up: %v", n, catches)
	}
	s := k.Open("bob")
	load(t, s)
	if n := len(s.Token().Marks()); n != 1 || !s.Token().Marks()[0].CatchUp {
		t.Errorf("another key has %+v", s.Token().Marks())
	}
}

// settledStore has a whole entry of ann's at position 5, and nothing to catch up with.
func settledStore(t testing.TB) (*shelf, *tidegate.Keeper) {
	t.Helper()
	store := newShelf(t, time.Hour)
	k := newKeeper(t, store)
	var key string
	probe := k.Open("ann")
	load(t, probe)
	// As an instance whose primary has settled the duty would save it.
	kept, err := store.MemoryStore.Load(t.Context(), keyOf(t, store, k), "")
	if err != nil {
		t.Fatal(err)
	}
	key = keyOf(t, store, k)
	if err := store.MemoryStore.Save(t.Context(), key, tidegate.Saving{Birth: kept.Birth, Add: tidegate.KeptToken{Name: "first", Token: reached(5)}}); err != nil {
		t.Fatal(err)
	}
	if n, catches := opened(t, k); n != 5 || catches {
		t.Fatalf("%d, catches up: %v", n, catches)
	}
	store.set(func() { store.loads, store.saves = nil, nil })
	return store, k
}

// keyOf returns what the store has ann under.
func keyOf(t testing.TB, store *shelf, k *tidegate.Keeper) string {
	t.Helper()
	spy := &keySpy{Store: store}
	kk := newKeeper(t, spy)
	if err := kk.Open("ann").Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	key := spy.last()
	if strings.Contains(key, "ann") || key == "" {
		t.Fatalf("the store gets the key %q", key)
	}
	return key
}

// keySpy knows the last key that it was asked for. A call that took too long for its
// keeper can be under way still.
type keySpy struct {
	tidegate.Store
	key atomic.Value
}

func (s *keySpy) Load(ctx context.Context, key, marker string) (tidegate.Kept, error) {
	s.key.Store(key)
	return s.Store.Load(ctx, key, marker)
}

// last returns the last key, "" before the first.
func (s *keySpy) last() string {
	key, _ := s.key.Load().(string)
	return key
}

func TestLoadsOnceAndLazily(t *testing.T) {
	t.Parallel()
	store, k := settledStore(t)
	s := k.Open("ann")
	if !s.Token().CatchesUp() {
		t.Error("the token of a session that was not loaded requires too little")
	}
	save(t, s) // nothing happened
	if len(store.loads)+len(store.saves) != 0 {
		t.Fatalf("%d loads, %d saves before anything needs it", len(store.loads), len(store.saves))
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { load(t, s) })
	}
	wg.Wait()
	save(t, s)
	if len(store.loads) != 1 || len(store.saves) != 0 {
		t.Errorf("%d loads, %d saves", len(store.loads), len(store.saves))
	}
	if s.Token().CatchesUp() || !s.Token().Same(reached(5)) {
		t.Errorf("it requires %+v", s.Token().Marks())
	}
}

// A read that stays where the session is changes nothing of its token, and has seen
// more all the same: another request may be about to delete what this one has loaded.
func TestReadIsSavedThoughTheTokenIsTheSame(t *testing.T) {
	t.Parallel()
	store, k := settledStore(t)
	first := k.Open("ann")
	load(t, first)
	first.Merge(sawOn(1))
	save(t, first)

	s, leaves := k.Open("ann"), k.Open("ann")
	load(t, s)
	load(t, leaves)
	leaves.Merge(reached(8)) // its bound, of before s reads
	s.EndRead()
	save(t, s)
	save(t, s) // nothing new
	if n := len(store.saves); n != 2 {
		t.Errorf("%d saves, want 2", n)
	}
	save(t, leaves)
	again := k.Open("ann")
	load(t, again)
	if !slices.Contains(again.Token().Marks()[0].Seen, 1) {
		t.Errorf("what was read meanwhile is forgotten: %+v", again.Token().Marks())
	}
}

// Nothing that another request saves is lost, in whichever order they arrive.
func TestSavesInAnyOrder(t *testing.T) {
	t.Parallel()
	_, k := settledStore(t)
	a, b := k.Open("ann"), k.Open("ann")
	load(t, a)
	load(t, b)
	a.Merge(reached(9))
	b.Merge(reached(7))
	save(t, a)
	save(t, b)
	if n, _ := opened(t, k); n != 9 {
		t.Errorf("the entry is at %d", n)
	}
}

func TestMarkerOfAWrite(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after   func(store *shelf, s *tidegate.Session)
		catches bool
		n       uint64
	}{
		"saved":                       {func(_ *shelf, s *tidegate.Session) { s.EndWrite(); save(t, s) }, false, 6},
		"the process ends":            {func(*shelf, *tidegate.Session) {}, true, 5},
		"the save fails":              {func(store *shelf, s *tidegate.Session) { failedSave(t, store, s) }, true, 5},
		"saved while it is open":      {func(_ *shelf, s *tidegate.Session) { save(t, s) }, true, 6},
		"saved while open, and after": {func(_ *shelf, s *tidegate.Session) { save(t, s); s.EndWrite(); save(t, s) }, false, 6},
		"the save is repeated":        {func(store *shelf, s *tidegate.Session) { failedSave(t, store, s); save(t, s) }, false, 6},
		"two writes, one open": {func(_ *shelf, s *tidegate.Session) {
			if err := s.BeginWrite(t.Context()); err != nil {
				t.Error(err)
			}
			s.EndWrite()
			save(t, s)
		}, true, 6},
		"another request saves": {func(store *shelf, _ *tidegate.Session) {
			other := newKeeper(t, store).Open("ann")
			load(t, other)
			save(t, other)
		}, true, 5},
	} {
		store, k := settledStore(t)
		s := k.Open("ann")
		if err := s.BeginWrite(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Merge(reached(6))
		c.after(store, s)
		if n, catches := opened(t, k); n < c.n || catches != c.catches {
			t.Errorf("%s: at %d, catches up: %v", name, n, catches)
		}
	}
}

func failedSave(t testing.TB, store *shelf, s *tidegate.Session) {
	t.Helper()
	s.EndWrite()
	store.set(func() { store.failing = errDown })
	defer store.set(func() { store.failing = nil })
	if err := s.Save(t.Context()); !errors.Is(err, tidegate.ErrNotKept) || !errors.Is(err, errDown) {
		t.Errorf("a save that failed: %v", err)
	}
}

// A write that never was leaves a marker to be cleared.
func TestWriteThatNeverWas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, k := settledStore(t)
		s := k.Open("ann")
		load(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		goesOn := make(chan struct{})
		store.set(func() { store.hung = goesOn }) // once the marker is there
		failed := make(chan error)
		go func() { failed <- s.BeginWrite(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		store.set(func() { store.hung = nil })
		close(goesOn)
		if err := s.BeginWrite(ctx); !errors.Is(err, context.Canceled) || len(store.loads) != 2 {
			t.Errorf("a request that is over: %v, %d loads", err, len(store.loads))
		}
		s.Merge(reached(6))
		save(t, s)
		if n, catches := opened(t, k); n != 6 || catches {
			t.Errorf("at %d, catches up: %v", n, catches)
		}
	})
}

// With a store that fails or hangs, reads catch up, writes go on, and the answer
// has to carry the token; all of it within the timeout.
func TestStoreThatIsDown(t *testing.T) {
	t.Parallel()
	for _, hung := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store, k := settledStore(t)
			goesOn := make(chan struct{})
			store.set(func() {
				if store.hung = goesOn; !hung {
					store.hung, store.failing = nil, errDown
				}
			})
			start := time.Now()
			reader, writer := k.Open("ann"), k.Open("ann")
			load(t, reader)
			if m := reader.Token().Marks(); len(m) != 1 || !m[0].CatchUp {
				t.Errorf("hung %v: it requires %+v", hung, m)
			}
			if err := writer.BeginWrite(t.Context()); err != nil {
				t.Errorf("hung %v: a write is held up: %v", hung, err)
			}
			writer.Merge(reached(6))
			writer.EndWrite()
			if err := writer.Save(t.Context()); !errors.Is(err, tidegate.ErrNotKept) {
				t.Errorf("hung %v: the token need not go out: %v", hung, err)
			}
			if d := time.Since(start); hung && d != 150*time.Millisecond || !hung && d != 0 {
				t.Errorf("hung %v: it took %v", hung, d)
			}
			if st := k.Stats(); st.FailedLoads != 2 || st.FailedMarkers != 1 || st.FailedSaves != 1 || st.CatchUps < 2 {
				t.Errorf("hung %v: %+v", hung, st)
			}
			// The store is back, and so is the next save; no marker was there, so
			// the token goes out once more.
			store.set(func() { store.hung, store.failing = nil, nil })
			close(goesOn)
			if err := writer.Save(t.Context()); !errors.Is(err, tidegate.ErrNotKept) {
				t.Errorf("hung %v: there was no marker: %v", hung, err)
			}
			if n, _ := opened(t, k); n != 6 {
				t.Errorf("hung %v: at %d", hung, n)
			}
			if err := writer.Save(t.Context()); err != nil {
				t.Errorf("hung %v: all is kept: %v", hung, err)
			}
		})
	}
}

func TestKeeperConfigThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	store := newShelf(t, time.Hour)
	for _, c := range []struct {
		cfg  tidegate.KeeperConfig
		want []string
	}{
		{tidegate.KeeperConfig{Clusters: []string{"main"}}, []string{"KeeperConfig.Store"}},
		{tidegate.KeeperConfig{Store: store}, []string{"KeeperConfig.Clusters"}},
		{tidegate.KeeperConfig{Store: store, Clusters: make([]string, tidegate.MaxMarks+1)}, []string{"KeeperConfig.Clusters"}},
		{tidegate.KeeperConfig{Store: store, Clusters: []string{"main", ""}}, []string{"KeeperConfig.Clusters[1]"}},
		{tidegate.KeeperConfig{Store: store, Clusters: []string{"main"}, Timeout: -1}, []string{"KeeperConfig.Timeout"}},
		{tidegate.KeeperConfig{Store: store, Clusters: []string{"main"}, Timeout: time.Minute}, []string{"KeeperConfig.Timeout"}},
		{tidegate.KeeperConfig{Store: store, Clusters: []string{"main"}, LongestLag: -1}, []string{"KeeperConfig.LongestLag"}},
		// Both settings are named.
		{tidegate.KeeperConfig{Store: newShelf(t, 59*time.Minute), Clusters: []string{"main"}}, []string{"KeeperConfig.LongestLag is 1h0m0s", "TTL only 59m0s"}},
		{tidegate.KeeperConfig{Store: store, Clusters: []string{"main"}, LongestLag: 2 * time.Hour}, []string{"LongestLag is 2h0m0s", "TTL only 1h0m0s"}},
		{tidegate.KeeperConfig{Store: store, Clusters: []string{"main"}}, nil},
		{tidegate.KeeperConfig{Store: newShelf(t, time.Minute), Clusters: []string{"main"}, LongestLag: time.Minute}, nil},
	} {
		_, err := tidegate.NewKeeper(c.cfg)
		if errors.Is(err, tidegate.ErrConfig) != (c.want != nil) {
			t.Errorf("%v: %v", c.want, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in: %v", want, err)
			}
		}
	}
}

// hurriedLedger ends a write while the session's token is being taken.
type hurriedLedger struct {
	marks []tidegate.Mark
	then  func()
}

func (l *hurriedLedger) Marks() []tidegate.Mark {
	marks := l.marks
	if l.then != nil {
		l.then()
		l.then = nil
	}
	return marks
}

func (l *hurriedLedger) Merge(m []tidegate.Mark) {
	l.marks = tidegate.NewToken(append(l.marks, m...)...).Marks()
}

func (l *hurriedLedger) CatchUp() {}

// A write that ends while a save is under way is told of by the next one, and until
// then by its marker.
func TestWriteThatEndsDuringASave(t *testing.T) {
	t.Parallel()
	_, k := settledStore(t)
	s := k.Open("ann")
	if err := s.BeginWrite(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := &hurriedLedger{}
	s.Ledger("main", func(_ uint64, marks []tidegate.Mark) tidegate.Ledger {
		l.marks = marks
		return l
	})
	l.then = func() {
		l.Merge(reached(6).Marks())
		s.EndWrite()
	}
	save(t, s)
	if n, catches := opened(t, k); n != 5 || !catches {
		t.Errorf("at %d, catches up: %v", n, catches)
	}
	save(t, s)
	if n, catches := opened(t, k); n != 6 || catches {
		t.Errorf("then at %d, catches up: %v", n, catches)
	}
}

// A save whose answer was lost has been carried out: it is replaced like any other.
func TestSaveWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	store, k := settledStore(t)
	s := k.Open("ann")
	load(t, s)
	for i := range uint64(3) {
		s.Merge(reached(6 + i))
		store.set(func() { store.failing, store.late = errDown, true })
		if err := s.Save(t.Context()); !errors.Is(err, tidegate.ErrNotKept) {
			t.Error(err)
		}
		store.set(func() { store.failing, store.late = nil, false })
	}
	save(t, s)
	kept, err := store.MemoryStore.Load(t.Context(), keyOf(t, store, k), "")
	if err != nil || len(kept.Tokens) != 1 || !kept.Whole || !kept.Tokens[0].Token.Same(reached(8)) {
		t.Errorf("%+v, %v", kept, err)
	}
}

// While the outcome of a write is not known the client has the token as well.
func TestUnknownOutcomeGoesOutToo(t *testing.T) {
	t.Parallel()
	_, k := settledStore(t)
	s := k.Open("ann")
	load(t, s)
	s.Merge(tidegate.NewToken(tidegate.Mark{Cluster: "main", Epoch: keptEpoch, CatchUp: true, Pending: []uint64{3}}))
	if err := s.Save(t.Context()); !errors.Is(err, tidegate.ErrNotKept) {
		t.Errorf("the store alone keeps it: %v", err)
	}
	again := k.Open("ann")
	load(t, again)
	if m := again.Token().Marks(); len(m) != 1 || !slices.Contains(m[0].Pending, 3) {
		t.Errorf("the store has %+v", m)
	}
}

// settledAt is a database's book of a session that has settled what it had to see.
type settledAt struct{ marks []tidegate.Mark }

func (l *settledAt) Marks() []tidegate.Mark  { return l.marks }
func (l *settledAt) Merge(m []tidegate.Mark) { l.marks = append(l.marks, m...) }
func (l *settledAt) CatchUp()                {}

// settles has the session see all that it has to, at a position, and saves it.
func settles(t testing.TB, s *tidegate.Session, n uint64) {
	t.Helper()
	s.Ledger("main", func(uint64, []tidegate.Mark) tidegate.Ledger { return &settledAt{reached(n).Marks()} })
	s.BeginRead()
	s.EndRead()
	save(t, s)
}

// What leaves the token as it was can still require more: another request may have
// settled what the token said before, and is about to save that.
func TestSameTokenThatRequiresMoreIsSaved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		had   func(*tidegate.Session)
		again func(*tidegate.Session)
		kept  func(tidegate.Mark) bool
	}{
		"a write by another way": {
			func(s *tidegate.Session) { s.CatchUp("main") },
			func(s *tidegate.Session) { tidegate.Wrote(tidegate.WithSession(t.Context(), s), "main") },
			func(m tidegate.Mark) bool { return m.CatchUp },
		},
		"an event": {
			func(s *tidegate.Session) { s.Merge(sawOn(1)) },
			func(s *tidegate.Session) { s.Merge(sawOn(1)) },
			func(m tidegate.Mark) bool { return slices.Contains(m.Seen, 1) },
		},
		"a read that is not over": {
			func(s *tidegate.Session) { s.Merge(sawOn(1)) },
			func(s *tidegate.Session) { s.BeginRead() },
			func(m tidegate.Mark) bool { return slices.Contains(m.Seen, 1) },
		},
	} {
		_, k := settledStore(t)
		first := k.Open("ann")
		load(t, first)
		c.had(first)
		save(t, first)
		one, other := k.Open("ann"), k.Open("ann")
		load(t, other)
		load(t, one)
		c.again(one)
		save(t, one)
		settles(t, other, 7)
		s := k.Open("ann")
		load(t, s)
		if m := s.Token().Marks(); !slices.ContainsFunc(m, c.kept) {
			t.Errorf("%s: the next request requires %+v", name, m)
		}
	}
}

// A session that lives for long has a marker for each of its writes, though the store
// ends markers and forgets entries.
func TestMarkersOfALongSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, k := settledStore(t)
		long := k.Open("ann")
		for i := range uint64(16) {
			if err := long.BeginWrite(t.Context()); err != nil {
				t.Fatal(err)
			}
			long.Merge(reached(10 + i))
			long.EndWrite()
			if n, catches := opened(t, k); n < 10+i && !catches {
				t.Errorf("write %d: another request is at %d and need not catch up", i, n)
			}
			time.Sleep(10 * time.Minute)
		}
		save(t, long)
		n, _ := opened(t, k)
		if kept, err := store.MemoryStore.Load(t.Context(), keyOf(t, store, k), ""); n != 25 || err != nil || !kept.Whole || len(kept.Tokens) != 1 {
			t.Errorf("at the end: at %d, %+v, %v", n, kept, err)
		}
		// Writes that follow each other share one.
		before := len(store.loads)
		for range 5 {
			if err := long.BeginWrite(t.Context()); err != nil {
				t.Fatal(err)
			}
			long.EndWrite()
		}
		if n := len(store.loads) - before; n != 1 {
			t.Errorf("%d markers for 5 writes at once", n)
		}
	})
}

// A save that failed has to be made again, also when it was for a read that left the
// token as it was.
func TestSaveOfAReadIsRepeated(t *testing.T) {
	t.Parallel()
	store, k := settledStore(t)
	first := k.Open("ann")
	load(t, first)
	first.Merge(sawOn(1))
	save(t, first)
	s := k.Open("ann")
	load(t, s)
	s.BeginRead()
	s.EndRead()
	store.set(func() { store.failing, store.saves = errDown, nil })
	if err := s.Save(t.Context()); !errors.Is(err, tidegate.ErrNotKept) {
		t.Error(err)
	}
	store.set(func() { store.failing = nil })
	for range 3 {
		save(t, s)
	}
	if n := len(store.saves); n != 2 {
		t.Errorf("%d saves, want the one that failed and its repetition", n)
	}
	if f := store.saves[1].Forget; len(f) != 2 {
		t.Errorf("it forgets %q", f)
	}
}

// While a write without a marker is open, every save says that the store is not enough.
func TestWriteWithoutAMarkerWhileItIsOpen(t *testing.T) {
	t.Parallel()
	store, k := settledStore(t)
	s := k.Open("ann")
	load(t, s)
	store.set(func() { store.failing = errDown })
	if err := s.BeginWrite(t.Context()); err != nil {
		t.Fatal(err)
	}
	store.set(func() { store.failing = nil })
	for i := range 3 {
		if i == 2 {
			s.EndWrite()
		}
		s.Merge(reached(6 + uint64(i)))
		if err := s.Save(t.Context()); !errors.Is(err, tidegate.ErrNotKept) {
			t.Errorf("save %d: %v", i, err)
		}
	}
	s.Merge(reached(10))
	save(t, s)
	if n := len(store.saves[len(store.saves)-1].Forget); n != 1 {
		t.Errorf("a save forgets %d names, of which all but the last are gone", n)
	}
}

// Each key has an entry, a home and a share of a rollout of its own, wherever it is
// opened.
func TestKeysOfAKeeper(t *testing.T) {
	t.Parallel()
	seen, nonces := map[string]bool{}, map[string]bool{}
	spy := &keySpy{Store: newShelf(t, time.Hour)}
	for i := range 5000 {
		var nonce [2]string
		for j := range nonce {
			s := newKeeper(t, spy).Open(fmt.Sprint("user ", i))
			load(t, s)
			b, _ := s.Token().AppendBinary(nil)
			nonce[j] = string(b[1:9])
		}
		key := spy.last()
		if nonce[0] != nonce[1] || nonces[nonce[0]] || seen[key] || strings.Contains(key, "user") {
			t.Fatalf("key %d: %q, nonces %x", i, key, nonce)
		}
		seen[key], nonces[nonce[0]] = true, true
	}
}
