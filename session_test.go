package tidegate_test

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidegatedb/tidegate"
)

// fakeLedger is the least that an adapter may do. It keeps and changes the very
// slices that it was given, as an adapter is free to.
type fakeLedger struct {
	cluster  string
	mu       sync.Mutex
	marks    []tidegate.Mark
	catchUps int
	merges   int
}

func (l *fakeLedger) Marks() []tidegate.Mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return tidegate.NewToken(l.marks...).Marks()
}

func (l *fakeLedger) Merge(marks []tidegate.Mark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marks = tidegate.NewToken(append(l.marks, marks...)...).Marks()
	l.merges++
}

func (l *fakeLedger) CatchUp() {
	l.Merge([]tidegate.Mark{{Cluster: l.cluster, CatchUp: true}})
	l.mu.Lock()
	l.catchUps++
	l.mu.Unlock()
}

// open makes a fakeLedger that scribbles over the marks it was handed.
func open(cluster string) func(uint64, []tidegate.Mark) tidegate.Ledger {
	return func(_ uint64, marks []tidegate.Mark) tidegate.Ledger {
		l := &fakeLedger{cluster: cluster}
		l.Merge(marks)
		for i := range marks {
			clear(marks[i].Seen)
			marks[i] = tidegate.Mark{Cluster: "scribble"}
		}
		return l
	}
}

func at(cluster string, n uint64, seen ...tidegate.Incarnation) tidegate.Mark {
	return tidegate.Mark{Cluster: cluster, Epoch: tidegate.Epoch{System: 1, Line: 1}, Position: tidegate.At(n), Seen: seen}
}

func TestSessionLedgerIsMadeOnce(t *testing.T) {
	t.Parallel()
	for range 50 {
		s := tidegate.NewSession(tidegate.NewToken(at("main", 7)))
		var made atomic.Int32
		start, wg := make(chan struct{}), sync.WaitGroup{}
		slow := func(nonce uint64, marks []tidegate.Mark) tidegate.Ledger {
			if made.Add(1) == 1 {
				close(start) // the others come while this one is being made
				for range 200 {
					runtime.Gosched()
				}
			}
			return open("main")(nonce, marks)
		}
		got := make([]tidegate.Ledger, 16)
		for i := range got {
			wg.Go(func() {
				if i > 0 {
					<-start
				}
				got[i] = s.Ledger("main", slow)
			})
		}
		wg.Wait()
		for _, l := range got {
			if l != got[0] {
				t.Fatal("two ledgers for one cluster of one session")
			}
		}
		if made.Load() != 1 {
			t.Fatalf("open was called %d times", made.Load())
		}
		sameMarks(t, "the ledger", got[0].Marks(), []tidegate.Mark{at("main", 7)})
	}
}

func TestSessionLedgerPerCluster(t *testing.T) {
	t.Parallel()
	s := tidegate.NewSession()
	a, b := s.Ledger("a", open("a")), s.Ledger("b", open("b"))
	if a == b {
		t.Fatal("two clusters share a ledger")
	}
	s.Merge(tidegate.NewToken(at("a", 1), at("b", 2), at("c", 3)))
	sameMarks(t, "a", a.Marks(), []tidegate.Mark{at("a", 1)})
	sameMarks(t, "b", b.Marks(), []tidegate.Mark{at("b", 2)})
	sameMarks(t, "token", s.Token().Marks(), []tidegate.Mark{at("a", 1), at("b", 2), at("c", 3)})
}

// What arrives before a ledger exists and after it ends in the same token.
func TestSessionBeforeAndAfterTheLedger(t *testing.T) {
	t.Parallel()
	other := at("main", 4)
	other.Epoch.Line = 2
	steps := []func(*tidegate.Session){
		func(s *tidegate.Session) { s.Merge(tidegate.NewToken(at("main", 5, 1))) },
		func(s *tidegate.Session) { s.CatchUp("main") },
		func(s *tidegate.Session) { s.Merge(tidegate.NewToken(at("main", 3, 2), at("side", 1), other)) },
		func(s *tidegate.Session) { s.Merge(tidegate.Token{}) },
	}
	want := []tidegate.Mark{at("main", 5, 1, 2), other, {Cluster: "main", CatchUp: true}, at("side", 1)}
	for opened := range len(steps) + 1 {
		t.Run(fmt.Sprint("ledger made before step ", opened), func(t *testing.T) {
			t.Parallel()
			s := tidegate.NewSession()
			for i, step := range steps {
				if i == opened {
					s.Ledger("main", open("main"))
				}
				step(s)
			}
			sameMarks(t, "token", s.Token().Marks(), want)
			sameMarks(t, "ledger", s.Ledger("main", open("main")).Marks(), want[:3])
			sameMarks(t, "token once more", s.Token().Marks(), want)
		})
	}
}

