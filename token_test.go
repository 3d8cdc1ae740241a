package tidegate_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/tidegatedb/tidegate"
)

func encode(t testing.TB, token tidegate.Token) []byte {
	t.Helper()
	b, err := token.AppendBinary(nil)
	if err != nil {
		t.Fatalf("encode %+v: %v", token.Marks(), err)
	}
	return b
}

// canonical fails when the decoder accepts bytes that it would not have written.
func canonical(t testing.TB, b []byte) {
	t.Helper()
	token, err := tidegate.ParseBinary(b)
	switch {
	case err == nil:
		if again := encode(t, token); !bytes.Equal(again, b) {
			t.Errorf("accepted %x\nand encodes it as %x", b, again)
		}
		// What Marks and CatchesUp show is all that the bytes say, but for the nonce.
		again := encode(t, tidegate.NewToken(token.Marks()...))
		if token.CatchesUp() {
			again[9] |= 0x80
		}
		if !bytes.Equal(again[9:], b[9:]) {
			t.Errorf("accepted %x\nand its marks encode as %x", b, again)
		}
	case !errors.Is(err, tidegate.ErrTokenMalformed) && !errors.Is(err, tidegate.ErrTokenTooLarge):
		t.Errorf("%x is refused with %v, want ErrTokenMalformed or ErrTokenTooLarge", b, err)
	case !reflect.DeepEqual(token, tidegate.Token{}):
		t.Errorf("%x is refused and yet gives %+v", b, token)
	}
}

func TestTokenRoundTrip(t *testing.T) {
	t.Parallel()
	r := seeded(2)
	for range 2000 {
		token := randomToken(r, tidegate.MaxMarks)
		if len(token.Marks()) == 0 != token.IsZero() {
			t.Fatalf("zero is %v with the marks %+v", token.IsZero(), token.Marks())
		}
		var want []tidegate.Mark
		for _, m := range token.Marks() {
			if len(m.Seen) > tidegate.MaxSeen || len(m.Pending) > tidegate.MaxPending {
				want = nil // joined to more than fits: see the overflow tests
				break
			}
			want = append(want, m)
		}
		b := encode(t, token)
		back, err := tidegate.ParseBinary(b)
		if err != nil {
			t.Fatalf("%x of %+v: %v", b, token.Marks(), err)
		}
		if got := back.Marks(); want != nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
		canonical(t, b)
		if len(b) > tidegate.MaxTokenBytes {
			t.Fatalf("%d bytes, at most %d", len(b), tidegate.MaxTokenBytes)
		}
	}
}

