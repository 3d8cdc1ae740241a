package tidegate

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// signedPrefix starts every signed token, so that one is recognised in a log.
const signedPrefix = "tg1."

// MaxSignedBytes bounds the text of a signed token.
const MaxSignedBytes = len(signedPrefix) + (MaxTokenBytes+1+maxKeyID+16+sha256.Size)*4/3 + 4

const (
	maxKeyID     = 16
	minSecret    = 32
	maxLifetime  = 366 * 24 * time.Hour
	clockSkew    = time.Minute
	hmacContext  = "tidegate token 1\x00"
	defaultLife  = 24 * time.Hour
	maxKeysCount = 16
	minBytes     = 512
	defaultBytes = 2048
)

// Key is a named secret of a [Keyring].
type Key struct {
	// ID names the key inside tokens: 1 to 16 bytes, unique in the ring.
	ID string
	// Secret is at least 32 random bytes.
	Secret []byte
}

// KeyringConfig configures a [Keyring].
type KeyringConfig struct {
	// Keys lists the keys. The first one signs, all of them verify. Rotate by
	// adding the new key last on every instance, then moving it to the front,
	// then dropping the old one when a lifetime has passed.
	Keys []Key
	// Lifetime is how long a token is accepted after it was issued. Zero means
	// 24 hours; at most 366 days.
	Lifetime time.Duration
	// LongestLag is how old a replica's state may be that a session without a token reads:
	// the value of the databases' own setting of that name. Lifetime must be more, so that
	// what a session is allowed to forget is there. Zero means one hour.
	LongestLag time.Duration
	// MaxBytes bounds the text of the tokens that the ring signs: some carriers
	// have little room. Zero means 2048; at least 512 and at most [MaxSignedBytes].
	// What does not fit is signed as less that requires no less: see [Token.Within].
	MaxBytes int
	// Now returns the current time. Nil means time.Now. Issue and expiry are the
	// only wall-clock times in Tidegate; a minute of disagreement between
	// machines is tolerated.
	Now func() time.Time
}

// Keyring signs and verifies tokens with HMAC-SHA256 (RFC 2104). It is safe for
// concurrent use, and its keys can be replaced while it is used.
type Keyring struct {
	keys     atomic.Pointer[[]Key]
	lifetime time.Duration
	lag      time.Duration
	max      int
	now      func() time.Time
}

// NewKeyring returns a key ring, or an error that wraps [ErrConfig] and names
// the field.
func NewKeyring(cfg KeyringConfig) (*Keyring, error) {
	k := &Keyring{lifetime: cfg.Lifetime, lag: cfg.LongestLag, max: cfg.MaxBytes, now: cfg.Now}
	if k.max == 0 {
		k.max = defaultBytes
	}
	if k.max < minBytes || k.max > MaxSignedBytes {
		return nil, fmt.Errorf("%w: KeyringConfig.MaxBytes is %d; use %d to %d, or zero for %d", ErrConfig, cfg.MaxBytes, minBytes, MaxSignedBytes, defaultBytes)
	}
	if k.lifetime == 0 {
		k.lifetime = defaultLife
	}
	if k.lifetime < time.Second || k.lifetime > maxLifetime {
		return nil, fmt.Errorf("%w: KeyringConfig.Lifetime is %v; use 1s to %v", ErrConfig, cfg.Lifetime, maxLifetime)
	}
	if k.lag == 0 {
		k.lag = defaultLongestLag
	}
	if k.lag < 0 || k.lifetime <= k.lag {
		return nil, fmt.Errorf("%w: KeyringConfig.Lifetime is %v and KeyringConfig.LongestLag %v: a session whose token has ended could read what is older than its writes; "+
			"raise Lifetime, or lower LongestLag here and in the databases' configuration", ErrConfig, k.lifetime, k.lag)
	}
	if k.now == nil {
		k.now = time.Now
	}
	if err := k.SetKeys(cfg.Keys...); err != nil {
		return nil, err
	}
	return k, nil
}

