package engine_test

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

// ofMain returns a token of marks of the stubs' cluster.
func ofMain(marks ...tidegate.Mark) tidegate.Token {
	for i := range marks {
		marks[i].Cluster = "main"
	}
	return tidegate.NewToken(marks...)
}

// floorNews are the changes of the floor that a hook has been told since the last call.
func floorNews(h *told) (news []tidegate.Change) {
	for _, c := range h.news() {
		if c.Kind == tidegate.FloorRaised || c.Kind == tidegate.FloorDropped {
			news = append(news, c)
		}
	}
	return news
}

func TestSetFloor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h told
		c := core(t, engine.Config{Hooks: []tidegate.Hook{h.hook()}}, primaryStub(1, 200), replicaStub(2, 100), replicaStub(3, 200))
		raised := func(upTo uint64) []tidegate.Change {
			return []tidegate.Change{{Kind: tidegate.FloorRaised, Cluster: "main", Epoch: epoch(1), Floor: tidegate.At(upTo)}}
		}
		for _, x := range []struct {
			name  string
			token tidegate.Token
			news  []tidegate.Change
			floor uint64
		}{
			{"nothing", tidegate.Token{}, nil, 0},
			{"another cluster's", tidegate.NewToken(tidegate.Mark{Cluster: "other", Epoch: epoch(1), Position: tidegate.At(500)}), nil, 0},
			{"a floor", ofMain(needs(120)), raised(120), 120},
			{"the same again", ofMain(needs(120)), nil, 120},
			{"a lower one", ofMain(needs(90)), nil, 120},
			{"a higher one", ofMain(needs(150)), raised(150), 150},
		} {
			c.SetFloor(x.token)
			if got := floorNews(&h); !slices.Equal(got, x.news) {
				t.Errorf("%s: told %+v, want %+v", x.name, got, x.news)
			}
			if got := c.Status().Floor; got != tidegate.At(x.floor) {
				t.Errorf("%s: the floor is %v, want %d", x.name, got, x.floor)
			}
			time.Sleep(10 * time.Millisecond) // the look that confirms it
		}
		for range 50 {
			ctx, _ := sessionAt(t.Context())
			for _, class := range []tidegate.Class{tidegate.Causal, relaxedAny} {
				if d := through(ctx, t, c, class); d.Node != "c" {
					t.Errorf("%v, want the replica that has the floor", d)
				}
			}
			if d := through(t.Context(), t, c, relaxedAny); d.Node != "c" {
				t.Errorf("without a session: %v", d)
			}
		}
	})
}

// A token that says to catch up with everything makes what is committed now the floor.
func TestSetFloorByATokenThatCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h told
		p, r := primaryStub(1, 100), replicaStub(2, 100)
		c := core(t, engine.Config{Hooks: []tidegate.Hook{h.hook()}}, p, r)
		p.at(170)
		c.SetFloor(tidegate.CatchUpToken())
		time.Sleep(10 * time.Millisecond)
		if n := floorNews(&h); len(n) != 1 || n[0].Kind != tidegate.FloorRaised || n[0].Floor != tidegate.At(170) {
			t.Errorf("told %+v", n)
		}
		if d := through(t.Context(), t, c, relaxedAny); d.Node != "a" {
			t.Errorf("%v, want the primary", d)
		}
	})
}

// A floor of another history does not hold reads for long: it is dropped by a look that
// comes by itself, and that is told.
func TestFloorOfAnotherHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h told
		var j journal
		p, r := primaryStub(1, 100), replicaStub(2, 100)
		c := core(t, engine.Config{Hooks: []tidegate.Hook{h.hook()}, ProbeInterval: 10 * time.Millisecond, Logger: slog.New(slog.NewJSONHandler(&j, nil))}, p, r)
		j.lines(t)
		foreign := needs(50)
		foreign.Epoch = epoch(7)
		p.set(func(p *stub) { p.err = errors.New("down") })
		time.Sleep(20 * time.Millisecond)
		c.SetFloor(ofMain(foreign))
		// Nobody can tell while the primary is away.
		time.Sleep(time.Second)
		rd := &engine.Read{}
		if err := c.Begin(t.Context(), relaxedAny, rd); err != nil || rd.Primary() != true {
			t.Errorf("%v: to %v, want the primary, or nowhere", err, c.Decision(rd))
		}
		c.Cancel(rd)
		p.set(func(p *stub) { p.err = nil })
		time.Sleep(2 * time.Second) // one that fails is not asked often
		want := []tidegate.Change{{Kind: tidegate.FloorDropped, Cluster: "main", Epoch: epoch(1)}}
		if n := floorNews(&h); !slices.Equal(n, want) {
			t.Errorf("told %+v, want %+v", n, want)
		}
		if lines := j.lines(t); !slices.Contains(lines, "WARN floor dropped: it belongs to another history; set it again by a token of this one ") {
			t.Errorf("logged %q", lines)
		}
		if d := through(t.Context(), t, c, relaxedAny); d.Node != "b" {
			t.Errorf("%v, want the replica", d)
		}
	})
}

