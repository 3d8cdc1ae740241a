package tidegate_test

import (
	"math"
	"testing"
	"testing/quick"

	"github.com/tidegatedb/tidegate"
)

// near makes positions that often meet: the laws are about ties and neighbours.
func near(n uint8, strict bool) tidegate.Position {
	number := uint64(n % 8)
	if n >= 128 {
		number = math.MaxUint64 - number
	}
	if strict {
		return tidegate.Beyond(number)
	}
	return tidegate.At(number)
}

func law(t *testing.T, name string, holds any) {
	t.Helper()
	if err := quick.Check(holds, &quick.Config{MaxCount: 5000}); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func TestPositionJoinLaws(t *testing.T) {
	t.Parallel()
	law(t, "commutative", func(a, b uint8, s, u bool) bool {
		p, q := near(a, s), near(b, u)
		return p.Join(q) == q.Join(p)
	})
	law(t, "associative", func(a, b, c uint8, s, u, v bool) bool {
		p, q, r := near(a, s), near(b, u), near(c, v)
		return p.Join(q).Join(r) == p.Join(q.Join(r))
	})
	law(t, "idempotent, and zero is neutral", func(a uint8, s bool) bool {
		p := near(a, s)
		return p.Join(p) == p && p.Join(tidegate.Position{}) == p
	})
	law(t, "least upper bound: what covers the join covers both, and the other way round", func(a, b, c uint8, s, u bool) bool {
		p, q, node := near(a, s), near(b, u), near(c, false)
		return node.Covers(p.Join(q)) == (node.Covers(p) && node.Covers(q))
	})
}

func TestPositionMeetLaws(t *testing.T) {
	t.Parallel()
	law(t, "commutative", func(a, b uint8, s, u bool) bool {
		p, q := near(a, s), near(b, u)
		return p.Meet(q) == q.Meet(p)
	})
	law(t, "associative", func(a, b, c uint8, s, u, v bool) bool {
		p, q, r := near(a, s), near(b, u), near(c, v)
		return p.Meet(q).Meet(r) == p.Meet(q.Meet(r))
	})
	law(t, "idempotent", func(a uint8, s bool) bool {
		p := near(a, s)
		return p.Meet(p) == p
	})
	law(t, "absorbs the join", func(a, b uint8, s, u bool) bool {
		p, q := near(a, s), near(b, u)
		return p.Meet(p.Join(q)) == p && p.Join(p.Meet(q)) == p
	})
	law(t, "either one is enough: what covers the meet covers one of them", func(a, b, c uint8, s, u bool) bool {
		p, q, node := near(a, s), near(b, u), near(c, false)
		return node.Covers(p.Meet(q)) == (node.Covers(p) || node.Covers(q))
	})
}

func TestPositionCoversLaws(t *testing.T) {
	t.Parallel()
	law(t, "transitive", func(a, b, c uint8, s, u, v bool) bool {
		p, q, r := near(a, s), near(b, u), near(c, v)
		return !p.Covers(q) || !q.Covers(r) || p.Covers(r)
	})
	law(t, "a position covers itself exactly when it is not strict", func(a uint8, s bool) bool {
		p := near(a, s)
		return p.Covers(p) == !s
	})
	law(t, "two positions that are not strict are always ordered", func(a, b uint8) bool {
		p, q := near(a, false), near(b, false)
		return p.Covers(q) || q.Covers(p)
	})
	law(t, "everything covers zero", func(a uint8, s bool) bool {
		return near(a, s).Covers(tidegate.Position{})
	})
	law(t, "a node that goes on keeps covering", func(a, b, c uint8, s bool) bool {
		need, node, later := near(a, s), near(b, false), near(c, false)
		return !node.Covers(need) || node.Join(later).Covers(need)
	})
}

func TestPositionCovers(t *testing.T) {
	t.Parallel()
	at, beyond := tidegate.At, tidegate.Beyond
	const top = math.MaxUint64
	for _, c := range []struct {
		node, need tidegate.Position
		want       bool
	}{
		{at(0), tidegate.Position{}, true},
		{at(6), at(7), false},
		{at(7), at(7), true},
		{at(8), at(7), true},
		{at(0), beyond(0), false},
		{at(1), beyond(0), true},
		{at(7), beyond(7), false}, // the unknown point may lie after 7
		{at(8), beyond(7), true},
		{beyond(7), at(7), true},
		{beyond(7), at(8), false}, // where it stands is not known
		{beyond(7), beyond(7), false},
		{at(top), at(top), true},
		{at(top), beyond(top), false}, // nothing wraps around
		{at(0), beyond(top), false},
		// A log sequence number of PostgreSQL is compared as one number:
		// F/FFFFFFFF is before 10/0, whatever the text says.
		{at(0xF_FFFF_FFFF), at(0x10_0000_0000), false},
		{at(0x10_0000_0000), beyond(0xF_FFFF_FFFF), true},
	} {
		if got := c.node.Covers(c.need); got != c.want {
			t.Errorf("%v covers %v: %v, want %v", c.node, c.need, got, c.want)
		}
	}
}

func TestPositionParts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p      tidegate.Position
		number uint64
		strict bool
		zero   bool
		text   string
	}{
		{tidegate.Position{}, 0, false, true, "0"},
		{tidegate.At(0), 0, false, true, "0"},
		{tidegate.At(42), 42, false, false, "42"},
		{tidegate.Beyond(0), 0, true, false, ">0"},
		{tidegate.Beyond(42), 42, true, false, ">42"},
		{tidegate.At(math.MaxUint64), math.MaxUint64, false, false, "18446744073709551615"},
	} {
		if c.p.Number() != c.number || c.p.Strict() != c.strict || c.p.IsZero() != c.zero || c.p.String() != c.text {
			t.Errorf("got %d, strict %v, zero %v, %q, want %+v", c.p.Number(), c.p.Strict(), c.p.IsZero(), c.p, c)
		}
	}
}

func TestEpochKnown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		e    tidegate.Epoch
		want bool
	}{
		{tidegate.Epoch{}, false},
		{tidegate.Epoch{System: 1}, false},
		{tidegate.Epoch{Line: 1}, false},
		{tidegate.Epoch{System: 1, Line: 1}, true},
	} {
		if got := c.e.Known(); got != c.want {
			t.Errorf("%+v is known: %v, want %v", c.e, got, c.want)
		}
	}
}

func TestRoleString(t *testing.T) {
	t.Parallel()
	for role, want := range map[tidegate.Role]string{
		0: "unknown", tidegate.RolePrimary: "primary", tidegate.RoleReplica: "replica", 200: "unknown",
	} {
		if got := role.String(); got != want {
			t.Errorf("role %d is %q, want %q", role, got, want)
		}
	}
}
