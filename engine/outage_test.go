package engine_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
)

// spans counts how many of something are under way.
type spans struct {
	mu        sync.Mutex
	now, most int
}

// add notes one that takes so long.
func (s *spans) add(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now++
	s.most = max(s.most, s.now)
	time.AfterFunc(d, func() {
		s.mu.Lock()
		s.now--
		s.mu.Unlock()
	})
}

// Both replicas are gone for some seconds under 500 reads a second, refusing or silent. The
// primary gets no more of the reads at one time than its limit lets through, the others
// are told so, each replica goes out once and comes back once, and both are used again soon.
func TestBothReplicasGone(t *testing.T) {
	const (
		slots, queueing = 5, 20 * time.Millisecond
		probing         = 200 * time.Millisecond // ProbeTimeout
		gone, healthy   = 5 * time.Second, time.Second
		patience        = 250 * time.Millisecond // of each caller
		took            = 20 * time.Millisecond  // one read
		// A probe at the slowest pace, what a replica must be well for, and two looks.
		back = 1100*time.Millisecond + 300*time.Millisecond + 2*110*time.Millisecond
	)
	for name, silent := range map[string]bool{"refusing": false, "silent": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := fake.New(fake.Config{Replicas: 2, Delay: time.Millisecond})
				var dark atomic.Bool
				var primary spans
				ejected, returned := map[string]int{}, map[string]int{}
				hook := tidegate.Hook{Changed: func(e tidegate.Change) {
					switch e.Kind {
					case tidegate.NodeEjected:
						ejected[e.Node]++
					case tidegate.NodeReturned:
						returned[e.Node]++
					}
				}}
				g, err := c.Open(t.Context(), fake.Options{
					Core: engine.Config{Fallbacks: slots, FallbackWait: queueing, ProbeTimeout: probing, Hooks: []tidegate.Hook{hook}},
					Delay: func(n *fake.Node, op fake.Op) time.Duration {
						switch {
						case op != fake.OpRead:
							return 50 * time.Microsecond
						case n.Index() > 0 && dark.Load():
							return time.Hour
						case n.Index() == 0:
							primary.add(took/2 - time.Microsecond) // the next may begin in the moment in which it ends
						}
						return took / 2
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				defer g.Close()
				c.Commit(1)
				time.Sleep(200 * time.Millisecond)

				var reads sync.WaitGroup
				var mu sync.Mutex
				began := time.Now()
				var on, late, shed int
				firstBack, answered := map[string]time.Duration{}, map[string]int{}
				read := func(at time.Duration) {
					ctx, cancel := context.WithTimeout(tidegate.WithSession(t.Context(), tidegate.NewSession()), patience)
					defer cancel()
					r, err := g.Look(ctx, tidegate.Causal)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case errors.Is(err, tidegate.ErrOverloaded):
						shed++
					case errors.Is(err, context.DeadlineExceeded) && silent && at > healthy-patience && at < healthy+probing+110*time.Millisecond:
						late++ // nobody knows yet
					case err != nil:
						t.Errorf("a read at %v: %v", at, err)
					case r.Decision.Role == tidegate.RolePrimary:
						on++
					case at > healthy+gone:
						if answered[r.Node.Name()]++; firstBack[r.Node.Name()] == 0 {
							firstBack[r.Node.Name()] = at - healthy - gone
						}
					}
				}
				for at := time.Duration(0); at < healthy+gone+5*time.Second; at = time.Since(began) {
					switch at {
					case healthy:
						dark.Store(silent)
						for _, n := range c.Nodes()[1:] {
							if n.Hang(silent); !silent {
								n.Stop()
							}
						}
					case healthy + gone:
						dark.Store(false)
						for _, n := range c.Nodes()[1:] {
							n.Hang(false)
							n.Start()
						}
					}
					reads.Go(func() { read(at) })
					time.Sleep(2 * time.Millisecond)
				}
				reads.Wait()
				synctest.Wait()
				t.Logf("%d on the primary, at most %d at one time; %d told that there is no room, %d late; back after %v; %v reads since then",
					on, primary.most, shed, late, firstBack, answered)
				if primary.most != slots {
					t.Errorf("%d reads were on the primary at one time, want %d: not more, and no room unused", primary.most, slots)
				}
				if want := int(gone/took) * slots; on < want*8/10 {
					t.Errorf("the primary answered %d, want most of the %d that there is room for", on, want)
				}
				for _, n := range c.Nodes()[1:] {
					if ejected[n.Name()] != 1 || returned[n.Name()] != 1 {
						t.Errorf("%s went out %d times and came back %d times, want once", n.Name(), ejected[n.Name()], returned[n.Name()])
					}
					if first, ok := firstBack[n.Name()]; !ok || first > back {
						t.Errorf("%s was used again after %v, want within %v", n.Name(), first, back)
					}
				}
				if a, b := answered["r1"], answered["r2"]; min(a, b)*3 < max(a, b) {
					t.Errorf("since then they answered %d and %d", a, b)
				}
				for _, n := range g.Core().Status().Nodes {
					if n.Flying != 0 {
						t.Errorf("%d reads are in flight on %s", n.Flying, n.Node)
					}
				}
			})
		})
	}
}
