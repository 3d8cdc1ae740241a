package tidegate_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/tidegatedb/tidegate"
)

func joined(marks ...tidegate.Mark) []tidegate.Mark { return tidegate.NewToken(marks...).Marks() }

func TestMarkMerge(t *testing.T) {
	t.Parallel()
	const a, b, c, d, e = 1, 2, 3, 4, 5
	type M = tidegate.Mark
	for _, x := range []struct {
		name       string
		m, n, want M
	}{
		{"nothing", M{}, M{}, M{}},
		{"the greater position wins", M{Position: tidegate.At(7)}, M{Position: tidegate.At(9)}, M{Position: tidegate.At(9)}},
		{"strict beats the same number", M{Position: tidegate.At(7)}, M{Position: tidegate.Beyond(7)}, M{Position: tidegate.Beyond(7)}},
		{"position and shown advance apart", M{Position: tidegate.At(9), Shown: tidegate.At(1)}, M{Position: tidegate.At(2), Shown: tidegate.Beyond(3)}, M{Position: tidegate.At(9), Shown: tidegate.Beyond(3)}},
		{"seen is a union", M{Seen: []tidegate.Incarnation{a, b}}, M{Seen: []tidegate.Incarnation{b, c}}, M{Seen: []tidegate.Incarnation{a, b, c}}},
		{"seen outgrows a token and stays whole", M{Seen: []tidegate.Incarnation{a, b, c, d}}, M{Seen: []tidegate.Incarnation{e}}, M{Seen: []tidegate.Incarnation{a, b, c, d, e}}},
		{"seen repeats nothing", M{Seen: []tidegate.Incarnation{a, a}}, M{Seen: []tidegate.Incarnation{b, b}}, M{Seen: []tidegate.Incarnation{a, b}}},
		{"pending is a union", M{Pending: []uint64{8, 9}, CatchUp: true}, M{Pending: []uint64{9, 7}, CatchUp: true}, M{Pending: []uint64{7, 8, 9}, CatchUp: true}},
		{"a catch-up stays", M{CatchUp: true, Primary: 5}, M{Position: tidegate.At(1)}, M{CatchUp: true, Primary: 5, Position: tidegate.At(1)}},
		{"the same birth", M{CatchUp: true, Primary: 5}, M{CatchUp: true, Primary: 5}, M{CatchUp: true, Primary: 5}},
		{"a known birth beats an unknown one", M{CatchUp: true}, M{CatchUp: true, Primary: 5}, M{CatchUp: true, Primary: 5}},
		{"two unknown births", M{CatchUp: true}, M{CatchUp: true}, M{CatchUp: true}},
		{"a primary without a catch-up is no birth", M{Primary: 4}, M{CatchUp: true, Primary: 5}, M{CatchUp: true, Primary: 5}},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			sameMarks(t, "m, n", joined(x.m, x.n), []tidegate.Mark{x.want})
			sameMarks(t, "n, m", joined(x.n, x.m), []tidegate.Mark{x.want})
		})
	}
}

// Two different lives of the primary: no look at either settles both, so the
// joint birth matches neither and stays so whatever joins it.
func TestMarkMergeOfDifferentBirths(t *testing.T) {
	t.Parallel()
	born := func(p tidegate.Incarnation) tidegate.Mark { return tidegate.Mark{CatchUp: true, Primary: p} }
	never := joined(born(5), born(6))[0].Primary
	if never == 0 || never == 5 || never == 6 {
		t.Fatalf("births 5 and 6 joined to %d, which a primary can match", never)
	}
	for _, more := range []tidegate.Mark{{}, born(0), born(5), born(6), born(7), born(never)} {
		for _, m := range [][]tidegate.Mark{joined(born(never), more), joined(more, born(never))} {
			if len(m) != 1 || !m[0].CatchUp || m[0].Primary != never {
				t.Errorf("a birth that matches nobody joined with %+v became %+v", more, m)
			}
		}
	}
}

func TestJoinBirthLaws(t *testing.T) {
	t.Parallel()
	join := tidegate.JoinBirth
	law(t, "a join of births", func(a, b, c uint8) bool {
		x, y, z := tidegate.Incarnation(a%4), tidegate.Incarnation(b%4), tidegate.Incarnation(c%4)
		return join(x, y) == join(y, x) && join(join(x, y), z) == join(x, join(y, z)) && join(x, x) == x && join(x, 0) == x
	})
}

