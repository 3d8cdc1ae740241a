package route

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// late is a table whose replicas take their delays from a moment on.
type late struct {
	*still
	since int64
	asked []int64 // when looks were asked for
}

func (l *late) Since(tidegate.Epoch, tidegate.Position) int64 { return l.since }
func (l *late) Demand(_ int, at int64)                        { l.asked = append(l.asked, at) }

func TestPlan(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, c := range []struct {
		name     string
		delays   [2]time.Duration // of the replicas
		exclude  uint64
		class    tidegate.Class
		deadline time.Duration
		patient  bool
		hopeless bool
		limit    time.Duration
		due      time.Duration // 0 at once
	}{
		{name: "nothing is known", limit: 20 * ms},
		{name: "soon", delays: [2]time.Duration{ms, 3 * ms}, limit: 20 * ms},
		{name: "within the wait", delays: [2]time.Duration{30 * ms, 10 * ms}, limit: 20 * ms, due: 10 * ms},
		{name: "the faster one has failed", delays: [2]time.Duration{30 * ms, 10 * ms}, exclude: 1 << 2, hopeless: true, limit: 20 * ms, due: 30 * ms},
		{name: "too long", delays: [2]time.Duration{30 * ms, 40 * ms}, hopeless: true, limit: 20 * ms, due: 30 * ms},
		{name: "too long, and the session is patient", delays: [2]time.Duration{30 * ms, 40 * ms}, patient: true, limit: 45*ms + 750*time.Microsecond, due: 30 * ms},
		{name: "patient for nearly as long as it may be", delays: [2]time.Duration{490 * ms, 490 * ms}, patient: true, limit: 500 * ms, due: 490 * ms},
		{name: "too long for a patient one", delays: [2]time.Duration{510 * ms, 510 * ms}, patient: true, hopeless: true, limit: 20 * ms, due: 510 * ms},
		{name: "too long for one of a class that hardly waits", delays: [2]time.Duration{260 * ms, 260 * ms}, class: tidegate.NewCausal("c", "w", tidegate.Wait(10*ms)), patient: true, hopeless: true, limit: 10 * ms, due: 260 * ms},
		{name: "patient for a class that waits long", delays: [2]time.Duration{990 * ms, 990 * ms}, class: tidegate.NewCausal("c", "w", tidegate.Wait(200*ms)), patient: true, limit: 1000 * ms, due: 990 * ms},
		{name: "the class waits longer", delays: [2]time.Duration{30 * ms, 40 * ms}, class: tidegate.NewCausal("c", "w", tidegate.Wait(50*ms)), limit: 50 * ms, due: 30 * ms},
		{name: "the class does not wait", delays: [2]time.Duration{30 * ms, 40 * ms}, class: tidegate.NewCausal("c", "w", tidegate.Wait(0)), patient: true, due: 30 * ms},
		{name: "the caller has half the time", delays: [2]time.Duration{12 * ms, 12 * ms}, deadline: 20 * ms, hopeless: true, limit: 10 * ms, due: 12 * ms},
		{name: "the caller clips the patience", delays: [2]time.Duration{30 * ms, 30 * ms}, deadline: 70 * ms, patient: true, limit: 35 * ms, due: 30 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				table := healthy(3)
				for i, d := range c.delays {
					table.Nodes[i+1].Delay = int64(d)
					table.Nodes[i+1].Applied = tidegate.At(50)
				}
				facts := &late{still: hold(table), since: mono.Now()}
				r := router(facts, 3)
				ctx := context.Background()
				if c.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				l := session(100)
				if c.patient {
					l.SetPatient(true)
				}
				var p plan
				r.plan(ctx, &Ticket{Ledger: l, Class: c.class}, table, &need{mark: tidegate.At(100), exclude: c.exclude}, &p)
				near := func(what string, got, want time.Duration) {
					if d := got - want; (want == 0) != (got == 0) || d < 0 || d > time.Duration(margin) {
						t.Errorf("%s %v, want %v", what, got, want)
					}
				}
				near("waits", p.limit, c.limit)
				due := time.Duration(0)
				if p.due != 0 {
					due = time.Duration(p.due - facts.since)
				}
				near("looks after", due, c.due)
				if p.hopeless != c.hopeless || !p.made {
					t.Errorf("hopeless is %v", p.hopeless)
				}
				if c.hopeless != (len(facts.asked) == 1) {
					t.Errorf("looks were asked for at %v", facts.asked)
				}
				if got, want := l.Patient(), c.patient || c.hopeless; got != want {
					t.Errorf("patient afterwards: %v", got)
				}
				if long := c.limit > c.class.Wait(20*ms); p.patient != long {
					t.Errorf("a patient read: %v", p.patient)
				}
			})
		})
	}
}

// A replica that has the position and lacks only a proof of what the session saw
// is not late.
func TestPlanNeedsNoTimeForProofs(t *testing.T) {
	t.Parallel()
	table := healthy(3)
	table.Nodes[1].Delay, table.Nodes[2].Delay = int64(time.Hour), int64(time.Hour)
	facts := &late{still: hold(table), since: mono.Now()}
	best, eta := router(facts, 3).expected(table, &need{mark: tidegate.At(100)}, mono.Now())
	if best == freshness.NoNode || eta-facts.since > int64(time.Minute) {
		t.Errorf("node %d in %v", best, time.Duration(eta-facts.since))
	}
}
