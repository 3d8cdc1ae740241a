package tidegate_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/tidegatedb/tidegate"
)

const (
	signedPrefix = "tg1."
	macContext   = "tidegate token 1\x00"
)

// forge writes a signed token by hand, from the documented format, so that one
// part at a time can be wrong.
func forge(key tidegate.Key, label string, issued, expires int64, body []byte) string {
	b := append([]byte{byte(len(key.ID))}, key.ID...)
	b = binary.BigEndian.AppendUint64(b, uint64(issued))
	b = binary.BigEndian.AppendUint64(b, uint64(expires))
	return seal(key, label, append(b, body...))
}

func seal(key tidegate.Key, label string, b []byte) string {
	h := hmac.New(sha256.New, key.Secret)
	h.Write([]byte(label))
	h.Write(b)
	return signedPrefix + base64.RawURLEncoding.EncodeToString(h.Sum(b))
}

const day = 24 * 60 * 60

// A key that is used for something else too must not sign tokens by accident.
func TestKeyringContext(t *testing.T) {
	t.Parallel()
	k := newKeyring(t, keyA)
	body := encode(t, typical())
	byHand := forge(keyA, macContext, epochStart, epochStart+day, body)
	accepted(t, "the right context", k, byHand)
	if signed := sign(t, k, typical()); len(signed) != len(byHand) {
		t.Errorf("signed %s\nby hand %s", signed, byHand)
	}
	for _, other := range []string{"", "tidegate token 1", "tidegate token 2\x00", "tidegate token 1\x00\x00", "Tidegate token 1\x00"} {
		refused(t, "context "+other, k, forge(keyA, other, epochStart, epochStart+day, body), tidegate.ErrTokenSignature)
	}
}

func TestKeyringSignedNonsense(t *testing.T) {
	t.Parallel()
	k := newKeyring(t, keyA)
	body := encode(t, typical())
	head := func(n int) []byte { return append([]byte{byte(len(keyA.ID))}, keyA.ID+strings.Repeat("\x00", n)...) }
	const minInt, maxInt = -1 << 63, 1<<63 - 1
	for _, c := range []struct {
		name, signed string
		want         error
	}{
		{"no body", forge(keyA, macContext, epochStart, epochStart+day, nil), tidegate.ErrTokenMalformed},
		{"a body cut short", forge(keyA, macContext, epochStart, epochStart+day, body[:len(body)-1]), tidegate.ErrTokenMalformed},
		{"a body with a tail", forge(keyA, macContext, epochStart, epochStart+day, append(body[:len(body):len(body)], 0)), tidegate.ErrTokenMalformed},
		{"a body of another version", forge(keyA, macContext, epochStart, epochStart+day, append([]byte{2}, body[1:]...)), tidegate.ErrTokenMalformed},
		{"a body that is too large", forge(keyA, macContext, epochStart, epochStart+day, make([]byte, tidegate.MaxTokenBytes+1)), tidegate.ErrTokenTooLarge},
		{"no times", seal(keyA, macContext, head(0)), tidegate.ErrTokenMalformed},
		{"half the times", seal(keyA, macContext, head(15)), tidegate.ErrTokenMalformed},
		{"over before it was issued", forge(keyA, macContext, epochStart, epochStart-1, body), tidegate.ErrTokenExpired},
		{"over for ever", forge(keyA, macContext, minInt, minInt, body), tidegate.ErrTokenExpired},
		{"issued long ago, never over", forge(keyA, macContext, 0, maxInt, body), tidegate.ErrTokenExpired},
		{"issued before all time", forge(keyA, macContext, minInt, maxInt, body), tidegate.ErrTokenExpired},
		{"issued after all time", forge(keyA, macContext, maxInt, maxInt, body), tidegate.ErrToken},
		{"issued in a year", forge(keyA, macContext, epochStart+365*day, epochStart+366*day, body), tidegate.ErrTokenFuture},
	} {
		refused(t, c.name, k, c.signed, c.want)
	}
	// It is the signature that is looked at first: a stranger learns nothing else.
	stranger := tidegate.Key{ID: keyA.ID, Secret: keyB.Secret}
	refused(t, "a stranger's token that is over", k, forge(stranger, macContext, 0, 1, body), tidegate.ErrTokenSignature)
	refused(t, "a stranger's nonsense", k, forge(stranger, macContext, epochStart, epochStart+day, nil), tidegate.ErrTokenSignature)
}

func TestKeyringAlteredCharacter(t *testing.T) {
	t.Parallel()
	k := newKeyring(t, keyA)
	signed := sign(t, k, typical(1))
	accepted(t, "as it was", k, signed)
	const others = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=. \n\r\x00\xff"
	for i := range len(signed) {
		refused(t, "a character left out", k, signed[:i]+signed[i+1:], tidegate.ErrToken)
		for _, c := range []byte(others) {
			if c != signed[i] {
				refused(t, "a character altered", k, signed[:i]+string([]byte{c})+signed[i+1:], tidegate.ErrToken)
			}
		}
		for _, more := range []string{"A", "=", " ", "\n", "\r\n", "\t", "."} {
			refused(t, "a character put in", k, signed[:i]+more+signed[i:], tidegate.ErrToken)
		}
		if t.Failed() {
			t.Fatalf("at character %d of %s", i, signed)
		}
	}
}

// One token has one text, whatever a proxy or a text area does to it.
func TestKeyringVariants(t *testing.T) {
	t.Parallel()
	k := newKeyring(t, keyA)
	// Lengths that leave 0, 1 and 2 bytes in the last group of base64.
	for _, name := range []string{"m", "ma", "mai"} {
		signed := sign(t, k, tidegate.NewToken(at(name, 1)))
		accepted(t, "as it was", k, signed)
		text := strings.TrimPrefix(signed, signedPrefix)
		raw, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		variants := map[string]string{
			"no prefix":           text,
			"prefix twice":        signedPrefix + signed,
			"prefix in capitals":  strings.ToUpper(signedPrefix) + text,
			"prefix of version 2": "tg2." + text,
			"space before":        " " + signed,
			"space after":         signed + " ",
			"newline before":      "\n" + signed,
			"newline after":       signed + "\n",
			"CRLF after":          signed + "\r\n",
			"newline within":      signed[:40] + "\n" + signed[40:],
			"newline after dot":   signedPrefix + "\n" + text,
			"one pad":             signed + "=",
			"two pads":            signed + "==",
			"quoted":              `"` + signed + `"`,
			"twice":               signed + signed,
			"two, with a comma":   signed + "," + signed,
			"zero after":          signed + "\x00",
			"in hex":              signedPrefix + hex.EncodeToString(raw),
			"percent":             strings.Replace(signed, "-", "%2D", 1) + "%",
		}
		if standard := base64.RawStdEncoding.EncodeToString(raw); standard != text {
			variants["standard alphabet"] = signedPrefix + standard
		}
		for what, v := range variants {
			refused(t, what, k, v, tidegate.ErrTokenMalformed)
		}
	}
	for what, v := range map[string]string{"nothing": "", "only the prefix": signedPrefix, "half the prefix": "tg1"} {
		refused(t, what, k, v, tidegate.ErrTokenMalformed)
	}
	refused(t, "very long", k, signedPrefix+strings.Repeat("A", tidegate.MaxSignedBytes), tidegate.ErrTokenTooLarge)
}
