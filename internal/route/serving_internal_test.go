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

func serving(n int, o ...tidegate.CausalOption) tidegate.Class {
	return tidegate.NewCausal("serving", "test", append(o, tidegate.MinServing(n))...)
}

// lagging is a router whose nodes are so far behind; more than 100 is out, and negative is
// failing.
func lagging(t *testing.T, behind ...int) (*Router, *freshness.Table, int64) {
	t.Helper()
	table, now := healthy(1+len(behind)), mono.Now()
	r := router(hold(table), 1+len(behind))
	r.cfg.LongestLag, r.cfg.MostLag = time.Minute, 100
	table.Nodes[0].Applied = tidegate.At(10000)
	for i, by := range behind {
		x := &table.Nodes[1+i]
		if aged(0)(x, now); by < 0 {
			failed(time.Minute)(x, now)
			by = 0
		}
		x.Applied = tidegate.At(10000 - uint64(by))
	}
	r.Judge(table, now)
	return r, table, now
}

func TestMinServing(t *testing.T) {
	t.Parallel()
	within := tidegate.Relaxed("r", "test", tidegate.Within(time.Second), tidegate.MinServing(1))
	for name, c := range map[string]struct {
		class  tidegate.Class
		behind []int
		uses   uint64
	}{
		"none is out":                     {serving(2), []int{0, 1, 2}, 0b1110},
		"without it":                      {tidegate.Causal, []int{400, 200, 300}, 0},
		"none":                            {serving(0), []int{400, 200, 300}, 0},
		"one":                             {serving(1), []int{800, 200, 700}, 0b0100},
		"two":                             {serving(2), []int{800, 200, 3000}, 0b0110},
		"more than there are":             {serving(9), []int{400, 200, 300}, 0b1110},
		"relaxed":                         {within, []int{800, 200, 700}, 0b0100},
		"one is in, and enough":           {serving(1), []int{400, 0, 300}, 0b0100},
		"one is in, and not enough":       {serving(2), []int{1000, 0, 300}, 0b1100},
		"one is failing":                  {serving(3), []int{-1, 400, 300}, 0b1100},
		"all are failing":                 {serving(3), []int{-1, -1, -1}, 0},
		"nearly as far behind stays last": {serving(1), []int{399, 200, 300}, 0b0010},
	} {
		r, _, _ := lagging(t, c.behind...)
		if uses := ^r.avoid(c.class) & 0b1110; uses != c.uses {
			t.Errorf("%s: uses %04b, want %04b", name, uses, c.uses)
		}
		// The others leave out what they left out.
		if out := r.avoid(tidegate.Causal); out != r.outs.Load() {
			t.Errorf("%s: %04b are left out", name, out)
		}
	}
}

// Only nodes that the class may use count, and are kept.
func TestMinServingAndTags(t *testing.T) {
	t.Parallel()
	r, _, _ := lagging(t, 0, 300, 900, 200)
	r.Set(2, Node{Name: "n2", Weight: 1, Tags: []string{"a"}})
	r.Set(3, Node{Name: "n3", Weight: 1, Tags: []string{"a"}})
	r.Set(4, Node{Name: "n4", Weight: 1, Tags: []string{"b"}, Dedicated: true})
	for _, c := range []struct {
		class tidegate.Class
		uses  uint64
	}{
		{serving(1), 0b00010},
		{serving(2), 0b00110},
		{serving(1, tidegate.Require("a")), 0b00100},
		{serving(1, tidegate.Require("b")), 0b10000},
		{serving(9), 0b01110},
	} {
		if uses := ^r.avoid(c.class) & 0b11110; uses != c.uses {
			t.Errorf("%v: uses %05b, want %05b", c.class, uses, c.uses)
		}
	}
}

