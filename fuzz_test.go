package tidegate_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/tidegatedb/tidegate"
)

// seeds are tokens of every kind, in their binary form.
func seeds(t testing.TB) (all [][]byte) {
	r := seeded(5)
	tokens := []tidegate.Token{
		{}, typical(), typical(7), largest(),
		tidegate.NewToken(tidegate.Mark{Cluster: "main", CatchUp: true}),
		tidegate.NewToken(at("main", 1), at("side", 1), tidegate.Mark{Cluster: "main", Epoch: tidegate.Epoch{System: 1, Line: 2}}),
	}
	for range 20 {
		tokens = append(tokens, randomToken(r, 3))
	}
	for _, token := range tokens {
		all = append(all, encode(t, token))
	}
	return all
}

func FuzzParseBinary(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	f.Fuzz(func(t *testing.T, before []byte) {
		b := bytes.Clone(before)
		canonical(t, b)
		token, err := tidegate.ParseBinary(b)
		if !bytes.Equal(b, before) {
			t.Error("the decoder wrote into its input")
		}
		if err != nil {
			return
		}
		clear(b) // a token keeps nothing of its input
		if again := encode(t, token); !bytes.Equal(again, before) {
			t.Errorf("the token changed with the bytes it was read from: %x, was %x", again, before)
		}
		once := encode(t, token.Merge(token))
		if !bytes.Equal(once, before) {
			t.Errorf("%x merged with itself is %x", before, once)
		}
		// A session groups the marks by cluster, and changes nothing else.
		sameMarks(t, "through a session", tidegate.NewSession(token).Token().Marks(), token.Marks())
	})
}

// bySomebodyWithTheKey signs the bytes of an accepted text once more by hand: an
// honest text comes out as it was. (A fuzzer's cache outlives the seeds, so the
// texts that were signed here are not all that there are.)
func bySomebodyWithTheKey(text string, keys ...tidegate.Key) bool {
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(text, signedPrefix))
	if err != nil || len(b) < sha256.Size {
		return false
	}
	b = b[:len(b)-sha256.Size]
	for _, key := range keys {
		if bytes.HasPrefix(b, append([]byte{byte(len(key.ID))}, key.ID...)) {
			return seal(key, macContext, b) == text
		}
	}
	return false
}

// FuzzVerify looks at a text that nobody signed, and at a body that somebody
// with the key signed, who may be another release.
func FuzzVerify(f *testing.F) {
	ring := newKeyring(f, keyA, keyB)
	signed := make(map[string]bool)
	for i, b := range seeds(f) {
		token, err := tidegate.ParseBinary(b)
		if err != nil {
			f.Fatal(err)
		}
		s := sign(f, newKeyring(f, []tidegate.Key{keyA, keyB}[i%2]), token)
		signed[s] = true
		f.Add(s, b, int64(0), int64(day))
		f.Add(strings.TrimPrefix(s, signedPrefix), b[:len(b)/2], int64(0), int64(day))
		f.Add(s+"=", b, int64(60), int64(1))
	}
	f.Add(signedPrefix, []byte{}, int64(math.MinInt64), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, text string, body []byte, issued, expires int64) {
		token, err := ring.Verify(text)
		switch {
		case err == nil && !bySomebodyWithTheKey(text, keyA, keyB):
			t.Errorf("%q was never signed and is accepted", text)
		case err != nil && signed[text]:
			t.Errorf("%q is refused: %v", text, err)
		case err != nil && (!errors.Is(err, tidegate.ErrToken) || !token.IsZero()):
			t.Errorf("%q: error %v with the token %+v", text, err, token.Marks())
		}

		byHand := forge(keyB, macContext, epochStart+issued, epochStart+expires, body)
		token, err = ring.Verify(byHand)
		if err != nil {
			if !errors.Is(err, tidegate.ErrToken) || errors.Is(err, tidegate.ErrTokenSignature) || errors.Is(err, tidegate.ErrTokenKey) {
				t.Errorf("%q, rightly signed: error %v", byHand, err)
			}
			return
		}
		if !bytes.Equal(encode(t, token), body) {
			t.Errorf("the body %x is accepted as %x", body, encode(t, token))
		}
		if issued > 60 || issued <= -day || expires <= 0 {
			t.Errorf("issued %d s from now, over %d s from now, and accepted", issued, expires)
		}
	})
}
