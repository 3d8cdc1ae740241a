package freshness

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
)

// Nodes come and go while the watcher runs.
func TestSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := healthy(4)
		w := running(t, calm(asSources(nodes[:2])...))
		w.Set(3, nodes[3]) // leaves a gap
		if n := len(w.Table().Nodes); n != 4 {
			t.Fatalf("%d nodes in the table", n)
		}
		w.Demand(2, 0) // nobody is there
		w.Demand(9, 0)
		synctest.Wait()
		if n := &w.Table().Nodes[3]; !n.Usable || n.Applied != tidegate.At(100) {
			t.Errorf("the new node: %+v", n)
		}
		if n := &w.Table().Nodes[2]; n.Obs != nil || n.Usable {
			t.Errorf("nobody: %+v", n)
		}

		before := w.Table()
		w.Set(1, nil)
		if n := &w.Table().Nodes[1]; n.Usable || n.Obs != nil || w.Table().Incarnation(11) != NoNode {
			t.Errorf("what was taken away is still known: %+v", n)
		}
		select {
		case <-before.Next():
		default:
			t.Error("nobody was woken")
		}
		nodes[1].probes()
		time.Sleep(2 * time.Hour)
		if got := nodes[1].probes(); len(got) != 0 {
			t.Errorf("it was probed at %v", got)
		}

		w.Set(0, nil)
		if w.Table().Primary != NoNode {
			t.Error("the primary was taken away and is still it")
		}
		if w.Table().Epoch != first || !w.Table().Nodes[3].Usable {
			t.Error("without its primary a replica's history is forgotten")
		}
		w.Set(2, nodes[0])
		synctest.Wait()
		if w.Table().Primary != 2 {
			t.Errorf("the primary is node %d", w.Table().Primary)
		}
	})
}

// What a node that was taken away still answers is nobody's.
func TestSetDropsProbesUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := healthy(3)
		var told atomic.Int64
		cfg := calm(asSources(nodes[:2])...)
		cfg.Probed = func(Result) { told.Add(1) }
		w := running(t, cfg)
		nodes[1].set(func(s *source) { s.takes = time.Millisecond })
		look(w, 1)
		told.Store(0)
		w.Set(1, nodes[2])
		time.Sleep(time.Second)
		if n := &w.Table().Nodes[1]; n.Incarnation != 12 || told.Load() != 1 {
			t.Errorf("the table has incarnation %v, and was told of %d looks", n.Incarnation, told.Load())
		}
	})
}

// Ready does not wait for a node that has been taken away.
func TestSetEndsTheWaitForTheFirstLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := healthy(2)
		nodes[1].takes = 500 * time.Millisecond
		w := New(calm(asSources(nodes)...))
		w.Start(t.Context())
		defer w.Close()
		synctest.Wait()
		select {
		case <-w.First():
			t.Fatal("node 1 was not probed yet")
		default:
		}
		w.Set(1, nil)
		select {
		case <-w.First():
		default:
			t.Error("it waits for a node that is gone")
		}
	})
}

func TestSetAfterClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := healthy(2)
		w := running(t, calm(asSources(nodes[:1])...))
		w.Close()
		w.Set(1, nodes[1])
		time.Sleep(time.Hour)
		if got := nodes[1].probes(); len(got) != 0 {
			t.Errorf("probed at %v", got)
		}
	})
}
