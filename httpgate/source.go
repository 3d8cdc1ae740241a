package httpgate

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tidegatedb/tidegate"
)

// DefaultHeader is the name of the header that carries tokens.
const DefaultHeader = "X-Consistency-Token"

// Source is one way in which requests bring tokens, made by [Header], [Cookie],
// [Claim] or [Store]. The zero Source cannot be used.
type Source struct {
	header string
	cookie *CookieConfig
	claim  func(*http.Request) (string, bool)
	store  *storeSource
}

type storeSource struct {
	keeper *tidegate.Keeper
	key    func(*http.Request) (string, bool)
}

// Header is a header of that name in requests and responses; "" means
// [DefaultHeader]. A request may bring several tokens, separated by commas or in
// repeated headers; a response has at most one. See [Jar] for what a client does
// with it.
func Header(name string) Source {
	if name == "" {
		name = DefaultHeader
	}
	return Source{header: http.CanonicalHeaderKey(name)}
}

// Cookie is a set of cookies with a common prefix. A response adds one under a
// name that was never used before, and deletes those that its request brought.
func Cookie(cfg CookieConfig) Source { return Source{cookie: &cfg} }

// Claim is a token that the application has put into a credential of its own,
// such as a JWT: the function returns its text, and false when there is none. The
// application verifies the credential; the token in it is verified like any
// other. Responses cannot change a claim, so another source has to be there too; and
// the credential must not outlive the key ring's lifetime: from then on each of its
// requests would bring a token that is refused, and catch up.
func Claim(token func(*http.Request) (string, bool)) Source { return Source{claim: token} }

// Store is what a keeper has under a key of the request, such as the application's own
// session: the function returns it, and false when there is none. It is asked for
// when the request first needs it. What the request's session requires then is saved
// before the first byte of the response, and again at the end if there was more; what
// could not be saved goes out with the response, so a Header or a Cookie has to be
// there too. A request that brings tokens there as well has its history from both.
//
// The application verifies the key. A request with one is Known, if Config.Known does
// not say otherwise, and what the keeper does not have is caught up with, whatever
// Config.Missing says.
func Store(keeper *tidegate.Keeper, key func(*http.Request) (string, bool)) Source {
	return Source{store: &storeSource{keeper, key}}
}

// writable reports whether a response can carry a token there.
func (s Source) writable() bool { return s.header != "" || s.cookie != nil }

// overlaps reports whether one thing of a request could be read by both.
func (s Source) overlaps(o Source) bool {
	if s.store != nil && o.store != nil {
		return true
	}
	if s.cookie != nil && o.cookie != nil {
		return strings.HasPrefix(s.cookie.Prefix, o.cookie.Prefix) || strings.HasPrefix(o.cookie.Prefix, s.cookie.Prefix)
	}
	return s.header != "" && s.header == o.header
}

// validate returns an error whose text goes on from the name of the source.
func (s Source) validate(k *tidegate.Keyring) error {
	switch {
	case s.claim != nil:
		return nil
	case s.store != nil && (s.store.keeper == nil || s.store.key == nil):
		return errors.New(" is a Store without a keeper or a key; use tidegate.NewKeeper and a function")
	case s.store != nil:
		return nil
	case s.cookie != nil:
		return s.cookie.validate(k)
	case s.header == "":
		return errors.New(" is the zero Source, or a Claim without a function; use Header, Cookie, Claim or Store")
	case !isName(s.header) || s.header == "Cookie" || s.header == "Set-Cookie":
		return fmt.Errorf(": the header name %q cannot be used; use one such as %s", s.header, DefaultHeader)
	}
	return nil
}

