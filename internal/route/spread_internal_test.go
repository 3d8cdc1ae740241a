package route

import (
	"math"
	"slices"
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
)

// loaded returns a router over a healthy cluster whose nodes have so many reads in
// flight; node 0 is the primary.
func loaded(all []Node, zone string, flying ...int64) *Router {
	r := New(Config{Cluster: "main", Nodes: all, Zone: zone}, hold(healthy(len(all))))
	for i, f := range flying {
		r.slots[i].flying.Store(f)
	}
	return r
}

// picks counts what pick returns over many draws.
func picks(draws, nodes int, pick func() int) []int {
	counts := make([]int, nodes)
	for range draws {
		counts[pick()]++
	}
	return counts
}

// evenly checks that counts are near their expected shares: with this many
// draws one beyond five standard deviations is no accident.
func evenly(t *testing.T, what string, counts []int, shares ...float64) {
	t.Helper()
	draws, sum := 0, 0.
	for i, c := range counts {
		draws += c
		sum += shares[i]
	}
	for i, c := range counts {
		p := shares[i] / sum
		if want := float64(draws) * p; math.Abs(float64(c)-want) > 5*math.Sqrt(want*(1-p))+1e-9 {
			t.Errorf("%s: node %d got %d of %d, want about %.0f", what, i, c, draws, want)
		}
	}
}

