package freshness

import (
	"slices"
	"testing"

	"github.com/tidegatedb/tidegate"
)

// claim is what a node said last; down when it does not answer any more.
type claim struct {
	role   tidegate.Role
	system uint64
	line   uint64
	id     tidegate.Incarnation // its place in the list if zero
	down   bool
}

func primary(line uint64) claim { return claim{role: tidegate.RolePrimary, system: 1, line: line} }
func replica(line uint64) claim { return claim{role: tidegate.RoleReplica, system: 1, line: line} }
func silent() claim             { return claim{down: true} }

func (c claim) of(system uint64) claim           { c.system = system; return c }
func (c claim) as(id tidegate.Incarnation) claim { c.id = id; return c }
func (c claim) gone() claim                      { c.down = true; return c }

// observe puts claims into a table in the given order and settles it.
func observe(t *Table, h *histories, claims []claim, order []int) {
	t.Nodes = make([]Node, len(claims))
	for at, i := range order {
		c, n := claims[i], &t.Nodes[at]
		if c.down {
			n.Err = errDown
		}
		if c.role == tidegate.RoleUnknown {
			continue
		}
		id := c.id
		if id == 0 {
			id = tidegate.Incarnation(i + 1)
		}
		n.Obs = &Observation{Role: c.role, Incarnation: id, Epoch: tidegate.Epoch{System: c.system, Line: c.line}}
		n.Incarnation = id
	}
	t.settle(h)
}

// permutations calls f with each order of n things.
func permutations(n int, f func(order []int)) {
	var next func(order []int)
	next = func(order []int) {
		if len(order) == n {
			f(order)
			return
		}
		for i := range n {
			if !slices.Contains(order, i) {
				next(append(slices.Clone(order), i))
			}
		}
	}
	next(nil)
}

func TestRoles(t *testing.T) {
	t.Parallel()
	const none = NoNode
	for _, c := range []struct {
		name     string
		claims   []claim
		primary  int
		conflict bool
		line     uint64 // of the table's epoch
		usable   []int
	}{
		{"nothing answered", []claim{silent(), silent()}, none, false, 0, nil},
		{"a primary and its replicas", []claim{primary(1), replica(1), replica(1)}, 0, false, 1, []int{1, 2}},
		{"a replica that does not answer any more", []claim{primary(1), replica(1).gone(), replica(1)}, 0, false, 1, []int{2}},
		{"replicas cannot tell their line", []claim{primary(1), replica(0), replica(0)}, 0, false, 1, []int{1, 2}},
		{"one can tell, and says another line", []claim{primary(2), replica(0), replica(1)}, 0, false, 2, nil},
		{"only replicas, agreeing", []claim{replica(1), replica(1), replica(0)}, none, false, 1, []int{0, 1, 2}},
		{"only replicas that cannot tell", []claim{replica(0), replica(0)}, none, false, 0, nil},
		{"two primaries of one line", []claim{primary(1), primary(1), replica(1)}, none, true, 1, nil},
		{"the higher line wins", []claim{primary(1), primary(2), replica(2), replica(1)}, 1, false, 2, []int{2}},
		{"two lower ones do not matter", []claim{primary(1), primary(1), primary(2), replica(2)}, 2, false, 2, []int{3}},
		{"two of the higher line", []claim{primary(2), primary(1), primary(2), replica(2)}, none, true, 2, nil},
		{"left behind by a replica", []claim{primary(1), replica(2)}, none, false, 0, nil},
		{"the former primary is unreachable", []claim{primary(1).gone(), primary(2), replica(2)}, 1, false, 2, []int{2}},
		{"unreachable, of the same line", []claim{primary(1).gone(), primary(1), replica(1)}, 1, false, 1, []int{2}},
		{"only an unreachable primary", []claim{primary(1).gone(), replica(1)}, 0, false, 1, []int{1}},
		{"a lower primary while the higher one is unreachable", []claim{primary(1), primary(2).gone(), replica(1)}, none, false, 0, nil},
		{"one server under two names", []claim{primary(1).as(9), primary(1).as(9), replica(1)}, 0, false, 1, []int{2}},
		{"a primary of another system", []claim{primary(1), primary(5).of(2), replica(1)}, none, true, 0, nil},
		{"unreachable, of another system", []claim{primary(1), primary(5).of(2).gone(), replica(1)}, 0, false, 1, []int{2}},
		{"a replica of another system", []claim{primary(1), replica(5).of(2), replica(1)}, 0, false, 1, []int{2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			permutations(len(c.claims), func(order []int) {
				table := &Table{}
				observe(table, &histories{}, c.claims, order)
				want := NoNode
				if c.primary != none {
					want = slices.Index(order, c.primary)
					if i := c.primary + 1; c.claims[c.primary].id != 0 { // either name will do
						want = min(want, slices.Index(order, i))
					}
				}
				if table.Primary != want || table.Conflict != c.conflict {
					t.Errorf("order %v: primary %d, conflict %v; want %d, %v", order, table.Primary, table.Conflict, want, c.conflict)
				}
				// While nobody is the primary the table keeps the history that it has:
				// none here, or what replicas agree on.
				if c.line != 0 && !c.conflict && table.Epoch != (tidegate.Epoch{System: 1, Line: c.line}) {
					t.Errorf("order %v: epoch %+v, want line %d", order, table.Epoch, c.line)
				}
				for at, i := range order {
					if got, want := table.Nodes[at].Usable, slices.Contains(c.usable, i); got != want {
						t.Errorf("order %v: %+v usable %v, want %v", order, c.claims[i], got, want)
					}
				}
			})
		})
	}
}