// One that has just failed a probe is none to read from: another one is kept for it.
func TestMinServingCountsWhatAnswers(t *testing.T) {
	t.Parallel()
	r, table, now := lagging(t, 0, 300, 900)
	is := func(want uint64) {
		t.Helper()
		if uses := ^r.avoid(serving(1)) & 0b1110; uses != want {
			t.Errorf("uses %04b, want %04b", uses, want)
		}
	}
	is(0b0010)
	failed(0)(&table.Nodes[1], now)
	r.Judge(table, now)
	is(0b0110) // the one is not out
	failed(0)(&table.Nodes[2], now)
	r.Judge(table, now)
	is(0b1010)
	failed(time.Second)(&table.Nodes[3], now)
	r.Judge(table, now)
	is(0b0010)
}

// Which ones are kept changes only when another one is clearly better: where they change
// sessions have to leave.
func TestKeptNodesStay(t *testing.T) {
	t.Parallel()
	r, table, now := lagging(t, 400, 900, 5000)
	for i, m := range []struct {
		behind [3]uint64
		want   []int
	}{
		{[3]uint64{400, 900, 5000}, []int{1, 2, 3}},
		{[3]uint64{900, 500, 700}, []int{1, 2, 3}},
		{[3]uint64{900, 400, 700}, []int{2, 1, 3}},
		{[3]uint64{900, 1500, 700}, []int{2, 1, 3}},
		{[3]uint64{900, 3500, 400}, []int{3, 1, 2}},
		{[3]uint64{900, 3500, 0}, []int{3, 1, 2}},
	} {
		for k, by := range m.behind {
			table.Nodes[1+k].Applied = tidegate.At(10000 - by)
		}
		r.Judge(table, now)
		if got := *r.ranked.Load(); !slices.Equal(got, m.want) {
			t.Errorf("moment %d: %v, want %v", i, got, m.want)
		}
	}
	now += int64(time.Second)
	for k := range 3 {
		aged(0)(&table.Nodes[1+k], now)
		table.Nodes[1+k].Applied = tidegate.At(10000)
	}
	r.Judge(table, now)
	now += int64(time.Second)
	if r.Judge(table, now); r.ranked.Load() != nil {
		t.Errorf("%v are in order although none is out", *r.ranked.Load())
	}
}

// What a read asks for stays what it is on a node that is kept in use.
func TestKeptNodesHaveToProve(t *testing.T) {
	t.Parallel()
	within := func(d time.Duration) tidegate.Class {
		return tidegate.Relaxed("r", "test", tidegate.Within(d), tidegate.MinServing(1), tidegate.Wait(0))
	}
	kept := serving(1, tidegate.Wait(0))
	inBubble(t, 3, func(c *cluster) {
		c.proven = tidegate.At(1000)
		c.router.cfg.MostLag = 50
		time.Sleep(10 * time.Second)
		c.apply(200, 0)
		c.look(1, 2)
		c.router.Judge(c.Table(), mono.Now())
		on := func(class tidegate.Class, l *ledger.Ledger, node int, reason tidegate.Reason) {
			c.t.Helper()
			tk := &Ticket{Class: class, Ledger: l}
			if err := c.router.Begin(c.t.Context(), tk); err != nil {
				t.Fatal(err)
			}
			if tk.Node > 0 != (node > 0) || tk.reason != reason {
				t.Errorf("%v: node %d, %v, want %v", class, tk.Node, tk.reason, reason)
			}
			c.router.Done(tk, mono.Now())
		}
		on(tidegate.Causal, session(100), 0, tidegate.ReasonNoReplica)
		on(kept, session(100), 1, tidegate.ReasonCovered)
		on(kept, session(101), 0, tidegate.ReasonBehind)
		on(kept, ledger.New("main", 7, nil), 1, tidegate.ReasonCovered) // proven younger than LongestLag
		on(within(11*time.Second), nil, 1, tidegate.ReasonWithinBudget)
		on(within(9*time.Second), nil, 0, tidegate.ReasonBehind)
		time.Sleep(time.Minute)
		on(kept, ledger.New("main", 7, nil), 0, tidegate.ReasonBehind)
		on(kept, session(100), 1, tidegate.ReasonCovered)
	})
}
