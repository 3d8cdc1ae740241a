package tidegate_test

import (
	"context"
	"reflect"
	"sync"
	"testing"

	"github.com/tidegatedb/tidegate"
)

func TestContextSession(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	if s := tidegate.SessionFrom(ctx); s != nil {
		t.Errorf("a bare context has the session %p", s)
	}
	if s := tidegate.SessionFrom(tidegate.WithSession(ctx, nil)); s != nil {
		t.Errorf("a nil session came back as %p", s)
	}
	outer, inner := tidegate.NewSession(), tidegate.NewSession()
	ctx = tidegate.WithSession(ctx, outer)
	deeper := tidegate.WithSession(ctx, inner)
	if tidegate.SessionFrom(ctx) != outer || tidegate.SessionFrom(deeper) != inner {
		t.Error("a context does not have the session that it was given last")
	}
	if tidegate.SessionFrom(tidegate.WithSession(deeper, nil)) != nil {
		t.Error("a session cannot be taken away from a context")
	}
}

func TestContextToken(t *testing.T) {
	t.Parallel()
	token := tidegate.NewToken(at("main", 7, 1))
	job1, job2 := tidegate.WithToken(t.Context(), token), tidegate.WithToken(t.Context(), token)
	if tidegate.SessionFrom(job1) == tidegate.SessionFrom(job2) {
		t.Fatal("two jobs share a session")
	}
	tidegate.Wrote(job1, "side")
	sameMarks(t, "job 1", tidegate.SessionFrom(job1).Token().Marks(), []tidegate.Mark{at("main", 7, 1), {Cluster: "side", CatchUp: true}})
	sameMarks(t, "job 2", tidegate.SessionFrom(job2).Token().Marks(), []tidegate.Mark{at("main", 7, 1)})

	third := tidegate.WithToken(job1, tidegate.Token{}) // a worker reused without a token
	sameMarks(t, "job 3", tidegate.SessionFrom(third).Token().Marks(), nil)
}

func TestWrote(t *testing.T) {
	t.Parallel()
	tidegate.Wrote(t.Context(), "main") // without a session: nothing
	s := tidegate.NewSession()
	ledger := s.Ledger("main", open("main")).(*fakeLedger)
	tidegate.Wrote(tidegate.WithSession(t.Context(), s), "main")
	if ledger.catchUps != 1 {
		t.Errorf("the ledger was told %d times, want once", ledger.catchUps)
	}
}

func TestObserve(t *testing.T) {
	t.Parallel()
	bare := t.Context()
	tidegate.ObserverFrom(bare).Add(tidegate.Decision{Node: "nobody sees this"})
	ctx, seen := tidegate.Observe(bare)
	if tidegate.ObserverFrom(ctx) != seen || tidegate.ObserverFrom(bare) != nil {
		t.Fatal("the collection is not the one of its context")
	}
	if _, ok := seen.Last(); ok || len(seen.All()) != 0 {
		t.Error("a new collection is not empty")
	}
	for _, node := range []string{"a", "b", "c"} {
		tidegate.ObserverFrom(context.WithoutCancel(ctx)).Add(tidegate.Decision{Node: node})
	}
	if last, ok := seen.Last(); !ok || last.Node != "c" {
		t.Errorf("the last decision is %v, %v", last, ok)
	}
	all := seen.All()
	want := []tidegate.Decision{{Node: "a"}, {Node: "b"}, {Node: "c"}}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("got %v, want %v", all, want)
	}
	all[0].Node = "changed"
	if !reflect.DeepEqual(seen.All(), want) {
		t.Error("All does not return a copy")
	}
}

// A handler that observes does not blind the middleware around it.
func TestObserveTwice(t *testing.T) {
	t.Parallel()
	outerCtx, outer := tidegate.Observe(t.Context())
	innerCtx, inner := tidegate.Observe(outerCtx)
	tidegate.ObserverFrom(innerCtx).Add(tidegate.Decision{Node: "a"})
	tidegate.ObserverFrom(outerCtx).Add(tidegate.Decision{Node: "b"})
	if got, want := inner.All(), []tidegate.Decision{{Node: "a"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("the inner collection has %v, want %v", got, want)
	}
	if got, want := outer.All(), []tidegate.Decision{{Node: "a"}, {Node: "b"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("the outer collection has %v, want %v", got, want)
	}
}

func TestObserveConcurrent(t *testing.T) {
	t.Parallel()
	ctx, seen := tidegate.Observe(t.Context())
	const readers, each = 8, 50
	var wg sync.WaitGroup
	for r := range readers {
		wg.Go(func() {
			for i := range each {
				tidegate.ObserverFrom(ctx).Add(tidegate.Decision{Retries: r*each + i})
				if _, ok := seen.Last(); !ok {
					t.Error("a decision vanished")
				}
				_ = seen.All()
			}
		})
	}
	wg.Wait()
	next := make(map[int]int) // decisions of one reader stay in order
	for _, d := range seen.All() {
		if r := d.Retries / each; d.Retries%each != next[r] {
			t.Fatalf("reader %d: decision %d came as number %d", r, d.Retries%each, next[r])
		}
		next[d.Retries/each]++
	}
	if got := len(seen.All()); got != readers*each {
		t.Errorf("%d decisions, want %d", got, readers*each)
	}
}
