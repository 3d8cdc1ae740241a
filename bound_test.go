package tidegate_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
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

func TestTokenTooLarge(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("n", tidegate.MaxClusterName)
	for _, c := range []struct {
		name  string
		marks []tidegate.Mark
		says  string // "" when it fits
	}{
		{"as many marks as fit", clusters(tidegate.MaxMarks), ""},
		{"one mark more", clusters(tidegate.MaxMarks + 1), "9 marks"},
		{"the longest name", []tidegate.Mark{at(name, 1)}, ""},
		{"a longer name", append(clusters(2), at(name+"n", 1)), "33 bytes"},
		{"no name", append(clusters(2), at("", 1)), "0 bytes"},
	} {
		b, err := tidegate.NewToken(c.marks...).AppendBinary([]byte("before"))
		switch {
		case c.says == "":
			if err != nil || !bytes.HasPrefix(b, []byte("before")) {
				t.Errorf("%s: got %q, %v", c.name, b, err)
				continue
			}
			if _, err := tidegate.ParseBinary(b[len("before"):]); err != nil {
				t.Errorf("%s: written and then refused: %v", c.name, err)
			}
		case !errors.Is(err, tidegate.ErrTokenTooLarge) || !strings.Contains(err.Error(), c.says):
			t.Errorf("%s: error %v, want ErrTokenTooLarge that says %q", c.name, err, c.says)
		case string(b) != "before":
			t.Errorf("%s: an error, and half a token: %q", c.name, b)
		}
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
