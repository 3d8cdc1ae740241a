package httpgate

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/tidegatedb/tidegate"
)

// Config configures a [Middleware].
type Config struct {
	// Keyring verifies and signs tokens. It is required, and all instances need the
	// same keys.
	Keyring *tidegate.Keyring
	// Clusters names the clusters that a session has to catch up with when its token
	// is missing or refused. At least one is required. List every cluster whose
	// positions pass here, also those of services that are called through a
	// [Transport]: a token that names none of them is refused as foreign.
	Clusters []string
	// Sources are where a request's tokens are looked for, and a response's is put.
	// All tokens found are merged; a session that goes on from several shares its
	// replica with the first one's. Empty means [Header] with its default name.
	Sources []Source
	// Known tells whether a request without a token belongs to somebody who can have
	// a history: there is a session key, or an authenticated user. Nil means who has
	// a key for a [Store] among the Sources.
	Known func(*http.Request) bool
	// Missing says what a request without any token gets. Nil means [CatchUp] when
	// Known says so, and [Fresh] otherwise.
	Missing func(*http.Request) Policy
	// VisitorReads makes a response carry a token also when somebody who brought
	// none, and is not Known, has only read on replicas. Without it such visitors
	// are free to use cached pages, and have no monotonic reads from one request to
	// the next; a write, or a read on the primary, gives them a token all the same.
	VisitorReads bool
	// MaxTokens is how many tokens a client may hold before a response replaces them
	// by one although nothing has changed. Zero means 8; at most 64. A request is read up
	// to four times as many, oldest first; more are refused.
	MaxTokens int
	// Late is called with what a session came to require after the first byte of the
	// response, when its token could not go out any more and no [Store] has kept it. It is called at the end of
	// the request, in its goroutine, with the request as it arrived. Nil means that
	// it is only counted.
	Late func(*http.Request, tidegate.Token)
}

// Policy is what a request without a token gets.
type Policy uint8

const (
	// Fresh is a new session that requires nothing: for somebody who has not been
	// here before.
	Fresh Policy = iota
	// CatchUp is a new session that must see all that is committed by now: for
	// somebody whose history is not known.
	CatchUp
)

// String returns "fresh" or "catch-up".
func (p Policy) String() string {
	if p == Fresh {
		return "fresh"
	}
	return "catch-up"
}

const (
	defaultMaxTokens = 8
	highestMaxTokens = 64
	// readFactor is how many times MaxTokens of a request's tokens are read.
	readFactor = 4
	maxSources = 8
)

// withDefaults returns a copy with the defaults filled in.
func (c Config) withDefaults() Config {
	c.Clusters = append([]string(nil), c.Clusters...)
	c.Sources = append([]Source(nil), c.Sources...)
	if len(c.Sources) == 0 {
		c.Sources = []Source{Header("")}
	}
	for i := range c.Sources {
		if s := &c.Sources[i]; s.cookie != nil {
			cookie := s.cookie.withDefaults(c.Keyring)
			s.cookie = &cookie
		}
	}
	if c.MaxTokens == 0 {
		c.MaxTokens = defaultMaxTokens
	}
	if c.Known == nil {
		c.Known = c.keyed()
	}
	if c.Missing == nil {
		known := c.Known
		c.Missing = func(r *http.Request) Policy {
			if known(r) {
				return CatchUp
			}
			return Fresh
		}
	}
	return c
}

// keyed tells who has a key for a store.
func (c *Config) keyed() func(*http.Request) bool {
	for _, s := range c.Sources {
		if s.store != nil && s.store.key != nil {
			return func(r *http.Request) bool {
				key, ok := s.store.key(r)
				return ok && key != ""
			}
		}
	}
	return func(*http.Request) bool { return false }
}

