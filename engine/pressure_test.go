package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// statement makes a write that the primary answers after a while, and tells of it.
func statement(ctx context.Context, t *testing.T, c *engine.Core, took time.Duration, tell bool) {
	t.Helper()
	w, err := c.BeginWrite(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if tell {
		c.Sent(&w)
	}
	time.Sleep(took)
	c.EndWrite(&w)
	c.EndWrite(&w)
}

// The limit of the reads that fall back follows the writes that the adapter tells of.
func TestFallbackLimitFollowsWrites(t *testing.T) {
	for _, x := range []struct {
		name  string
		fixed bool
		tell  bool
		more  bool // the limit is as high as ever in the end
	}{{"follows", false, true, false}, {"fixed", true, true, true}, {"untold", false, false, true}} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := core(t, engine.Config{Wait: -1, Fallbacks: 8, FallbackWait: 20 * time.Millisecond, FixedFallbacks: x.fixed}, primaryStub(1, 100), replicaStub(2, 40))
				limit := func() float64 { return c.Status().FallbackLimit }
				if limit() != 8 {
					t.Errorf("the limit is %v at first", limit())
				}
				for range 50 {
					statement(t.Context(), t, c, 2*time.Millisecond, x.tell)
					time.Sleep(20 * time.Millisecond)
				}
				if l := limit(); (l == 8) != x.more {
					t.Errorf("the limit is %v before any read falls back", l)
				}
				// Reads want the primary, and writes take five times as long.
				over := make(chan struct{})
				for range 20 {
					go func() {
						for {
							select {
							case <-over:
								return
							default:
							}
							ctx, _ := sessionAt(t.Context(), needs(50))
							var rd engine.Read
							if err := c.Begin(ctx, tidegate.Causal, &rd); err == nil {
								time.Sleep(5 * time.Millisecond)
								c.End(&rd)
							} else if !errors.Is(err, tidegate.ErrOverloaded) {
								t.Error(err)
							}
						}
					}()
				}
				time.Sleep(10 * time.Millisecond)
				if s := c.Status(); s.FallbacksNow == 0 || s.FallbacksQueued == 0 {
					t.Errorf("%d fall back and %d queue", s.FallbacksNow, s.FallbacksQueued)
				}
				for range 100 {
					statement(t.Context(), t, c, 10*time.Millisecond, x.tell)
				}
				if l := limit(); x.more != (l == 8) || !x.more && l > .1 {
					t.Errorf("the limit is %v", l)
				}
				close(over)
				synctest.Wait()
				time.Sleep(time.Second)
				if s := c.Status(); s.FallbacksNow != 0 || s.FallbacksQueued != 0 || s.FallbackLimit < .1 {
					t.Errorf("when all is over %d fall back, %d queue, the limit is %v", s.FallbacksNow, s.FallbacksQueued, s.FallbackLimit)
				}
			})
		})
	}
}

// Hooks and the log are told when too many reads want the primary, and classes that are
// told to give way do.
func TestFallbacksHigh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h told
		log := &journal{}
		c := core(t, engine.Config{Wait: -1, ProbeInterval: 10 * time.Millisecond, FallbackWindow: time.Second, Hooks: []tidegate.Hook{h.hook()}, Logger: slog.New(slog.NewJSONHandler(log, nil))},
			primaryStub(1, 100), replicaStub(2, 40))
		time.Sleep(time.Second)
		h.news()
		log.lines(t)
		for range 30 {
			ctx, _ := sessionAt(t.Context(), needs(50))
			begin(ctx, t, c, tidegate.Causal)
		}
		time.Sleep(100 * time.Millisecond)
		if got, want := h.news(), []tidegate.Change{{Kind: tidegate.FallbacksHigh, Cluster: "main", Share: 1}}; !slices.Equal(got, want) {
			t.Errorf("told %+v, want %+v", got, want)
		}
		if s := c.Status(); s.FallbackShare != 1 || !s.FallbacksHigh {
			t.Errorf("share %v, high %v", s.FallbackShare, s.FallbacksHigh)
		}
		ctx, _ := sessionAt(t.Context(), needs(50))
		if err := c.Begin(ctx, tidegate.NewCausal("first", "test", tidegate.ShedFirst()), &engine.Read{}); !errors.Is(err, tidegate.ErrOverloaded) {
			t.Errorf("a class that is shed first: %v", err)
		}
		begin(ctx, t, c, tidegate.Causal)
		time.Sleep(2 * time.Second)
		if got, want := h.news(), []tidegate.Change{{Kind: tidegate.FallbacksNormal, Cluster: "main"}}; !slices.Equal(got, want) {
			t.Errorf("told %+v, want %+v", got, want)
		}
		if got, want := log.lines(t), []string{"WARN too many reads want the primary in a replica's place ", "INFO replicas answer most reads again "}; !slices.Equal(got, want) {
			t.Errorf("logged %q, want %q", got, want)
		}
	})
}

// Hooks are told of a replica that answers late, and reads go around it.
func TestSlowNodeIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h told
		c := core(t, engine.Config{ProbeInterval: 10 * time.Millisecond, Hooks: []tidegate.Hook{h.hook()}}, primaryStub(1, 100), replicaStub(2, 100), replicaStub(3, 100))
		time.Sleep(time.Second)
		h.news()
		took := []time.Duration{0, time.Millisecond, 20 * time.Millisecond}
		var got []tidegate.Change
		reads := func(n int) (late int) {
			for range n {
				ctx, _ := sessionAt(t.Context(), needs(50))
				var rd engine.Read
				if err := c.Begin(ctx, tidegate.Causal, &rd); err != nil {
					t.Fatal(err)
				}
				if rd.Node() == 2 {
					late++
				}
				time.Sleep(took[rd.Node()])
				c.End(&rd)
			}
			got = append(got, h.news()...)
			return late
		}
		reads(300)
		if late := reads(300); late > 20 {
			t.Errorf("%d of 300 reads went to the slow replica", late)
		}
		if want := []tidegate.Change{{Kind: tidegate.NodeSlow, Cluster: "main", Node: "c", Role: tidegate.RoleReplica, Took: took[2]}}; !slices.Equal(got, want) {
			t.Errorf("told %+v, want %+v", got, want)
		}
		if s := c.Status().Nodes; !s[2].Slow || s[2].Took != took[2] || s[1].Slow || s[1].Took != took[1] {
			t.Errorf("%+v", s)
		}
		ctx, _ := sessionAt(t.Context(), needs(50))
		if v := c.Explain(ctx, tidegate.Causal).Nodes[2]; !v.Eligible || v.Why != "has everything that is required, but answers late (in 20ms, in the middle): reads go around it while another has it" {
			t.Errorf("explained: %v %s", v.Eligible, v.Why)
		}
		got, took[2] = nil, time.Millisecond
		reads(4000)
		if late := reads(300); late < 100 {
			t.Errorf("%d of 300 reads went to the replica that is quick again", late)
		}
		if len(got) != 1 || got[0].Kind != tidegate.NodeQuick || got[0].Node != "c" {
			t.Errorf("told %+v", got)
		}
	})
}
