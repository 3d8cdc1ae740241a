package tidegate_test

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidegatedb/tidegate"
)

// The bounds of a token: what does not fit, what becomes a catch-up instead, and
// how large it can get.

func clusters(n int) (marks []tidegate.Mark) {
	for i := range n {
		marks = append(marks, at(fmt.Sprint("cluster-", i), 1))
	}
	return marks
}

// What does not fit requires no less, only less exactly.
func TestTokenWithin(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", tidegate.MaxClusterName)
	two := []tidegate.Mark{at("main", 7), {Cluster: "main", Epoch: tidegate.Epoch{System: 1, Line: 2}, Position: tidegate.At(9)}}
	for _, c := range []struct {
		name  string
		marks []tidegate.Mark
		max   int
		rest  bool
		want  []tidegate.Mark // nil: as they were
	}{
		{"as many marks as fit", clusters(tidegate.MaxMarks), tidegate.MaxTokenBytes, false, nil},
		{"clusters that have no room by name", clusters(tidegate.MaxMarks + 1), tidegate.MaxTokenBytes, true, []tidegate.Mark{}},
		{"the longest name", []tidegate.Mark{at(long, 1)}, tidegate.MaxTokenBytes, false, nil},
		{"a longer name", []tidegate.Mark{at("main", 1), at(long+"n", 1)}, tidegate.MaxTokenBytes, true,
			[]tidegate.Mark{{Cluster: "main", Epoch: tidegate.Epoch{System: 1, Line: 1}, CatchUp: true}}},
		{"no name", []tidegate.Mark{at("", 1)}, tidegate.MaxTokenBytes, true, []tidegate.Mark{}},
		{"no room for what was seen", []tidegate.Mark{{Cluster: "main", Epoch: tidegate.Epoch{System: 1, Line: 1}, Position: tidegate.At(9), Seen: ids[tidegate.Incarnation](4), Patient: true}}, 40, false,
			[]tidegate.Mark{{Cluster: "main", Epoch: tidegate.Epoch{System: 1, Line: 1}, CatchUp: true, Patient: true}}},
		{"a catch-up keeps its birth", []tidegate.Mark{{Cluster: "main", Epoch: tidegate.Epoch{System: 1, Line: 1}, CatchUp: true, Primary: 5, Seen: ids[tidegate.Incarnation](4)}}, 50, false,
			[]tidegate.Mark{{Cluster: "main", Epoch: tidegate.Epoch{System: 1, Line: 1}, CatchUp: true, Primary: 5}}},
		{"with outcomes pending no birth is right", []tidegate.Mark{{Cluster: "main", Epoch: tidegate.Epoch{System: 1, Line: 1}, CatchUp: true, Primary: 5, Pending: ids[uint64](4)}}, 50, false,
			[]tidegate.Mark{{Cluster: "main", Epoch: tidegate.Epoch{System: 1, Line: 1}, CatchUp: true, Primary: math.MaxUint64}}},
		{"nor with two histories", two, 40, false,
			[]tidegate.Mark{{Cluster: "main", Epoch: tidegate.Epoch{System: 1, Line: 2}, CatchUp: true, Primary: math.MaxUint64}}},
		{"no room for any mark", two, 20, true, []tidegate.Mark{}},
	} {
		token := tidegate.NewToken(c.marks...)
		got := token.Within(c.max)
		want := c.want
		if want == nil {
			want = c.marks
		}
		if got.CatchesUp() != c.rest || !slices.EqualFunc(got.Marks(), want, func(a, b tidegate.Mark) bool { return reflect.DeepEqual(a, b) }) {
			t.Errorf("%s: %+v, the rest %v; want %+v, %v", c.name, got.Marks(), got.CatchesUp(), want, c.rest)
		}
		b := encode(t, got)
		if back, err := tidegate.ParseBinary(b); len(b) > c.max || err != nil || !reflect.DeepEqual(back, got) {
			t.Errorf("%s: %d bytes, come back as %+v, %v", c.name, len(b), back, err)
		}
		// Writing is within the bounds by itself.
		if b, err := token.AppendBinary([]byte("before")); err != nil || !bytes.HasPrefix(b, []byte("before")) || len(b) > 6+tidegate.MaxTokenBytes {
			t.Errorf("%s: written as %d bytes, %v", c.name, len(b), err)
		}
	}
}

