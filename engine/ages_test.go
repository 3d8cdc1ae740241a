package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// answered reads of a class from one of the stubs.
func answered(ctx context.Context, t *testing.T, c *engine.Core, class tidegate.Class, stubs ...*stub) {
	t.Helper()
	rd := begin(ctx, t, c, class)
	if !c.Admit(ctx, rd, stubs[rd.Node()].born()) {
		t.Error("not admitted")
	}
	c.End(rd)
}

// The primary is looked at once, when the bubble begins, so the age of an answer from
// the replica is the time since then.
func TestAgesOfAnswers(t *testing.T) {
	t.Parallel()
	minute := tidegate.Relaxed("ages-minute", "a test", tidegate.Within(time.Minute))
	second := tidegate.Relaxed("ages-second", "a test", tidegate.Within(time.Second), tidegate.Wait(0))
	whatever := tidegate.Relaxed("ages-whatever", "a test", tidegate.AnyStaleness())
	idle := tidegate.Hook{Decided: func(context.Context, tidegate.Decision) {}}
	for name, hooks := range map[string][]tidegate.Hook{"nobody is told": nil, "a hook is told": {idle}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, r := primaryStub(1, 100), replicaStub(2, 100)
				c := core(t, engine.Config{Hooks: hooks}, p, r)
				for range 100 { // 1 ms to 100 ms
					time.Sleep(time.Millisecond)
					answered(t.Context(), t, c, minute, p, r)
				}
				ctx, _ := sessionAt(t.Context(), needs(50))
				answered(ctx, t, c, second, p, r)
				time.Sleep(10 * time.Second)
				answered(ctx, t, c, whatever, p, r)
				want := []engine.ClassStatus{
					// 50 ms is in the bucket up to 51,199 us, and 99 ms in that up to 102,399.
					{Class: "ages-minute", Reads: 100, StalenessP50: 51_199 * time.Microsecond, StalenessP99: 100 * time.Millisecond, StalenessMax: 100 * time.Millisecond},
					{Class: "ages-second", Reads: 1, StalenessP50: 100 * time.Millisecond, StalenessP99: 100 * time.Millisecond, StalenessMax: 100 * time.Millisecond},
					{Class: "ages-whatever", Reads: 1, StalenessP50: 10_100 * time.Millisecond, StalenessP99: 10_100 * time.Millisecond, StalenessMax: 10_100 * time.Millisecond},
				}
				same := func(after string) {
					t.Helper()
					if got := c.Status().Classes; !slices.Equal(got, want) {
						t.Errorf("after %s: %+v\nwant %+v", after, got, want)
					}
				}
				same("relaxed reads on the replica")
				answered(ctx, t, c, tidegate.Causal, p, r)
				answered(ctx, t, c, strong, p, r)
				same("others")
				p.set(func(s *stub) { s.answer.Applied, s.answer.Ceiling = tidegate.At(101), tidegate.At(101) })
				time.Sleep(2 * time.Second)
				answered(ctx, t, c, second, p, r) // its budget is over: the primary answers
				same("a read that fell back")
			})
		})
	}
}

// What is read of a replica of which nothing is proven has no age, instead of the age zero.
func TestAgesThatAreUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, r := primaryStub(1, 100), replicaStub(2, 40)
		c := core(t, engine.Config{}, p, r)
		whatever := tidegate.Relaxed("ages-unknown", "a test", tidegate.AnyStaleness())
		stale := tidegate.Relaxed("ages-stale", "a test", tidegate.Within(time.Second), tidegate.Wait(0), tidegate.ServeStale())
		if got := c.Status().Classes; got != nil {
			t.Errorf("before: %+v", got)
		}
		answered(t.Context(), t, c, whatever, p, r)
		answered(t.Context(), t, c, whatever, p, r)
		answered(t.Context(), t, c, stale, p, r)
		got := c.Status().Classes
		if len(got) != 2 || got[0] != (engine.ClassStatus{Class: "ages-stale", Unknown: 1}) || got[1] != (engine.ClassStatus{Class: "ages-unknown", Unknown: 2}) {
			t.Errorf("%+v", got)
		}
	})
}

func TestAgesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, r := primaryStub(1, 100), replicaStub(2, 100)
		c := core(t, engine.Config{}, p, r)
		read := func(name string) {
			answered(t.Context(), t, c, tidegate.Relaxed(name, "one of very many", tidegate.AnyStaleness()), p, r)
		}
		read("other") // one of the hundred
		for range 2 {
			for i := range 150 {
				read(fmt.Sprintf("ages-%03d", i))
			}
		}
		got := c.Status().Classes
		if len(got) != 100 || got[98].Class != "ages-098" || got[98].Reads != 2 || got[99].Class != "other" || got[99].Reads != 1+2*51 {
			t.Errorf("%d classes, the last %+v", len(got), got[len(got)-1])
		}
		// And without it, the others are beside the hundred.
		c = core(t, engine.Config{}, p, r)
		for i := range 150 {
			read(fmt.Sprintf("ages-%03d", i))
		}
		if got = c.Status().Classes; len(got) != 101 || got[100].Class != "other" || got[100].Reads != 50 {
			t.Errorf("%d classes, the last %+v", len(got), got[len(got)-1])
		}
	})
}