// validate returns an error that wraps tidegate.ErrConfig and names the field.
func (c *Config) validate() error {
	if c.MaxTokens < 1 || c.MaxTokens > highestMaxTokens {
		return fmt.Errorf("%w: Config.MaxTokens is %d; use 1 to %d", tidegate.ErrConfig, c.MaxTokens, highestMaxTokens)
	}
	if len(c.Sources) > maxSources {
		return fmt.Errorf("%w: Config.Sources has %d sources; use at most %d", tidegate.ErrConfig, len(c.Sources), maxSources)
	}
	carries := false
	for i, s := range c.Sources {
		if err := s.validate(c.Keyring); err != nil {
			return fmt.Errorf("%w: Config.Sources[%d]%w", tidegate.ErrConfig, i, err)
		}
		carries = carries || s.writable()
		if s.store != nil {
			for _, name := range c.Clusters {
				if !slices.Contains(s.store.keeper.Clusters(), name) {
					return fmt.Errorf("%w: Config.Clusters names %q and KeeperConfig.Clusters of Config.Sources[%d] does not: a session that the store has lost would not catch up there; "+
						"name the same clusters in both", tidegate.ErrConfig, name, i)
				}
			}
		}
		for j, o := range c.Sources[:i] {
			if s.overlaps(o) {
				return fmt.Errorf("%w: Config.Sources[%d] reads what Config.Sources[%d] reads; use one store, and names of which none begins another", tidegate.ErrConfig, i, j)
			}
		}
	}
	if !carries {
		return fmt.Errorf("%w: Config.Sources has nothing that a response can carry a token in, which claims need always and stores when they fail; add Header or Cookie", tidegate.ErrConfig)
	}
	return nil
}

// validateKeys checks what a Middleware and a Transport have in common.
func validateKeys(name string, keyring *tidegate.Keyring, clusters []string) error {
	if keyring == nil {
		return fmt.Errorf("%w: %s.Keyring is nil; use tidegate.NewKeyring", tidegate.ErrConfig, name)
	}
	if len(clusters) == 0 {
		return fmt.Errorf("%w: %s.Clusters is empty; name the clusters whose positions tokens carry here", tidegate.ErrConfig, name)
	}
	if len(clusters) > tidegate.MaxMarks {
		return fmt.Errorf("%w: %s.Clusters has %d names; a token carries at most %d", tidegate.ErrConfig, name, len(clusters), tidegate.MaxMarks)
	}
	for i, c := range clusters {
		if len(c) == 0 || len(c) > tidegate.MaxClusterName {
			return fmt.Errorf("%w: %s.Clusters[%d] (%q) has %d bytes; use 1 to %d", tidegate.ErrConfig, name, i, c, len(c), tidegate.MaxClusterName)
		}
	}
	return nil
}

// CookieConfig configures a [Cookie] source. The zero CookieConfig is what a
// browser should get over https.
type CookieConfig struct {
	// Prefix begins the name of every cookie; a random part follows. Empty means
	// "__Host-tg.", or "tg." when Insecure, Domain or another Path is set. Applications
	// that share a host but no keys need prefixes of their own.
	Prefix string
	// Path is where the client sends the cookies to. Empty means "/".
	Path string
	// Domain makes the client send them to subdomains too. Empty means to the very
	// host only.
	Domain string
	// SameSite is the attribute of that name. Zero means Lax.
	SameSite http.SameSite
	// MaxAge is how long the client keeps a token, in whole seconds. Zero means the
	// key ring's lifetime, which is also the most. A client that has forgotten its tokens
	// starts anew, as Config.Missing says.
	MaxAge time.Duration
	// Insecure leaves the Secure attribute out, for development over plain http:
	// clients then send and accept the cookies without encryption.
	Insecure bool
	// Scriptable leaves the HttpOnly attribute out: scripts of the page can then
	// read the cookies.
	Scriptable bool
}

// hostPrefix is the cookie name prefix that clients take only with Secure, with
// Path=/ and without Domain.
const hostPrefix = "__Host-"

func (c CookieConfig) withDefaults(k *tidegate.Keyring) CookieConfig {
	if c.Path == "" {
		c.Path = "/"
	}
	if c.Prefix == "" {
		c.Prefix = "tg."
		if !c.Insecure && c.Domain == "" && c.Path == "/" {
			c.Prefix = hostPrefix + c.Prefix
		}
	}
	if c.SameSite == 0 {
		c.SameSite = http.SameSiteLaxMode
	}
	if c.MaxAge == 0 {
		c.MaxAge = k.Lifetime().Truncate(time.Second)
	}
	return c
}