// Whatever a session has come to, its token fits, can be read, and covers the whole.
func TestTokenAlwaysFits(t *testing.T) {
	t.Parallel()
	r := seeded(11)
	ring := newKeyring(t, keyA)
	small, err := tidegate.NewKeyring(tidegate.KeyringConfig{Keys: []tidegate.Key{keyA}, MaxBytes: 512})
	if err != nil {
		t.Fatal(err)
	}
	compacted := 0
	for range 2000 {
		token := tidegate.Token{}
		for range 1 + r.IntN(4) {
			token = token.Merge(randomToken(r, tidegate.MaxMarks))
		}
		for max, k := range map[int]*tidegate.Keyring{2048: ring, 512: small} {
			signed := sign(t, k, token)
			back, err := k.Verify(signed)
			if err != nil || len(signed) > max {
				t.Fatalf("%d characters of %d: %v", len(signed), max, err)
			}
			for _, m := range token.Marks() {
				if !coveredBy(m, back) {
					t.Fatalf("%+v is not covered by %+v, the rest %v", m, back.Marks(), back.CatchesUp())
				}
			}
			if !reflect.DeepEqual(back.Marks(), token.Marks()) {
				compacted++
			}
		}
	}
	if compacted < 100 {
		t.Errorf("only %d tokens did not fit: nothing was tested", compacted)
	}
}

// coveredBy reports whether a token requires what the mark does.
func coveredBy(m tidegate.Mark, t tidegate.Token) bool {
	named := false
	for _, n := range t.Marks() {
		if n.Cluster != m.Cluster {
			continue
		}
		named = true
		if n.CatchUp && len(m.Pending) == 0 || n.Primary == math.MaxUint64 ||
			n.Epoch == m.Epoch && n.Position.Join(m.Position) == n.Position && n.Shown.Join(m.Shown) == n.Shown && (n.CatchUp || !m.CatchUp) &&
				!slices.ContainsFunc(m.Pending, func(p uint64) bool { return !slices.Contains(n.Pending, p) }) {
			return true
		}
	}
	return !named && t.CatchesUp()
}

// Five clusters of PostgreSQL after months of writes, each with a replica seen.
func TestTokenOfFiveClusters(t *testing.T) {
	t.Parallel()
	var marks []tidegate.Mark
	for _, name := range []string{"accounts", "orders", "catalog", "messages", "billing"} {
		m := typical(0xfedcba9876543210).Marks()[0]
		m.Cluster = name
		marks = append(marks, m)
	}
	signed := sign(t, newKeyring(t, keyA), tidegate.NewToken(marks...))
	t.Logf("%d characters", len(signed))
	if len(signed) >= 512 {
		t.Errorf("%d characters, want less than 512", len(signed))
	}
}

func ids[T ~uint64](n int) (list []T) {
	for i := range n {
		list = append(list, T(i+1))
	}
	return list
}