func TestEligible(t *testing.T) {
	t.Parallel()
	table := healthy(4)
	table.Nodes[1].Applied = tidegate.At(50)
	table.Nodes[2].Usable = false
	table.Nodes[3].Current = 0
	r := router(hold(table), 4)
	for _, c := range []struct {
		name string
		n    need
		want []int
	}{
		{"anything", need{}, []int{1, 3}},
		{"a mark", need{mark: tidegate.At(51)}, []int{3}},
		{"a mark that one has just reached", need{mark: tidegate.At(50)}, []int{1, 3}},
		{"beyond a mark that one has just reached", need{mark: tidegate.Beyond(50)}, []int{3}},
		{"a mark that nobody has", need{mark: tidegate.At(101)}, nil},
		{"not one of them", need{exclude: 1 << 3}, []int{1}},
		{"any age", need{relaxed: true, oldest: math.MinInt64, mark: tidegate.At(999)}, []int{1, 3}},
		{"an age that cannot be told for one", need{relaxed: true, oldest: 100}, []int{1}},
		{"an age that is too old for one", need{relaxed: true, oldest: 101}, nil},
		{"an age before the process began", need{relaxed: true, oldest: -5}, []int{1}},
	} {
		var got []int
		for i := range table.Nodes {
			if r.eligible(table, i, &c.n) {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: eligible are %v, want %v", c.name, got, c.want)
		}
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	weighed := func(w ...int) []Node {
		all := nodes(len(w))
		for i := range w {
			all[i].Weight = w[i]
		}
		return all
	}
	zoned := func(zones ...string) []Node {
		all := nodes(len(zones))
		for i := range zones {
			all[i].Zone = zones[i]
		}
		return all
	}
	for _, c := range []struct {
		name   string
		nodes  []Node
		zone   string
		flying []int64
		shares []float64
	}{
		{"idle nodes share evenly", nodes(5), "", nil, []float64{0, 1, 1, 1, 1}},
		{"the least loaded", nodes(4), "", []int64{0, 3, 1, 2}, []float64{0, 0, 1, 0}},
		{"the least loaded share", nodes(4), "", []int64{0, 3, 1, 1}, []float64{0, 0, 1, 1}},
		{"idle nodes share by weight", weighed(1, 1, 2, 5), "", nil, []float64{0, 1, 2, 5}},
		{"load counts relative to weight", weighed(1, 1, 3), "", []int64{0, 2, 5}, []float64{0, 0, 1}},
		{"as loaded, relative to weight", weighed(1, 1, 3), "", []int64{0, 2, 6}, []float64{0, 1, 3}},
		{"more loaded, relative to weight", weighed(1, 1, 3), "", []int64{0, 2, 7}, []float64{0, 1, 0}},
		{"the own zone", zoned("", "a", "b", "a"), "a", nil, []float64{0, 1, 0, 1}},
		{"the own zone while it is a little loaded", zoned("", "a", "b"), "a", []int64{0, 8, 0}, []float64{0, 1, 0}},
		{"another zone when it is loaded clearly more", zoned("", "a", "b"), "a", []int64{0, 9, 0}, []float64{0, 0, 1}},
		{"another zone when the own has none", zoned("", "b", "c", "b"), "a", nil, []float64{0, 1, 1, 1}},
		{"no zone prefers none", zoned("", "a", "b", ""), "", nil, []float64{0, 1, 1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := loaded(c.nodes, c.zone, c.flying...)
			table := r.facts.Table()
			counts := picks(20000, len(c.nodes), func() int { return r.spread(table, &need{}) })
			evenly(t, c.name, counts, c.shares...)
		})
	}
	r := loaded(nodes(3), "")
	if got := r.spread(r.facts.Table(), &need{mark: tidegate.At(101)}); got != freshness.NoNode {
		t.Errorf("picks %d though nobody qualifies", got)
	}
}

func TestRendezvous(t *testing.T) {
	t.Parallel()
	r := loaded(nodes(5), "")
	table := r.facts.Table()
	// Weights hold over sessions.
	all := nodes(4)
	all[1].Weight, all[2].Weight, all[3].Weight = 1, 2, 5
	weighed := loaded(all, "")
	counts := make([]int, 4)
	for nonce := range uint64(20000) {
		counts[weighed.rendezvous(weighed.facts.Table(), &need{}, mix(nonce+1))]++
	}
	evenly(t, "by weight", counts, 0, 1, 2, 5)

	// The order of the nodes does not matter, their names do.
	turned := nodes(5)
	slices.Reverse(turned[1:])
	other := loaded(turned, "")
	counts = make([]int, 5)
	for n := range uint64(2000) {
		nonce := mix(n + 1)
		i := r.rendezvous(table, &need{}, nonce)
		counts[i]++
		for range 3 {
			if again := r.rendezvous(table, &need{}, nonce); again != i {
				t.Fatalf("nonce %d goes to %d, then to %d", nonce, i, again)
			}
		}
		if j := other.rendezvous(table, &need{}, nonce); turned[j].Name != r.slots[i].node.Load().Name {
			t.Fatalf("nonce %d goes to %s here and to %s there", nonce, r.slots[i].node.Load().Name, turned[j].Name)
		}
		// Without its node a session goes elsewhere, all others stay.
		left := r.rendezvous(table, &need{exclude: 1 << 3}, nonce)
		if i == 3 && left == 3 || i != 3 && left != i {
			t.Fatalf("nonce %d goes to %d, without node 3 to %d", nonce, i, left)
		}
		// Under load it gives way, not before.
		r.slots[i].flying.Store(littleLoaded)
		little := r.rendezvous(table, &need{}, nonce)
		r.slots[i].flying.Store(littleLoaded + 1)
		much := r.rendezvous(table, &need{}, nonce)
		r.slots[i].flying.Store(0)
		if little != i || much == i {
			t.Fatalf("nonce %d goes to %d, with %d reads there to %d, with one more to %d", nonce, i, littleLoaded, little, much)
		}
	}
	evenly(t, "over sessions", counts, 0, 1, 1, 1, 1)
	evenly(t, "without a nonce", picks(20000, 5, func() int { return r.rendezvous(table, &need{}, 0) }), 0, 1, 1, 1, 1)
	if got := r.rendezvous(table, &need{mark: tidegate.At(101)}, 7); got != freshness.NoNode {
		t.Errorf("picks %d though nobody qualifies", got)
	}

	zoned := nodes(4)
	zoned[1].Zone, zoned[2].Zone, zoned[3].Zone = "b", "a", "b"
	near := loaded(zoned, "a")
	nonce := uint64(0)
	evenly(t, "in the own zone", picks(1000, 4, func() int {
		nonce++
		return near.rendezvous(near.facts.Table(), &need{}, mix(nonce))
	}), 0, 0, 1, 0)
}

// Ten open result sets on A: the next read goes to B.
func TestAffinityGivesWayToLoad(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		flying []int64
		weight int // of node 1
		behind bool
		want   int
		why    tidegate.Reason
	}{
		{"nothing in flight", []int64{0, 0, 0}, 1, false, 1, tidegate.ReasonStayed},
		{"a little loaded", []int64{0, 4, 0}, 1, false, 1, tidegate.ReasonStayed},
		{"both loaded", []int64{0, 14, 10}, 1, false, 1, tidegate.ReasonStayed},
		{"ten reads here, none there", []int64{0, 10, 0}, 1, false, 2, tidegate.ReasonCovered},
		{"clearly more than there", []int64{0, 15, 10}, 1, false, 2, tidegate.ReasonCovered},
		{"as much as its weight allows", []int64{0, 34, 10}, 3, false, 1, tidegate.ReasonStayed},
		{"more than its weight allows", []int64{0, 35, 10}, 3, false, 2, tidegate.ReasonCovered},
		{"the other one is behind", []int64{0, 10, 0}, 1, true, 1, tidegate.ReasonStayed},
	} {
		all := nodes(3)
		all[1].Weight = c.weight
		r := loaded(all, "", c.flying...)
		table := r.facts.Table()
		if c.behind {
			table.Nodes[2].Applied = tidegate.At(70)
		}
		l := ledger.New("main", 7, nil)
		l.Reached(epoch, tidegate.At(80))
		tk := &Ticket{Ledger: l}
		l.Lock()
		l.Dispatch(table, 1, table.Nodes[1].Incarnation)
		l.Unlock()
		l.Done(table.Nodes[1].Incarnation, 50)
		decide(r, tk, table, 0)
		if tk.Node != c.want || tk.reason != c.why {
			t.Errorf("%s: goes to %d (%v), want %d (%v)", c.name, tk.Node, tk.reason, c.want, c.why)
		}
	}
}

// A crowded replica answers sooner than a wait for what leaving it needs.
func TestCrowdedReplicaIsLeftOnlyAtOnce(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(table *freshness.Table){
		"it is not bounded":       func(table *freshness.Table) { table.Nodes[0].Obs.Sent, table.Nodes[1].Obs.Sent = 10, 10 },
		"nobody has what it has":  func(table *freshness.Table) { table.Nodes[1].Obs.Bound = tidegate.At(101) },
		"it may show more by now": func(table *freshness.Table) { table.Nodes[1].Obs.Bound = tidegate.Beyond(100) },
	} {
		r := loaded(nodes(3), "", 0, 10, 0)
		table := r.facts.Table()
		table.Nodes[0].Obs.Bound = tidegate.At(120) // the primary knows no better
		change(table)
		tk := markedTicket()
		l := tk.Ledger
		l.Lock()
		l.Dispatch(table, 1, table.Nodes[1].Incarnation)
		l.Unlock()
		l.Done(table.Nodes[1].Incarnation, 50)
		decide(r, tk, table, 0)
		if tk.Node != 1 || tk.reason != tidegate.ReasonStayed {
			t.Errorf("%s: goes to %d (%v)", name, tk.Node, tk.reason)
		}
		if len(l.Marks()[0].Seen) != 1 {
			t.Errorf("%s: the session does not know where it reads: %+v", name, l.Marks())
		}
	}
}

// What is left open of several may be where the session can stay.
func TestStaysAtTheOneThatIsLeft(t *testing.T) {
	t.Parallel()
	r := loaded(nodes(4), "")
	table := r.facts.Table()
	tk := markedTicket()
	l := tk.Ledger
	for node, end := range map[int]int64{1: 150, 2: 50} { // the looks were sent at 100
		l.Lock()
		l.Dispatch(table, node, table.Nodes[node].Incarnation)
		l.Unlock()
		l.Done(table.Nodes[node].Incarnation, end)
	}
	table.Primary = freshness.NoNode
	decide(r, tk, table, 0)
	if tk.Node != 1 || tk.reason != tidegate.ReasonStayed {
		t.Errorf("goes to %d (%v), want the one that cannot be left yet", tk.Node, tk.reason)
	}
}

// Weights can be lowered between adding them up and drawing by them.
func TestDrawWhileWeightsShrink(t *testing.T) {
	t.Parallel()
	r := New(Config{Cluster: "main", Nodes: []Node{{Name: "a", Weight: 1}, {Name: "b", Weight: 1}, {Name: "c", Weight: 1}}}, nil)
	for range 1000 {
		s := ties{nodes: 0b101, total: 2000}
		if i := s.draw(r); i != 0 && i != 2 {
			t.Fatalf("drew %d of the nodes 0 and 2", i)
		}
	}
}
