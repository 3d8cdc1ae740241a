package tidegate_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
)

var (
	keyA = tidegate.Key{ID: "2025a", Secret: bytes.Repeat([]byte("A"), 32)}
	keyB = tidegate.Key{ID: "2025b", Secret: bytes.Repeat([]byte("B"), 40)}
	keyC = tidegate.Key{ID: "c", Secret: bytes.Repeat([]byte("C"), 64)}
)

// epochStart is when every test of this file begins, by its own clock.
const epochStart = 1_750_000_000

// clock is a time that only the test moves.
type clock struct{ ns atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(epochStart, c.ns.Load()) }
func (c *clock) set(since time.Duration) { c.ns.Store(int64(since)) }

func newKeyringAt(t testing.TB, c *clock, lifetime time.Duration, keys ...tidegate.Key) *tidegate.Keyring {
	t.Helper()
	k, err := tidegate.NewKeyring(tidegate.KeyringConfig{Keys: keys, Lifetime: lifetime, LongestLag: time.Millisecond, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func newKeyring(t testing.TB, keys ...tidegate.Key) *tidegate.Keyring {
	t.Helper()
	return newKeyringAt(t, new(clock), 0, keys...)
}

func sign(t testing.TB, k *tidegate.Keyring, token tidegate.Token) string {
	t.Helper()
	s := k.Sign(token)
	return s
}

// refused checks that a token is refused for this reason, and that nothing of it
// comes through.
func refused(t *testing.T, what string, k *tidegate.Keyring, signed string, want error) {
	t.Helper()
	token, err := k.Verify(signed)
	if !errors.Is(err, want) || !errors.Is(err, tidegate.ErrToken) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
	if !reflect.DeepEqual(token, tidegate.Token{}) {
		t.Errorf("%s: refused with %v and yet gives %+v", what, err, token.Marks())
	}
}

func accepted(t *testing.T, what string, k *tidegate.Keyring, signed string) tidegate.Token {
	t.Helper()
	token, err := k.Verify(signed)
	if err != nil {
		t.Errorf("%s: refused with %v", what, err)
	}
	return token
}

func TestKeyringRoundTrip(t *testing.T) {
	t.Parallel()
	k := newKeyring(t, keyA, keyB)
	r := seeded(4)
	for range 300 {
		token := randomToken(r, tidegate.MaxMarks)
		signed := sign(t, k, token)
		back := accepted(t, "a token of this ring", k, signed)
		if !bytes.Equal(encode(t, back), encode(t, token)) {
			t.Fatalf("%+v\ncame back as %+v", token.Marks(), back.Marks())
		}
		if again := sign(t, k, back); again != signed {
			t.Fatalf("one token has two texts:\n%s\n%s", signed, again)
		}
	}
}

func TestKeyringRotation(t *testing.T) {
	t.Parallel()
	type keys = []tidegate.Key
	impostor := tidegate.Key{ID: keyA.ID, Secret: keyB.Secret}
	for _, c := range []struct {
		name         string
		sign, verify keys
		want         error
	}{
		{"one key", keys{keyA}, keys{keyA}, nil},
		{"the new key added last, old instance signs", keys{keyA}, keys{keyA, keyB}, nil},
		{"the new key first, an instance that has it last", keys{keyB, keyA}, keys{keyA, keyB}, nil},
		{"the new key first, an older token", keys{keyA}, keys{keyB, keyA}, nil},
		{"the old key dropped, a token of the new one", keys{keyB, keyA}, keys{keyB}, nil},
		{"the old key dropped, a token of the old one", keys{keyA}, keys{keyB}, tidegate.ErrTokenKey},
		{"the new key used before everybody has it", keys{keyB, keyA}, keys{keyA}, tidegate.ErrTokenKey},
		{"a foreign ring", keys{keyC}, keys{keyA, keyB}, tidegate.ErrTokenKey},
		{"another secret of the same name", keys{impostor}, keys{keyA}, tidegate.ErrTokenSignature},
	} {
		signed := sign(t, newKeyring(t, c.sign...), typical())
		ring := newKeyring(t, keyC) // and replaced, as an instance that runs does it
		if err := ring.SetKeys(c.verify...); err != nil {
			t.Fatal(err)
		}
		for _, k := range []*tidegate.Keyring{newKeyring(t, c.verify...), ring} {
			if c.want == nil {
				accepted(t, c.name, k, signed)
			} else {
				refused(t, c.name, k, signed, c.want)
			}
		}
	}
}

func TestKeyringTimes(t *testing.T) {
	t.Parallel()
	const s, day = time.Second, 24 * time.Hour
	for _, c := range []struct {
		name             string
		signer, verifier time.Duration // lifetimes
		issued, now      time.Duration // since the start
		want             error
	}{
		{"at once", 0, 0, 0, 0, nil},
		{"default lifetime, last second", 0, 0, 0, day - s, nil},
		{"default lifetime, last nanosecond", 0, 0, 0, day - 1, nil},
		{"default lifetime, over", 0, 0, 0, day, tidegate.ErrTokenExpired},
		{"shortest lifetime", s, s, 0, s - 1, nil},
		{"shortest lifetime, over", s, s, 0, s, tidegate.ErrTokenExpired},
		{"longest lifetime", 366 * day, 366 * day, 0, 366*day - s, nil},
		{"longest lifetime, over", 366 * day, 366 * day, 0, 366 * day, tidegate.ErrTokenExpired},
		{"shortened afterwards, still in it", day, time.Hour, 0, time.Hour - s, nil},
		{"shortened afterwards", day, time.Hour, 0, time.Hour, tidegate.ErrTokenExpired},
		{"lengthened afterwards: the token keeps its own", time.Hour, day, 0, time.Hour, tidegate.ErrTokenExpired},
		{"issued in the middle of a second", s, s, s / 2, s - 1, nil},
		{"issued in the middle of a second, over", s, s, s / 2, s, tidegate.ErrTokenExpired}, // rounded down, never up
		{"the other clock is a minute ahead", 0, 0, time.Minute, 0, nil},
		{"the other clock is more than a minute ahead", 0, 0, time.Minute + s, 0, tidegate.ErrTokenFuture},
		{"the other clock is far ahead", 0, 0, 365 * day, 0, tidegate.ErrTokenFuture},
		{"the other clock is behind", 0, 0, 0, time.Hour, nil},
		{"before 1970", 0, 0, -epochStart*s - day, -epochStart*s - 1, nil},
	} {
		var then, now clock
		then.set(c.issued)
		now.set(c.now)
		signed := sign(t, newKeyringAt(t, &then, c.signer, keyA), typical())
		k := newKeyringAt(t, &now, c.verifier, keyA)
		if c.want == nil {
			accepted(t, c.name, k, signed)
		} else {
			refused(t, c.name, k, signed, c.want)
		}
	}
}

func TestKeyringOwnClock(t *testing.T) {
	t.Parallel()
	k, err := tidegate.NewKeyring(tidegate.KeyringConfig{Keys: []tidegate.Key{keyA}})
	if err != nil {
		t.Fatal(err)
	}
	if k.Lifetime() != 24*time.Hour {
		t.Errorf("the default lifetime is %v", k.Lifetime())
	}
	accepted(t, "with time.Now", k, sign(t, k, typical()))
}

func TestKeyringConfigErrors(t *testing.T) {
	t.Parallel()
	type config = tidegate.KeyringConfig
	secret := bytes.Repeat([]byte("hush"), 8)
	many := make([]tidegate.Key, 17)
	for i := range many {
		many[i] = tidegate.Key{ID: string(rune('a' + i)), Secret: secret}
	}
	ok := many[:1]
	for _, c := range []struct {
		name string
		cfg  config
		says []string // nothing when it is fine
	}{
		{"one key", config{Keys: ok}, nil},
		{"16 keys", config{Keys: many[:16]}, nil},
		{"a name of 16 bytes", config{Keys: []tidegate.Key{{ID: strings.Repeat("k", 16), Secret: secret}}}, nil},
		{"no key", config{}, []string{"KeyringConfig.Keys", "0 keys"}},
		{"17 keys", config{Keys: many}, []string{"KeyringConfig.Keys", "17 keys"}},
		{"a key without a name", config{Keys: []tidegate.Key{many[0], {Secret: secret}}}, []string{"KeyringConfig.Keys[1].ID", "0 bytes"}},
		{"a name of 17 bytes", config{Keys: []tidegate.Key{{ID: strings.Repeat("k", 17), Secret: secret}}}, []string{"KeyringConfig.Keys[0].ID", "17 bytes"}},
		{"a name twice", config{Keys: []tidegate.Key{many[0], many[1], many[0]}}, []string{"KeyringConfig.Keys[2].ID", `"a"`}},
		{"a secret of 31 bytes", config{Keys: []tidegate.Key{many[0], {ID: "short", Secret: secret[:31]}}}, []string{"KeyringConfig.Keys[1].Secret", `"short"`, "31 bytes"}},
		{"no secret", config{Keys: []tidegate.Key{{ID: "none"}}}, []string{"KeyringConfig.Keys[0].Secret", "0 bytes"}},
		{"less than a second", config{Keys: ok, Lifetime: time.Second - 1}, []string{"KeyringConfig.Lifetime"}},
		{"a negative lifetime", config{Keys: ok, Lifetime: -time.Hour}, []string{"KeyringConfig.Lifetime", "-1h"}},
		{"a lifetime of no more than the lag", config{Keys: ok, Lifetime: time.Hour}, []string{"KeyringConfig.Lifetime is 1h0m0s", "KeyringConfig.LongestLag 1h0m0s"}},
		{"the same, with both set", config{Keys: ok, Lifetime: time.Minute, LongestLag: time.Minute}, []string{"KeyringConfig.Lifetime is 1m0s", "KeyringConfig.LongestLag 1m0s"}},
		{"a lifetime above the lag", config{Keys: ok, Lifetime: time.Minute, LongestLag: time.Minute - 1}, nil},
		{"a negative lag", config{Keys: ok, LongestLag: -1}, []string{"KeyringConfig.LongestLag"}},
		{"the smallest bound", config{Keys: ok, MaxBytes: 512}, nil},
		{"too small a bound", config{Keys: ok, MaxBytes: 511}, []string{"KeyringConfig.MaxBytes", "511", "512"}},
		{"a negative bound", config{Keys: ok, MaxBytes: -1}, []string{"KeyringConfig.MaxBytes"}},
		{"too large a bound", config{Keys: ok, MaxBytes: tidegate.MaxSignedBytes + 1}, []string{"KeyringConfig.MaxBytes"}},
		{"more than 366 days", config{Keys: ok, Lifetime: 366*24*time.Hour + 1}, []string{"KeyringConfig.Lifetime"}},
	} {
		k, err := tidegate.NewKeyring(c.cfg)
		if c.says == nil {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if !errors.Is(err, tidegate.ErrConfig) || k != nil {
			t.Errorf("%s: %v, error %v, want ErrConfig", c.name, k, err)
			continue
		}
		for _, s := range c.says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%s: %q does not say %q", c.name, err, s)
			}
		}
		if strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %q tells the secret", c.name, err)
		}
	}
}

func TestKeyringKeepsItsKeysOnAnError(t *testing.T) {
	t.Parallel()
	k := newKeyring(t, keyA)
	signed := sign(t, k, typical())
	for _, bad := range [][]tidegate.Key{nil, {keyB, keyB}, {keyB, {ID: "x"}}} {
		if err := k.SetKeys(bad...); !errors.Is(err, tidegate.ErrConfig) {
			t.Errorf("SetKeys(%d keys): error %v, want ErrConfig", len(bad), err)
		}
		accepted(t, "after a refused SetKeys", k, signed)
	}
}

func TestKeyringCopiesItsKeys(t *testing.T) {
	t.Parallel()
	mine := func() []tidegate.Key {
		return []tidegate.Key{{ID: keyA.ID, Secret: bytes.Clone(keyA.Secret)}, {ID: keyB.ID, Secret: bytes.Clone(keyB.Secret)}}
	}
	made, set := mine(), mine()
	k1, k2 := newKeyring(t, made...), newKeyring(t, keyC)
	if err := k2.SetKeys(set...); err != nil {
		t.Fatal(err)
	}
	for _, keys := range [][]tidegate.Key{made, set} {
		for i := range keys {
			clear(keys[i].Secret)
			keys[i].ID = "gone"
		}
	}
	for _, k := range []*tidegate.Keyring{k1, k2} {
		accepted(t, "the first key", k, sign(t, newKeyring(t, keyA), typical()))
		accepted(t, "the second key", k, sign(t, newKeyring(t, keyB), typical()))
		accepted(t, "what it signs itself", newKeyring(t, keyA), sign(t, k, typical()))
	}
}

// Keys move to the front and back again while requests come in: nobody's token
// is refused.
func TestKeyringReplacedInUse(t *testing.T) {
	t.Parallel()
	k := newKeyring(t, keyA, keyB)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				signed := k.Sign(typical())
				accepted(t, "while keys are replaced", k, signed)
			}
		})
	}
	wg.Go(func() {
		for i := range 400 {
			keys := []tidegate.Key{keyA, keyB, keyC}[:2+i%2]
			if i%4 < 2 {
				keys = []tidegate.Key{keyB, keyA}
			}
			if err := k.SetKeys(keys...); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
}