// Lists that outgrow a token become a catch-up, of a birth that no primary can
// match when outcomes were lost with it.
func TestTokenOverflow(t *testing.T) {
	t.Parallel()
	settled := func(p tidegate.Incarnation) bool { return p <= 5 } // a birth that some primary has, or an unknown one
	for _, c := range []struct {
		name          string
		seen, pending int
		birth         tidegate.Incarnation
		catchUp       bool // before
		wantCatchUp   bool
		wantSeen      int
		wantPending   int
		canSettle     bool
	}{
		{"both fit", tidegate.MaxSeen, tidegate.MaxPending, 0, false, false, tidegate.MaxSeen, tidegate.MaxPending, true},
		{"seen", tidegate.MaxSeen + 1, 2, 0, false, true, 0, 2, true},
		{"seen beside a catch-up", tidegate.MaxSeen + 1, 0, 5, true, true, 0, 0, true},
		{"seen far too many", 300, 0, 0, false, true, 0, 0, true},
		{"pending", 2, tidegate.MaxPending + 1, 5, true, true, 2, 0, false},
		{"both", tidegate.MaxSeen + 1, tidegate.MaxPending + 1, 5, true, true, 0, 0, false},
	} {
		m := tidegate.Mark{Cluster: "main", Position: tidegate.At(9), Shown: tidegate.Beyond(3), Seen: ids[tidegate.Incarnation](c.seen), Pending: ids[uint64](c.pending), CatchUp: c.catchUp, Primary: c.birth}
		token := tidegate.NewToken(m)
		b := encode(t, token)
		back, err := tidegate.ParseBinary(b)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := back.Marks()[0]
		if got.CatchUp != c.wantCatchUp || len(got.Seen) != c.wantSeen || len(got.Pending) != c.wantPending || settled(got.Primary) != c.canSettle {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c)
		}
		if c.canSettle && got.Primary != c.birth {
			t.Errorf("%s: the birth became %d, want %d", c.name, got.Primary, c.birth)
		}
		if got.Position != m.Position || got.Shown != m.Shown {
			t.Errorf("%s: the positions became %v and %v", c.name, got.Position, got.Shown)
		}
		if !reflect.DeepEqual(token.Marks()[0].Seen, m.Seen) {
			t.Errorf("%s: encoding changed the token itself", c.name)
		}
	}
}

func largest() tidegate.Token {
	var marks []tidegate.Mark
	for i := range tidegate.MaxMarks {
		marks = append(marks, tidegate.Mark{
			Cluster:  strings.Repeat(string(rune('a'+i)), tidegate.MaxClusterName),
			Epoch:    tidegate.Epoch{System: math.MaxUint64, Line: math.MaxUint64},
			Position: tidegate.Beyond(math.MaxUint64), Shown: tidegate.Beyond(math.MaxUint64),
			Seen: ids[tidegate.Incarnation](tidegate.MaxSeen), Pending: ids[uint64](tidegate.MaxPending),
			CatchUp: true, Primary: 1,
		})
	}
	return tidegate.NewToken(marks...)
}

// typical is a token of one PostgreSQL cluster after months of writes.
func typical(seen ...tidegate.Incarnation) tidegate.Token {
	return tidegate.NewToken(tidegate.Mark{
		Cluster: "main", Epoch: tidegate.Epoch{System: 7_300_000_000_000_000_000, Line: 1},
		Position: tidegate.At(0x2A3_4F8B_1C20), Seen: seen,
	})
}

func TestTokenSizes(t *testing.T) {
	t.Parallel()
	ring := newKeyring(t, keyA)
	for _, c := range []struct {
		name  string
		token tidegate.Token
		most  int // bytes of the binary form that must do
	}{
		{"nothing", tidegate.Token{}, 10},
		{"one cluster, only written", typical(), 32},
		{"one cluster, one replica seen", typical(0xfedcba9876543210), 40},
		{"the largest", largest(), tidegate.MaxTokenBytes},
	} {
		b := encode(t, c.token)
		signed := sign(t, ring, c.token)
		t.Logf("%s: %d bytes, signed with a key named %q %d characters", c.name, len(b), keyA.ID, len(signed))
		if len(b) > c.most || len(signed) > tidegate.MaxSignedBytes {
			t.Errorf("%s: %d and %d bytes, at most %d and %d", c.name, len(b), len(signed), c.most, tidegate.MaxSignedBytes)
		}
		if back, err := ring.Verify(signed); err != nil || !reflect.DeepEqual(back.Marks(), c.token.Marks()) {
			t.Errorf("%s: came back as %+v, %v", c.name, back.Marks(), err)
		}
	}
}