func TestSessionCatchUpReachesTheLedger(t *testing.T) {
	t.Parallel()
	s := tidegate.NewSession()
	main := s.Ledger("main", open("main")).(*fakeLedger)
	side := s.Ledger("side", open("side")).(*fakeLedger)
	s.CatchUp("main")
	if main.catchUps != 1 || side.catchUps != 0 {
		t.Errorf("main was told %d times and side %d times, want 1 and 0", main.catchUps, side.catchUps)
	}
}

func nonceOf(s *tidegate.Session) (nonce uint64) {
	s.Ledger("nonce", func(n uint64, _ []tidegate.Mark) tidegate.Ledger { nonce = n; return open("nonce")(n, nil) })
	return nonce
}

func TestSessionNonce(t *testing.T) {
	t.Parallel()
	first := tidegate.NewSession()
	token := first.Token()
	nonce := nonceOf(first)
	if nonce == 0 {
		t.Fatal("a new session has no nonce")
	}
	if other := nonceOf(tidegate.NewSession()); other == nonce {
		t.Errorf("two sessions share the nonce %x", nonce)
	}
	wire, err := token.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := tidegate.ParseBinary(wire)
	if err != nil {
		t.Fatal(err)
	}
	bare := tidegate.NewToken(at("main", 1)) // of no session
	for name, s := range map[string]*tidegate.Session{
		"from its token":                      tidegate.NewSession(token),
		"from the wire":                       tidegate.NewSession(parsed),
		"behind a token without":              tidegate.NewSession(bare, token),
		"before another":                      tidegate.NewSession(token, tidegate.NewSession().Token()),
		"merged into its token":               tidegate.NewSession(token.Merge(tidegate.NewSession().Token())),
		"merged into a token without":         tidegate.NewSession(bare.Merge(token)),
		"a session of a session of a session": tidegate.NewSession(tidegate.NewSession(tidegate.NewSession(token).Token()).Token()),
	} {
		if got := nonceOf(s); got != nonce {
			t.Errorf("%s: nonce %x, want %x", name, got, nonce)
		}
	}
	s := tidegate.NewSession(token)
	s.Merge(tidegate.NewSession().Token())
	if got := nonceOf(s); got != nonce {
		t.Errorf("a merge changed the nonce from %x to %x", nonce, got)
	}
}

func TestSessionZero(t *testing.T) {
	t.Parallel()
	var s tidegate.Session
	if !s.Token().IsZero() {
		t.Error("the zero Session requires something")
	}
	s.Merge(tidegate.NewToken(at("main", 2)))
	s.CatchUp("side")
	s.Ledger("main", open("main")).CatchUp()
	want := []tidegate.Mark{at("main", 2), {Cluster: "main", CatchUp: true}, {Cluster: "side", CatchUp: true}}
	sameMarks(t, "token", s.Token().Marks(), want)
}

// A ledger gets all that a token says of its cluster in one go.
func TestSessionMergesOnce(t *testing.T) {
	t.Parallel()
	later := at("main", 3)
	later.Epoch.Line = 2
	s := tidegate.NewSession()
	main := s.Ledger("main", open("main")).(*fakeLedger)
	main.merges = 0
	s.Merge(tidegate.NewToken(at("main", 5), at("side", 1), later))
	s.Merge(tidegate.NewToken(at("side", 2)))
	if main.merges != 1 {
		t.Errorf("the ledger was told %d times, want once", main.merges)
	}
	sameMarks(t, "ledger", main.Marks(), []tidegate.Mark{at("main", 5), later})
}

// An open that fails takes nothing with it.
func TestSessionLedgerPanic(t *testing.T) {
	t.Parallel()
	s := tidegate.NewSession(tidegate.NewToken(at("main", 2)))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic of open was swallowed")
			}
		}()
		s.Ledger("main", func(uint64, []tidegate.Mark) tidegate.Ledger { panic("no database") })
	}()
	sameMarks(t, "ledger", s.Ledger("main", open("main")).Marks(), []tidegate.Mark{at("main", 2)})
}

// Two sessions that go on from one token are apart from each other, and a
// worker's second job knows nothing of its first.
func TestSessionsAreApart(t *testing.T) {
	t.Parallel()
	token := tidegate.NewToken(at("main", 2, 1))
	a, b := tidegate.NewSession(token), tidegate.NewSession(token)
	a.Merge(tidegate.NewToken(at("main", 9, 7)))
	a.CatchUp("side")
	sameMarks(t, "the other session", b.Token().Marks(), []tidegate.Mark{at("main", 2, 1)})
	sameMarks(t, "the token", token.Marks(), []tidegate.Mark{at("main", 2, 1)})
}

// sharing hands out its own slices: a token must not change with them.
type sharing struct{ fakeLedger }