func TestMarkEpochsAndClustersStaySideBySide(t *testing.T) {
	t.Parallel()
	marks := []tidegate.Mark{
		{Cluster: "main", Epoch: tidegate.Epoch{System: 1, Line: 1}, Position: tidegate.At(900)},
		{Cluster: "main", Epoch: tidegate.Epoch{System: 1, Line: 2}, Position: tidegate.At(5)},
		{Cluster: "main", Epoch: tidegate.Epoch{System: 2, Line: 1}, Seen: []tidegate.Incarnation{3}},
		{Cluster: "main", CatchUp: true},
		{Cluster: "other", Epoch: tidegate.Epoch{System: 1, Line: 1}, Position: tidegate.At(7)},
	}
	got := joined(marks...)
	if !reflect.DeepEqual(got, marks) {
		t.Errorf("got %+v\nwant %+v", got, marks)
	}
	got = joined(append(got, tidegate.Mark{Cluster: "main", Epoch: tidegate.Epoch{System: 1, Line: 2}, Position: tidegate.At(6)})...)
	marks[1].Position = tidegate.At(6)
	if !reflect.DeepEqual(got, marks) {
		t.Errorf("after one more of epoch 1/2: got %+v\nwant %+v", got, marks)
	}
}

func TestMarkMergeLaws(t *testing.T) {
	t.Parallel()
	r := seeded(1)
	for range 500 {
		a, b, c := randomToken(r, 5), randomToken(r, 5), randomToken(r, 5)
		sameMarks(t, "commutative", a.Merge(b).Marks(), b.Merge(a).Marks())
		sameMarks(t, "associative", a.Merge(b).Merge(c).Marks(), a.Merge(b.Merge(c)).Marks())
		sameMarks(t, "idempotent", a.Merge(a).Marks(), a.Marks())
		sameMarks(t, "zero is neutral", a.Merge(tidegate.Token{}).Marks(), a.Marks())
		ab := a.Merge(b)
		sameMarks(t, "an upper bound", ab.Merge(a).Marks(), ab.Marks())
		if t.Failed() {
			t.Fatalf("for\na %+v\nb %+v\nc %+v", a.Marks(), b.Marks(), c.Marks())
		}
	}
}

// Nothing that a caller holds is changed by a merge, nor changes one later.
func TestMarkMergeSharesNothing(t *testing.T) {
	t.Parallel()
	roomy := func(ids ...tidegate.Incarnation) []tidegate.Incarnation {
		return append(make([]tidegate.Incarnation, 0, 9), ids...)
	}
	m := tidegate.Mark{Seen: roomy(1, 2), CatchUp: true, Pending: append(make([]uint64, 0, 9), 1)}
	n := tidegate.Mark{Seen: roomy(3), CatchUp: true, Pending: append(make([]uint64, 0, 9), 2)}
	one, two := tidegate.NewToken(m), tidegate.NewToken(n)
	both := one.Merge(two)
	want := both.Marks()

	m.Seen[0], m.Pending[0], n.Seen[0], n.Pending[0] = 99, 99, 99, 99
	_ = append(m.Seen, 98) // into the spare room
	for _, marks := range [][]tidegate.Mark{one.Marks(), two.Marks(), both.Marks()} {
		marks[0].Seen[0], marks[0].Pending[0], marks[0].Cluster = 97, 97, "changed"
	}
	_ = one.Merge(tidegate.NewToken(tidegate.Mark{Seen: roomy(50)}))
	_ = both.Merge(tidegate.NewToken(tidegate.Mark{Seen: roomy(51)}))

	if got := both.Marks(); !reflect.DeepEqual(got, want) {
		t.Errorf("the merged token changed from %+v to %+v", want, got)
	}
	if got := one.Marks()[0]; !slices.Equal(got.Seen, []tidegate.Incarnation{1, 2}) || !slices.Equal(got.Pending, []uint64{1}) {
		t.Errorf("the first token changed to %+v", got)
	}
	if got := two.Marks()[0]; !slices.Equal(got.Seen, []tidegate.Incarnation{3}) {
		t.Errorf("the second token changed to %+v", got)
	}
}

func TestMarkClone(t *testing.T) {
	t.Parallel()
	m := tidegate.Mark{Cluster: "main", Seen: []tidegate.Incarnation{1}, Pending: []uint64{2}, CatchUp: true, Primary: 3}
	c := m.Clone()
	if !reflect.DeepEqual(c, m) {
		t.Fatalf("a clone of %+v is %+v", m, c)
	}
	c.Seen[0], c.Pending[0] = 9, 9
	if m.Seen[0] != 1 || m.Pending[0] != 2 {
		t.Errorf("a change of the clone changed the mark to %+v", m)
	}
}