func (c *CookieConfig) validate(k *tidegate.Keyring) error {
	switch {
	case !isName(c.Prefix):
		return fmt.Errorf(": CookieConfig.Prefix %q cannot begin a cookie's name; use letters, digits and one of ._-", c.Prefix)
	case strings.HasPrefix(c.Prefix, hostPrefix) && (c.Insecure || c.Domain != "" || c.Path != "/"):
		return fmt.Errorf(": CookieConfig.Prefix %q is for cookies with Secure, Path=/ and no Domain; leave it empty", c.Prefix)
	case strings.HasPrefix(c.Prefix, "__Secure-") && c.Insecure:
		return fmt.Errorf(": CookieConfig.Prefix %q is for cookies with Secure; leave it empty or do not set Insecure", c.Prefix)
	case c.SameSite == http.SameSiteNoneMode && c.Insecure:
		return errors.New(": CookieConfig.SameSite None is for cookies with Secure; do not set Insecure")
	case c.MaxAge < time.Second || c.MaxAge > k.Lifetime():
		return fmt.Errorf(": CookieConfig.MaxAge is %v; use 1s to the key ring's lifetime, %v", c.MaxAge, k.Lifetime())
	case c.MaxAge <= k.LongestLag():
		return fmt.Errorf(": CookieConfig.MaxAge is %v and KeyringConfig.LongestLag %v: a browser that has forgotten its tokens could be shown what is older than its writes; "+
			"raise MaxAge, or lower LongestLag", c.MaxAge, k.LongestLag())
	}
	if err := c.cookie("x", "x").Valid(); err != nil {
		return fmt.Errorf(": CookieConfig: %w", err)
	}
	return nil
}

// cookie returns the cookie that keeps a token under a name.
func (c *CookieConfig) cookie(name, token string) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: token,
		Path: c.Path, Domain: c.Domain, MaxAge: int(c.MaxAge / time.Second),
		Secure: !c.Insecure, HttpOnly: !c.Scriptable, SameSite: c.SameSite,
	}
}

// isName reports whether s is a token as headers and cookies use it for names
// (RFC 9110, 5.6.2).
func isName(s string) bool {
	for i := range len(s) {
		if !isTokenByte(s[i]) {
			return false
		}
	}
	return s != ""
}

func isTokenByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// idBytes is the entropy of the name of a token in a client, and idLength its
// length as text: no two tokens of one client may have the same, ever.
const (
	idBytes  = 12
	idLength = 16
)

func newID() string {
	var id [idBytes]byte
	rand.Read(id[:])
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// isID reports whether the text can be what follows the prefix in a name of ours.
func isID(s string) bool {
	if len(s) != idLength {
		return false
	}
	for i := range len(s) {
		if !isTokenByte(s[i]) {
			return false
		}
	}
	return true
}

// eachItem calls f for every item in a list of header values, until f returns
// false.
func eachItem(values []string, f func(item string) bool) {
	for _, v := range values {
		for v != "" {
			var item string
			item, v, _ = strings.Cut(v, ",")
			if item = strings.Trim(item, " \t"); item != "" && !f(item) {
				return
			}
		}
	}
}

// eachToken calls f for every token in a list of header values, until f returns
// false.
func eachToken(values []string, f func(token string) bool) {
	eachItem(values, func(item string) bool {
		token, _, _ := strings.Cut(item, ";")
		return f(strings.TrimRight(token, " \t"))
	})
}

// headerValue returns what a response's header says. The ID makes it differ from
// every other, as the name of a cookie does: two responses can carry the same
// token and mean different moments, and a client that forgets the one that it has
// sent must not forget the other.
func headerValue(token string) string { return token + ";" + newID() }

// eachCookie calls f for every cookie of the source in the values of the Cookie
// header, until f returns false. Clients list older cookies first (RFC 6265, 5.4).
func (c *CookieConfig) eachCookie(values []string, f func(name, token string) bool) {
	for _, v := range values {
		for v != "" {
			var item string
			item, v, _ = strings.Cut(v, ";")
			name, token, _ := strings.Cut(strings.Trim(item, " \t"), "=")
			id, ours := strings.CutPrefix(name, c.Prefix)
			if ours && isID(id) && !f(name, strings.Trim(token, `"`)) {
				return
			}
		}
	}
}