func (l *sharing) Marks() []tidegate.Mark { return append(l.marks, l.marks...) }

func TestSessionTokenSharesNothingWithTheLedger(t *testing.T) {
	t.Parallel()
	s := tidegate.NewSession()
	l := &sharing{fakeLedger{marks: []tidegate.Mark{at("main", 2, 1)}}}
	s.Ledger("main", func(uint64, []tidegate.Mark) tidegate.Ledger { return l })
	token := s.Token()
	l.marks[0].Seen[0] = 99
	if got, want := token.Marks(), []tidegate.Mark{at("main", 2, 1)}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Everything at once, for the race detector; and nothing that arrived is lost.
func TestSessionConcurrent(t *testing.T) {
	t.Parallel()
	for range 30 {
		s := tidegate.NewSession(tidegate.NewToken(at("main", 1, 1)))
		start, wg := make(chan struct{}), sync.WaitGroup{}
		run := func(f func()) { wg.Go(func() { <-start; f() }) }
		for i := range 8 {
			run(func() {
				s.Merge(tidegate.NewToken(at("main", uint64(10+i), tidegate.Incarnation(100+i)), at("side", uint64(i+1))))
			})
			run(func() { s.Ledger("main", open("main")) })
			run(func() {
				if m := s.Token().Marks(); len(m) == 0 || m[0].Cluster != "main" || m[0].Seen[0] != 1 {
					t.Errorf("a token without what the session started with: %+v", m)
				}
			})
		}
		run(func() { s.CatchUp("side") })
		close(start)
		wg.Wait()
		want := []tidegate.Mark{at("main", 17, 1, 100, 101, 102, 103, 104, 105, 106, 107), at("side", 8), {Cluster: "side", CatchUp: true}}
		sameMarks(t, "token", s.Token().Marks(), want)
	}
}

// Whoever must catch up with every cluster does so in those that it has used, in those
// that it has marks of and in those that it comes to later, and so does whoever goes
// on with its token; but a token that says this of the rest has said all of what it
// names.
func TestCatchUpWithTheRest(t *testing.T) {
	t.Parallel()
	use := func(s *tidegate.Session, cluster string) *books {
		return s.Ledger(cluster, func(_ uint64, marks []tidegate.Mark) tidegate.Ledger {
			return &books{marks: marks}
		}).(*books)
	}
	mustCatchUp := func(marks []tidegate.Mark) bool {
		return slices.ContainsFunc(marks, func(m tidegate.Mark) bool { return m.CatchUp })
	}
	s := tidegate.NewSession(tidegate.NewToken(at("marked", 5)))
	used := use(s, "used")
	s.Merge(tidegate.CatchUpToken())
	if used.caughtUp != 1 || !mustCatchUp(use(s, "marked").marks) || !mustCatchUp(use(s, "later").marks) {
		t.Errorf("used was told %d times, marked has %+v, later %+v", used.caughtUp, use(s, "marked").marks, use(s, "later").marks)
	}
	if !s.Token().CatchesUp() || s.Token().IsZero() {
		t.Errorf("its token is %+v", s.Token())
	}
	named := tidegate.CatchUpToken().Merge(tidegate.Token{})
	next := tidegate.NewSession(s.Token())
	if !mustCatchUp(use(next, "elsewhere").marks) {
		t.Error("what goes on with the token need not catch up elsewhere")
	}
	// What one token names another one's rest has: the union requires both.
	both := named.Merge(tidegate.NewToken(at("named", 7)))
	if !mustCatchUp(both.Marks()) || !both.CatchesUp() {
		t.Errorf("%+v", both)
	}
	var merged tidegate.Session
	merged.Merge(tidegate.NewToken(at("named", 7)))
	merged.Merge(named)
	if !mustCatchUp(use(&merged, "named").marks) {
		t.Error("a mark that was there before excuses from catching up")
	}
	// And one that names what it has settled does not ask for that again.
	settled := tidegate.NewSession()
	settled.Merge(tidegate.CatchUpToken())
	use(settled, "done").settle(at("done", 9))
	again := tidegate.NewSession(settled.Token())
	if mustCatchUp(use(again, "done").marks) || !mustCatchUp(use(again, "open").marks) {
		t.Errorf("done has %+v, open %+v", use(again, "done").marks, use(again, "open").marks)
	}
}

// books is a ledger that writes down what it is told.
type books struct {
	marks    []tidegate.Mark
	caughtUp int
}

func (b *books) Marks() []tidegate.Mark  { return b.marks }
func (b *books) Merge(m []tidegate.Mark) { b.marks = append(b.marks, m...) }
func (b *books) CatchUp()                { b.caughtUp++ }
func (b *books) settle(m tidegate.Mark)  { b.marks = []tidegate.Mark{m} }
