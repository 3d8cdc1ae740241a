package route

import (
	"slices"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

const (
	none    = tidegate.EjectionNone
	lag     = tidegate.EjectionLag
	failing = tidegate.EjectionFailing
)

// moment is what one node looks like at a time, and what becomes of it.
type moment struct {
	at   time.Duration
	set  func(x *freshness.Node, now int64)
	want tidegate.EjectionReason
}

// aged is a node whose state is proven to be so old.
func aged(d time.Duration) func(x *freshness.Node, now int64) {
	return func(x *freshness.Node, now int64) { x.Err, x.Usable, x.Current = nil, true, now-int64(d) }
}

// failed is a node that has not answered for so long.
func failed(d time.Duration) func(x *freshness.Node, now int64) {
	return func(x *freshness.Node, now int64) { x.Err, x.Usable, x.FailedSince = errDown, false, now-int64(d) }
}

func TestEjection(t *testing.T) {
	t.Parallel()
	unproven := func(x *freshness.Node, _ int64) { x.Err, x.Usable, x.Current = nil, true, 0 }
	foreign := func(x *freshness.Node, _ int64) { x.Err, x.Usable = nil, false }
	behind := func(by uint64) func(x *freshness.Node, now int64) {
		return func(x *freshness.Node, now int64) {
			aged(0)(x, now)
			x.Applied = tidegate.At(1000 - by)
		}
	}
	promoted := func(x *freshness.Node, _ int64) {
		o := *x.Obs
		o.Role, x.Err, x.Usable, x.Obs = tidegate.RolePrimary, nil, false, &o
	}
	for name, moments := range map[string][]moment{
		"a little lag": {{0, aged(59 * time.Second), none}, {time.Second, aged(time.Minute), none}},
		"too much lag, and back by half only": {
			{0, aged(61 * time.Second), lag}, {10 * time.Second, aged(40 * time.Second), lag}, {20 * time.Second, aged(30 * time.Second), lag},
			{21 * time.Second, aged(30 * time.Second), none},
		},
		"well for a moment only": {
			{0, aged(61 * time.Second), lag}, {time.Second, aged(0), lag}, {time.Second + 50*ms, aged(40 * time.Second), lag},
			{2 * time.Second, aged(0), lag}, {2*time.Second + 90*ms, aged(0), lag}, {2*time.Second + 310*ms, aged(0), none},
		},
		"too many bytes": {{0, behind(100), none}, {1, behind(101), lag}, {time.Second, behind(60), lag}, {2 * time.Second, behind(50), lag}, {3 * time.Second, behind(50), none}},
		"an age that nobody proves": {
			{0, unproven, none}, {59 * time.Second, unproven, none}, {61 * time.Second, unproven, lag}, {62 * time.Second, aged(0), lag}, {63 * time.Second, aged(0), none},
		},
		"failing": {
			{0, failed(900 * ms), none}, {100 * ms, failed(time.Second), failing}, {time.Second, aged(0), failing}, {1310 * ms, aged(0), none},
		},
		"failing again before it has returned": {
			{0, failed(time.Second), failing}, {time.Second, aged(0), failing}, {1100 * ms, failed(50 * ms), failing}, {1200 * ms, aged(0), failing}, {1290 * ms, aged(0), failing},
			{2 * time.Second, aged(0), none},
		},
		"from late to failing": {{0, aged(61 * time.Second), lag}, {time.Second, failed(time.Second), failing}},
		"of another history":   {{0, foreign, none}},
		"out, and of another history since": {
			{0, aged(61 * time.Second), lag}, {time.Second, foreign, lag}, {time.Minute, foreign, lag},
		},
		"out, and promoted": {{0, aged(61 * time.Second), lag}, {time.Second, promoted, lag}, {2 * time.Second, promoted, none}},
	} {
		table := healthy(3)
		r := router(hold(table), 3)
		r.cfg.LongestLag, r.cfg.MostLag = time.Minute, 100
		base := mono.Now()
		table.Nodes[0].Applied = tidegate.At(1000)
		for i := range table.Nodes {
			table.Nodes[i].Applied, table.Nodes[i].Current = tidegate.At(1000), base+int64(time.Hour)
		}
		since := time.Duration(0)
		for i, m := range moments {
			now := base + int64(m.at)
			was, _ := r.Ejected(1)
			m.set(&table.Nodes[1], now)
			changed := r.Judge(table, now)
			e, _ := r.Ejected(1)
			if e.Why != m.want {
				t.Fatalf("%s, moment %d: %v, want %v", name, i, e.Why, m.want)
			}
			if e.Why != was.Why {
				since = m.at
			}
			if (e.Why != was.Why) != slices.Contains(changed, 1) || slices.Contains(changed, 2) || e.Why != none && e.Since != base+int64(since) {
				t.Errorf("%s, moment %d: changed %v, since %v", name, i, changed, time.Duration(e.Since-base))
			}
			for class, out := range map[tidegate.Class]bool{tidegate.Causal: m.want != none, anyAge: m.want == failing} {
				if got := r.avoid(class); (got == 1<<1) != out || got&^(1<<1) != 0 {
					t.Errorf("%s, moment %d: a %v read avoids %b", name, i, class, got)
				}
			}
		}
	}
}

// Without a primary nobody can tell who is behind; reads that need nothing from it go on.
func TestNothingIsEjectedForLagWithoutAPrimary(t *testing.T) {
	t.Parallel()
	table := healthy(3)
	r := router(hold(table), 3)
	r.cfg.LongestLag = time.Minute
	now := mono.Now()
	table.Nodes[0].Err = errDown
	aged(2*time.Hour)(&table.Nodes[1], now)
	aged(2*time.Hour)(&table.Nodes[2], now)
	r.Judge(table, now)
	if got := r.avoid(tidegate.Causal); got != 0 {
		t.Errorf("%b are left out", got)
	}
}

// A node that returns has a small share at first, and all of it a second later.
func TestSlowStart(t *testing.T) {
	t.Parallel()
	table := healthy(3)
	r := router(hold(table), 3)
	now := mono.Now()
	at := func(d time.Duration, set func(*freshness.Node, int64)) {
		set(&table.Nodes[1], now+int64(d))
		aged(0)(&table.Nodes[2], now+int64(d))
		r.Judge(table, now+int64(d))
	}
	if _, share := r.Ejected(1); share != 1 {
		t.Errorf("before: %v", share)
	}
	at(0, failed(time.Second))
	at(time.Second, aged(0))
	at(2*time.Second, aged(0))
	last := 0.
	for d := time.Duration(0); d <= time.Second; d += 100 * ms {
		at(2*time.Second+d, aged(0))
		_, share := r.Ejected(1)
		if share < last || d == 0 && share > .1 || d == time.Second && share != 1 || d == 500*ms && (share < .4 || share > .6) {
			t.Errorf("after %v it has %v of its share", d, share)
		}
		last = share
	}
	at(2*time.Second, aged(0)) // and it is not new every time
	if _, share := r.Ejected(1); share != 1 {
		t.Errorf("later: %v", share)
	}
}

// Instances that have seen the same replica go out do not all return to it at once.
func TestReturnIsSpread(t *testing.T) {
	t.Parallel()
	const instances, step = 400, 5 * ms
	var first, last time.Duration = time.Hour, 0
	var halfway int
	for range instances {
		table := healthy(3)
		r := router(hold(table), 3)
		now := mono.Now()
		failed(time.Second)(&table.Nodes[1], now)
		r.Judge(table, now)
		for d := time.Duration(0); ; d += step {
			aged(0)(&table.Nodes[1], now+int64(d))
			aged(0)(&table.Nodes[2], now+int64(d))
			if r.Judge(table, now+int64(d)); r.outs.Load() == 0 {
				first, last = min(first, d), max(last, d)
				if d < time.Duration(returnAfter) {
					halfway++
				}
				break
			}
			if d > time.Minute {
				t.Fatal("it does not return")
			}
		}
	}
	if most := time.Duration(returnAfter); first < most/2 || first > most*6/10 || last > most*3/2+step || last < most*14/10 {
		t.Errorf("they return from %v to %v on, want from half to half as much again of %v", first, last, most)
	}
	if halfway < instances*4/10 || halfway > instances*6/10 {
		t.Errorf("%d of %d return in the first half", halfway, instances)
	}
}

// What is out gets no reads, also of sessions that read there, and is not waited for.
func TestReadsLeaveTheEjectedOut(t *testing.T) {
	t.Parallel()
	inBubble(t, 3, func(c *cluster) {
		c.proven = tidegate.At(200)
		l := ledger.New("main", 7, []tidegate.Mark{{Cluster: "main", Epoch: epoch, Seen: []tidegate.Incarnation{11}, Position: tidegate.At(50)}})
		c.look(0, 1, 2)
		table := *c.Table()
		table.Nodes = slices.Clone(table.Nodes)
		failed(time.Second)(&table.Nodes[1], mono.Now())
		c.router.Judge(&table, mono.Now())
		for range 20 {
			tk := &Ticket{Ledger: l}
			c.begin(c.t.Context(), tk, outcome{2, tidegate.ReasonCovered, false, 0})
			c.router.Undo(tk)
			tk = &Ticket{Class: anyAge}
			c.begin(c.t.Context(), tk, outcome{2, tidegate.ReasonWithinBudget, false, 0})
			c.router.Undo(tk)
		}
		failed(time.Second)(&table.Nodes[2], mono.Now())
		c.router.Judge(&table, mono.Now())
		tk := &Ticket{Ledger: l}
		c.begin(c.t.Context(), tk, outcome{0, tidegate.ReasonNoReplica, false, 0})
		c.router.Undo(tk)
		if _, v := c.router.Explain(l, tidegate.Causal); v[1].Eligible || v[1].Why != "is left out for 0s: it did not answer probes, and has not been well for long enough since" {
			t.Errorf("%+v", v[1])
		}
		c.router.Set(1, Node{Name: "new", Weight: 1, Of: "another"})
		c.begin(c.t.Context(), tk, outcome{1, tidegate.ReasonCovered, false, 0})
		c.router.Undo(tk)
	})
}

// A replica that failed while no primary answers comes back.
func TestFailingReturnsWithoutPrimary(t *testing.T) {
	t.Parallel()
	table := healthy(3)
	r := router(hold(table), 3)
	r.cfg.LongestLag = time.Hour
	now := mono.Now()
	table.Nodes[0].Err = errDown
	failed(time.Second)(&table.Nodes[1], now)
	r.Judge(table, now)
	for d := time.Second; d < time.Minute; d += time.Second {
		aged(2*time.Second)(&table.Nodes[1], now+int64(d))
		r.Judge(table, now+int64(d))
	}
	if e, _ := r.Ejected(1); e.Why != none {
		t.Errorf("a minute later: %v", e.Why)
	}
}

// A replica with a steady lag of 60 of 100 that did not answer for a second comes back:
// it never passed a bound.
func TestFailingReturnsWithSteadyLag(t *testing.T) {
	t.Parallel()
	table := healthy(3)
	r := router(hold(table), 3)
	r.cfg.LongestLag, r.cfg.MostLag = time.Hour, 100
	now := mono.Now()
	table.Nodes[0].Applied = tidegate.At(1000)
	for i := range table.Nodes {
		table.Nodes[i].Current = now
	}
	table.Nodes[2].Applied = tidegate.At(1000)
	set := func(d time.Duration, f func(*freshness.Node, int64)) {
		f(&table.Nodes[1], now+int64(d))
		table.Nodes[1].Applied = tidegate.At(940)
		r.Judge(table, now+int64(d))
	}
	set(0, aged(0))
	set(time.Second, failed(time.Second))
	for d := 2 * time.Second; d < time.Minute; d += time.Second {
		set(d, aged(0))
	}
	if e, _ := r.Ejected(1); e.Why != none {
		t.Errorf("a minute later: %v", e.Why)
	}
}