var asGiven = []int{0, 1, 2}

func TestReplicaThatCannotTellItsLine(t *testing.T) {
	t.Parallel()
	table, h := &Table{}, &histories{}
	observe(table, h, []claim{primary(1), replica(0), replica(0)}, asGiven)
	if !table.Nodes[1].Usable || table.Nodes[1].Epoch != first {
		t.Fatalf("with one history in sight: %+v", table.Nodes[1])
	}
	observe(table, h, []claim{primary(1).gone(), primary(2), replica(0)}, asGiven)
	if table.Nodes[2].Usable || table.Nodes[2].Epoch.Known() {
		t.Errorf("which of two histories it follows cannot be known: %+v", table.Nodes[2])
	}
	observe(table, h, []claim{replica(0), primary(2), replica(0)}, asGiven)
	if table.Nodes[0].Usable || table.Nodes[2].Usable {
		t.Error("trusted again, though there was a choice once")
	}
	observe(table, h, []claim{replica(2), primary(2), replica(0)}, asGiven)
	if !table.Nodes[0].Usable {
		t.Error("one that can tell is not used")
	}
}

func TestReplicaOfAnotherSystemIsNotTakenForOurs(t *testing.T) {
	t.Parallel()
	table := &Table{}
	observe(table, &histories{}, []claim{primary(1), replica(0).of(2), replica(0)}, asGiven)
	if n := table.Nodes[1]; n.Usable || n.Epoch == first {
		t.Errorf("%+v", n)
	}
}

func TestEpochKeepsWhatWasKnown(t *testing.T) {
	t.Parallel()
	table, h := &Table{}, &histories{}
	observe(table, h, []claim{primary(1), replica(1), replica(1)}, asGiven)
	table.Shown = tidegate.At(50)
	for _, c := range []struct {
		name   string
		claims []claim
		epoch  tidegate.Epoch
		shown  tidegate.Position
	}{
		{"the primary is unreachable", []claim{primary(1).gone(), replica(1), replica(1)}, first, tidegate.At(50)},
		{"two claim to be it", []claim{primary(1), primary(1), replica(1)}, first, tidegate.At(50)},
		{"left behind", []claim{primary(1), replica(2), replica(1)}, first, tidegate.At(50)},
		{"a new life of the primary", []claim{primary(1).as(7), replica(1), replica(1)}, first, tidegate.At(50)},
		{"promotion", []claim{primary(1).gone(), primary(2), replica(1)}, second, tidegate.Position{}},
		{"and nobody there any more", []claim{primary(1).gone(), primary(2).gone(), replica(1)}, second, tidegate.Position{}},
	} {
		observe(table, h, c.claims, asGiven)
		if table.Epoch != c.epoch || table.Shown != c.shown {
			t.Errorf("%s: epoch %+v, shown %v; want %+v, %v", c.name, table.Epoch, table.Shown, c.epoch, c.shown)
		}
	}
}

func TestTableFindsIncarnations(t *testing.T) {
	t.Parallel()
	table := &Table{}
	observe(table, &histories{}, []claim{primary(1), silent(), replica(1).gone()}, asGiven)
	for id, want := range map[tidegate.Incarnation]int{1: 0, 3: 2, 2: NoNode, 0: NoNode} {
		if got := table.Incarnation(id); got != want {
			t.Errorf("incarnation %d is at %d, want %d", id, got, want)
		}
	}
	if table.PrimaryObs() != table.Nodes[0].Obs {
		t.Error("no look at the primary")
	}
	table.Nodes[0].Err = errDown
	if table.PrimaryObs() != nil {
		t.Error("a primary that does not answer has a look that counts")
	}
	table.Primary = NoNode
	if table.PrimaryObs() != nil {
		t.Error("no primary has a look that counts")
	}
}
