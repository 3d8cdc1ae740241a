package tidegate_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidegatedb/tidegate"
)

// Random marks and tokens for properties. The seed is fixed: a failure comes
// again.

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x7469646567617465)) }

// number prefers the edges of encodings: small, around powers of 2^7, huge.
func number(r *rand.Rand) uint64 {
	switch r.IntN(4) {
	case 0:
		return r.Uint64N(4)
	case 1:
		return 1<<(7*r.UintN(10)) - r.Uint64N(2)
	case 2:
		return math.MaxUint64 - r.Uint64N(2)
	default:
		return r.Uint64()
	}
}

func position(r *rand.Rand) tidegate.Position {
	switch r.IntN(4) {
	case 0:
		return tidegate.Position{}
	case 1:
		return tidegate.Beyond(number(r))
	default:
		return tidegate.At(number(r))
	}
}

// few returns up to most distinct numbers from a small range, so that lists of
// different marks overlap.
func few[T ~uint64](r *rand.Rand, most int) []T {
	var list []T
	for range r.IntN(most + 1) {
		if v := T(r.Uint64N(12)); !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

func randomMark(r *rand.Rand, cluster string, epoch tidegate.Epoch) tidegate.Mark {
	m := tidegate.Mark{
		Cluster:  cluster,
		Epoch:    epoch,
		Position: position(r),
		Shown:    position(r),
		Seen:     few[tidegate.Incarnation](r, tidegate.MaxSeen),
		Pending:  few[uint64](r, tidegate.MaxPending),
		CatchUp:  r.IntN(2) == 0,
		Patient:  r.IntN(2) == 0,
	}
	if m.CatchUp {
		m.Primary = tidegate.Incarnation(r.Uint64N(4))
	}
	return m
}

// randomToken has up to most marks of a few clusters and epochs; marks of the same
// ones are joined.
func randomToken(r *rand.Rand, most int) tidegate.Token {
	var marks []tidegate.Mark
	for range r.IntN(most + 1) {
		name := strings.Repeat(string(rune('a'+r.IntN(3))), 1+r.IntN(2)*(tidegate.MaxClusterName-1))
		epoch := tidegate.Epoch{System: r.Uint64N(2) * math.MaxUint64, Line: []uint64{0, 1, 300}[r.IntN(3)]}
		marks = append(marks, randomMark(r, name, epoch))
	}
	return tidegate.NewToken(marks...)
}

// sorted returns the marks in an order that says nothing, for comparisons.
func sorted(marks []tidegate.Mark) []tidegate.Mark {
	out := tidegate.NewToken(marks...).Marks()
	slices.SortFunc(out, func(a, b tidegate.Mark) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Epoch.System, b.Epoch.System), cmp.Compare(a.Epoch.Line, b.Epoch.Line))
	})
	for i := range out {
		slices.Sort(out[i].Seen)
		slices.Sort(out[i].Pending)
	}
	return out
}

func sameMarks(t *testing.T, what string, got, want []tidegate.Mark) {
	t.Helper()
	if got, want := sorted(got), sorted(want); !reflect.DeepEqual(got, want) && len(got)+len(want) > 0 {
		t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}