// Whatever is done to the bytes of a token, they are refused or mean exactly
// what they say.
func TestTokenDamaged(t *testing.T) {
	t.Parallel()
	r := seeded(3)
	for range 8 {
		b := encode(t, randomToken(r, 4))
		for n := range len(b) {
			if token, err := tidegate.ParseBinary(b[:n]); err == nil {
				t.Errorf("the first %d of %d bytes are taken for %+v", n, len(b), token.Marks())
			}
			for bit := range 8 {
				flipped := bytes.Clone(b)
				flipped[n] ^= 1 << bit
				canonical(t, flipped)
			}
			canonical(t, append(bytes.Clone(b[:n]), b[n+1:]...))             // one byte less
			canonical(t, append(append(bytes.Clone(b[:n]), 0x80), b[n:]...)) // one more
		}
		for _, tail := range []byte{0, 1, 0x80, 0xff} {
			if _, err := tidegate.ParseBinary(append(bytes.Clone(b), tail)); err == nil {
				t.Errorf("%x is accepted with the tail %x", b, tail)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// The bytes of version 1 are kept for ever: tokens outlive releases.
func TestTokenVersion1(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, hex string
		marks     []tidegate.Mark
	}{
		{"nothing", "01" + "0000000000000000" + "00", nil},
		{
			"one cluster", "01" + "0000000000000000" + "01" + "046d61696e" + "00" + "0000000000000001" + "01" + "8001" + "00",
			[]tidegate.Mark{at("main", 128)},
		},
		{
			"everything", "01" + "0000000000000000" + "01" + "046d61696e" + "3f" + "0000000000000001" + "01" + "09" + "08" + "0000000000000007" +
				"21" + "0000000000000003" + "0000000000000004" + "0000000000000005",
			[]tidegate.Mark{{
				Cluster: "main", Epoch: tidegate.Epoch{System: 1, Line: 1}, Position: tidegate.Beyond(9), Shown: tidegate.Beyond(8),
				Seen: []tidegate.Incarnation{3, 4}, CatchUp: true, Primary: 7, Pending: []uint64{5}, Patient: true,
			}},
		},
	} {
		if got := hex.EncodeToString(encode(t, tidegate.NewToken(c.marks...))); got != c.hex {
			t.Errorf("%s: wrote %s\nwant  %s", c.name, got, c.hex)
		}
		b, _ := hex.DecodeString(c.hex)
		token, err := tidegate.ParseBinary(b)
		if err != nil || !reflect.DeepEqual(token.Marks(), c.marks) {
			t.Errorf("%s: read %+v, %v\nwant %+v", c.name, token.Marks(), err, c.marks)
		}
	}
}

// One that requires everything of the rest says so in one bit.
func TestTokenVersion1OfTheRest(t *testing.T) {
	t.Parallel()
	const bytes = "01" + "0000000000000000" + "80"
	if got := hex.EncodeToString(encode(t, tidegate.CatchUpToken())); got != bytes {
		t.Errorf("wrote %s, want %s", got, bytes)
	}
	b, _ := hex.DecodeString(bytes)
	if token, err := tidegate.ParseBinary(b); err != nil || !token.CatchesUp() || token.IsZero() || len(token.Marks()) != 0 {
		t.Errorf("read %+v, %v", token, err)
	}
}

func TestTokenRefusals(t *testing.T) {
	t.Parallel()
	const head, main = "01" + "0000000000000000", "046d61696e"
	mark := func(flags, rest string) string { return main + flags + "0000000000000001" + "01" + rest }
	id := func(n int) string { return fmt.Sprintf("%016x", n) }
	for _, c := range []struct{ name, hex, says string }{
		{"nothing at all", "", ""},
		{"version 0", "00" + id(0) + "00", "version 0"},
		{"version 2", "02" + id(0) + "00", "version 2"},
		{"nine marks", head + "09" + strings.Repeat(mark("00", "0500"), 9), "9 marks"},
		{"fewer marks than announced", head + "02" + mark("00", "0500"), ""},
		{"more marks than announced", head + "00" + mark("00", "0500"), ""},
		{"the same mark twice", head + "02" + mark("00", "0500") + mark("00", "0600"), ""},
		{"a cluster without a name", head + "01" + "00" + "00" + id(1) + "01" + "05" + "00", ""},
		{"a name of 33 bytes", head + "01" + "21" + strings.Repeat("61", 33) + "00" + id(1) + "01" + "05" + "00", ""},
		{"an unknown flag", head + "01" + mark("40", "0500"), ""},
		{"a position with a needless byte", head + "01" + mark("00", "8500"+"00"), ""},
		{"a position beyond 64 bits", head + "01" + mark("00", "ffffffffffffffffff02"+"00"), ""},
		{"shown, which is nothing", head + "01" + mark("04", "05"+"00"+"00"), ""},
		{"strictly shown, which is not there", head + "01" + mark("02", "0500"), ""},
		{"a birth that is unknown", head + "01" + mark("18", "05"+id(0)+"00"), ""},
		{"a birth without a catch-up", head + "01" + mark("10", "05"+id(7)+"00"), ""},
		{"five seen", head + "01" + mark("00", "05"+"50"+id(1)+id(2)+id(3)+id(4)+id(5)), ""},
		{"five pending", head + "01" + mark("00", "05"+"05"+id(1)+id(2)+id(3)+id(4)+id(5)), ""},
		{"seen twice", head + "01" + mark("00", "05"+"20"+id(1)+id(1)), ""},
		{"pending twice", head + "01" + mark("00", "05"+"02"+id(1)+id(1)), ""},
	} {
		b, err := hex.DecodeString(c.hex)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tidegate.ParseBinary(b)
		if !errors.Is(err, tidegate.ErrTokenMalformed) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want ErrTokenMalformed that says %q", c.name, err, c.says)
		}
	}
	if _, err := tidegate.ParseBinary(make([]byte, tidegate.MaxTokenBytes+1)); !errors.Is(err, tidegate.ErrTokenTooLarge) {
		t.Errorf("too many bytes: error %v, want ErrTokenTooLarge", err)
	}
}