// SetKeys replaces the keys; the first one signs. On an error, which wraps
// [ErrConfig], the keys stay as they were.
func (k *Keyring) SetKeys(keys ...Key) error {
	if len(keys) == 0 || len(keys) > maxKeysCount {
		return fmt.Errorf("%w: KeyringConfig.Keys has %d keys; give 1 to %d", ErrConfig, len(keys), maxKeysCount)
	}
	own := make([]Key, len(keys))
	for i, key := range keys {
		if len(key.ID) == 0 || len(key.ID) > maxKeyID {
			return fmt.Errorf("%w: KeyringConfig.Keys[%d].ID has %d bytes; use 1 to %d", ErrConfig, i, len(key.ID), maxKeyID)
		}
		if len(key.Secret) < minSecret {
			return fmt.Errorf("%w: KeyringConfig.Keys[%d].Secret (%q) has %d bytes; use at least %d random ones", ErrConfig, i, key.ID, len(key.Secret), minSecret)
		}
		for _, o := range own[:i] {
			if o.ID == key.ID {
				return fmt.Errorf("%w: KeyringConfig.Keys[%d].ID repeats %q; use unique names", ErrConfig, i, key.ID)
			}
		}
		own[i] = Key{ID: key.ID, Secret: append([]byte(nil), key.Secret...)}
	}
	k.keys.Store(&own)
	return nil
}

// Lifetime returns how long a token is accepted after it was issued.
func (k *Keyring) Lifetime() time.Duration { return k.lifetime }

// LongestLag returns how old a replica's state may be that a session without a token
// reads. What keeps tokens for a client must keep them for longer.
func (k *Keyring) LongestLag() time.Duration { return k.lag }

func mac(key Key, msg []byte) []byte {
	h := hmac.New(sha256.New, key.Secret)
	h.Write([]byte(hmacContext))
	h.Write(msg)
	return h.Sum(nil)
}

// Sign returns the token as text for a client: URL-safe, at most
// [KeyringConfig.MaxBytes] long, valid for the ring's lifetime from now.
//
// Inside, after the prefix, in base64: key name, issue time and expiry in
// seconds, the binary token, and HMAC-SHA256 over all of that.
func (k *Keyring) Sign(t Token) string {
	key := (*k.keys.Load())[0]
	now := k.now()
	b := make([]byte, 0, 160)
	b = append(b, byte(len(key.ID)))
	b = append(b, key.ID...)
	b = binary.BigEndian.AppendUint64(b, uint64(now.Unix()))
	b = binary.BigEndian.AppendUint64(b, uint64(now.Add(k.lifetime).Unix()))
	room := base64.RawURLEncoding.DecodedLen(k.max-len(signedPrefix)) - len(b) - sha256.Size
	b = t.Within(min(room, MaxTokenBytes)).append(b)
	b = append(b, mac(key, b)...)
	return signedPrefix + base64.RawURLEncoding.EncodeToString(b)
}

// Verify returns the token that a client presented. Every error wraps
// [ErrToken]; go on with a new session then, and let it catch up by
// [Session.CatchUp]: what the client had seen is not known.
func (k *Keyring) Verify(signed string) (Token, error) {
	if len(signed) > MaxSignedBytes {
		return Token{}, fmt.Errorf("%w: %d bytes, at most %d", ErrTokenTooLarge, len(signed), MaxSignedBytes)
	}
	text, ok := strings.CutPrefix(signed, signedPrefix)
	if !ok {
		return Token{}, fmt.Errorf("%w: it does not start with %q", ErrTokenMalformed, signedPrefix)
	}
	// Strict, and no line breaks: one token has one text.
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") {
		return Token{}, fmt.Errorf("%w: not base64", ErrTokenMalformed)
	}
	if len(b) < 1 || len(b) < 1+int(b[0])+16+sha256.Size {
		return Token{}, fmt.Errorf("%w: cut short", ErrTokenMalformed)
	}
	id := string(b[1 : 1+int(b[0])])
	signedPart, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	var key *Key
	keys := *k.keys.Load()
	for i := range keys {
		if keys[i].ID == id {
			key = &keys[i]
		}
	}
	if key == nil {
		return Token{}, ErrTokenKey
	}
	if !hmac.Equal(sum, mac(*key, signedPart)) {
		return Token{}, ErrTokenSignature
	}
	rest := signedPart[1+int(b[0]):]
	issued := int64(binary.BigEndian.Uint64(rest))
	expires := int64(binary.BigEndian.Uint64(rest[8:]))
	now := k.now()
	// The verifier's lifetime binds too, so that shortening it takes effect.
	if now.Unix() >= expires || now.Unix() >= issued+int64(k.lifetime/time.Second) {
		return Token{}, ErrTokenExpired
	}
	if issued > now.Add(clockSkew).Unix() {
		return Token{}, ErrTokenFuture
	}
	return ParseBinary(rest[16:])
}