// A failover ends the floor, as it ends what tokens require.
func TestFloorEndsWithItsHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h told
		p, a, b := primaryStub(1, 100), replicaStub(2, 100), replicaStub(3, 100)
		c := core(t, engine.Config{Hooks: []tidegate.Hook{h.hook()}, ProbeInterval: 10 * time.Millisecond}, p, a, b)
		c.SetFloor(ofMain(needs(100)))
		time.Sleep(20 * time.Millisecond)
		if n := floorNews(&h); len(n) != 1 || n[0].Kind != tidegate.FloorRaised {
			t.Errorf("told %+v", n)
		}
		p.set(func(p *stub) { p.err = errors.New("down") })
		a.set(func(a *stub) {
			a.answer.Role, a.answer.Epoch, a.answer.Ceiling = tidegate.RolePrimary, epoch(2), tidegate.At(90)
			a.answer.Applied, a.answer.Bound = tidegate.At(90), tidegate.At(90)
		})
		b.set(func(b *stub) {
			b.answer.Epoch, b.answer.Applied, b.answer.Bound = epoch(2), tidegate.At(90), tidegate.At(90)
		})
		time.Sleep(50 * time.Millisecond)
		if n := floorNews(&h); len(n) != 1 || n[0].Kind != tidegate.FloorDropped || n[0].Epoch != epoch(2) || !n[0].Floor.IsZero() {
			t.Errorf("told %+v", n)
		}
		if d := through(t.Context(), t, c, relaxedAny); d.Node != "c" {
			t.Errorf("%v, want the replica of the new history", d)
		}
	})
}

// Whatever is read after the floor was set shows what it stands for, while replicas come
// and go and other reads run.
func TestReadsShowTheFloor(t *testing.T) {
	for _, floor := range []bool{true, false} {
		lacked := 0
		synctest.Test(t, func(t *testing.T) {
			cluster := fake.New(fake.Config{Replicas: 2, Delay: 3 * time.Millisecond})
			g, err := cluster.Open(t.Context(), fake.Options{Core: engine.Config{Cluster: "main", ProbeInterval: 10 * time.Millisecond}})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			// Sessions that stay where they read, for as long as the test runs.
			stays := tidegate.WithSession(t.Context(), tidegate.NewSession())
			for i := range 100 {
				s := tidegate.NewSession()
				serial, err := g.Write(tidegate.WithSession(t.Context(), s), 1)
				if err != nil {
					t.Fatal(err)
				}
				slow := cluster.Nodes()[1+i%2]
				slow.SetDelay(time.Duration(i%7) * 10 * time.Millisecond)
				if floor {
					g.Core().SetFloor(s.Token())
				}
				var wg sync.WaitGroup
				var mu sync.Mutex
				for n := range 8 {
					class := []tidegate.Class{tidegate.Causal, relaxedAny}[n%2]
					ctx := stays
					if n%4 > 1 {
						ctx = tidegate.WithSession(t.Context(), tidegate.NewSession())
					}
					wg.Go(func() {
						res, err := g.Look(ctx, class)
						mu.Lock()
						defer mu.Unlock()
						if err != nil {
							t.Errorf("%v: %v", class, err)
						} else if !res.View.Has(int(serial)) {
							lacked++
						}
					})
				}
				wg.Wait()
				time.Sleep(time.Duration(i%5) * time.Millisecond)
			}
		})
		if floor && lacked > 0 {
			t.Errorf("%d reads lack what the floor stands for", lacked)
		}
		if !floor && lacked == 0 {
			t.Error("without a floor no read lacks anything: nothing is tested")
		}
		t.Logf("floor %v: %d of 800 reads lack the write of somebody else", floor, lacked)
	}
}
