package httpgate_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/httpgate"
)

// All that a request brings is merged, and the answer goes where it came from.
func TestSourcesAreMerged(t *testing.T) {
	t.Parallel()
	claim := httpgate.Claim(func(r *http.Request) (string, bool) {
		v := r.Header.Get("Claim")
		return v, v != ""
	})
	all := []httpgate.Source{httpgate.Header(""), httpgate.Header("X-Old"), httpgate.Cookie(httpgate.CookieConfig{}), claim}
	for _, c := range []struct {
		name   string
		brings map[string]string
		want   []string
	}{
		{"nothing", nil, []string{"Set-Cookie", httpgate.DefaultHeader, "X-Old"}},
		{"a header", map[string]string{httpgate.DefaultHeader: sign(t, at(10))}, []string{httpgate.DefaultHeader}},
		{"the other header", map[string]string{"X-Old": sign(t, at(10))}, []string{"X-Old"}},
		{"a cookie", map[string]string{"Cookie": cookieName(1) + "=" + sign(t, at(10))}, []string{"Set-Cookie"}},
		{"a claim", map[string]string{"Claim": sign(t, at(10))}, []string{"Set-Cookie", httpgate.DefaultHeader, "X-Old"}},
		{
			"all of them", map[string]string{
				httpgate.DefaultHeader: sign(t, at(7)) + "," + sign(t, seen(1)), "X-Old": sign(t, seen(2)),
				"Cookie": "a=b; " + cookieName(1) + `="` + sign(t, at(10)) + `"; c=d`, "Claim": sign(t, at(9)),
			},
			[]string{"Set-Cookie", httpgate.DefaultHeader, "X-Old"},
		},
	} {
		m := newGate(t, func(cfg *httpgate.Config) { cfg.Sources = all })
		r := request()
		for k, v := range c.brings {
			r.Header.Set(k, v)
		}
		w := handle(m, func(_ http.ResponseWriter, r *http.Request) {
			mark := tidegate.Mark{}
			for _, mark = range tidegate.SessionFrom(r.Context()).Token().Marks() {
			}
			if want := c.brings != nil; want != (mark.Position == tidegate.At(10)) {
				t.Errorf("%s: %+v", c.name, mark)
			}
			slices.Sort(mark.Seen)
			if want := len(c.brings) > 1; want != slices.Equal(mark.Seen, []tidegate.Incarnation{1, 2}) {
				t.Errorf("%s: seen is %v", c.name, mark.Seen)
			}
			note(r.Context(), at(11))
		}, r)
		var got []string
		for _, name := range []string{"Set-Cookie", httpgate.DefaultHeader, "X-Old"} {
			if w.Header().Get(name) != "" {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: the answer is in %q, want %q", c.name, got, c.want)
		}
	}
}

// A token that an inner handler has passed on from a service behind it stays beside
// ours: either may say what the other does not.
func TestTokenOfAServiceBehindStays(t *testing.T) {
	t.Parallel()
	w := handle(newGate(t, nil), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add(httpgate.DefaultHeader, "another")
		note(r.Context(), at(10))
	}, request())
	values := w.Header().Values(httpgate.DefaultHeader)
	if len(values) != 2 || values[0] != "another" {
		t.Fatalf("the answer has %q", values)
	}
	if m := verify(t, values[1]); len(m) != 1 || m[0].Position != tidegate.At(10) {
		t.Errorf("ours says %+v", m)
	}
}

func TestCookieAttributes(t *testing.T) {
	t.Parallel()
	const day = "Max-Age=86400; "
	for _, c := range []struct {
		name string
		cfg  httpgate.CookieConfig
		want string
		gone string
	}{
		{"by default", httpgate.CookieConfig{}, "__Host-tg.*; Path=/; " + day + "HttpOnly; Secure; SameSite=Lax", "Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax"},
		{"in development", httpgate.CookieConfig{Insecure: true}, "tg.*; Path=/; " + day + "HttpOnly; SameSite=Lax", "Path=/; Max-Age=0; HttpOnly; SameSite=Lax"},
		{"below a path", httpgate.CookieConfig{Path: "/app"}, "tg.*; Path=/app; " + day + "HttpOnly; Secure; SameSite=Lax", "Path=/app; Max-Age=0; HttpOnly; Secure; SameSite=Lax"},
		{"for subdomains", httpgate.CookieConfig{Domain: "example.org"}, "tg.*; Path=/; Domain=example.org; " + day + "HttpOnly; Secure; SameSite=Lax", "Path=/; Domain=example.org; Max-Age=0; HttpOnly; Secure; SameSite=Lax"},
		{
			"all else", httpgate.CookieConfig{Prefix: "__Secure-x-", SameSite: http.SameSiteNoneMode, MaxAge: 90 * time.Minute, Scriptable: true},
			"__Secure-x-*; Path=/; Max-Age=5400; Secure; SameSite=None", "Path=/; Max-Age=0; Secure; SameSite=None",
		},
	} {
		m := newGate(t, func(cfg *httpgate.Config) { cfg.Sources = []httpgate.Source{httpgate.Cookie(c.cfg)} })
		prefix, _, _ := strings.Cut(c.want, "*")
		old := prefix + "0123456789abcdef"
		r := request()
		r.Header.Set("Cookie", old+"="+sign(t, at(10)))
		w := handle(m, func(_ http.ResponseWriter, r *http.Request) { note(r.Context(), at(11)) }, r)
		set := w.Header().Values("Set-Cookie")
		if len(set) != 2 {
			t.Fatalf("%s: %q", c.name, set)
		}
		name, rest, _ := strings.Cut(set[0], "=")
		token, attributes, _ := strings.Cut(rest, ";")
		if got := prefix + "*;" + attributes; got != c.want || !strings.HasPrefix(name, prefix) || verify(t, token)[0].Position != tidegate.At(11) {
			t.Errorf("%s: %q", c.name, set[0])
		}
		if want := old + "=; " + c.gone; set[1] != want {
			t.Errorf("%s: %q, want %q", c.name, set[1], want)
		}
	}
}

// Names that no response of ours has made are somebody else's.
func TestCookiesOfOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	m := newGate(t, func(cfg *httpgate.Config) { cfg.Sources = []httpgate.Source{httpgate.Cookie(httpgate.CookieConfig{})} })
	r := request()
	for _, name := range []string{"tg.0123456789abcdef", "__Host-tg.", "__Host-tg.short", "__Host-tg.0123456789abcdef0", "__Host-tg.0123456789abcde(", "__host-tg.0123456789abcdef", "other"} {
		r.Header.Add("Cookie", name+"="+sign(t, at(99)))
	}
	r.Header.Add("Cookie", ";;=;"+cookieName(1))
	w := handle(m, func(_ http.ResponseWriter, r *http.Request) { note(r.Context(), at(10)) }, r)
	set := w.Header().Values("Set-Cookie")
	if got := m.Stats().Refused; len(set) != 2 || !strings.HasPrefix(set[1], cookieName(1)+"=;") || got != (httpgate.Refusals{Malformed: 1}) {
		t.Errorf("%q, %+v", set, got)
	}
}

// More tokens than a client should hold are replaced by one, whatever the handler
// does.
func TestManyTokensBecomeOne(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]bool{8: false, 9: true} {
		m := newGate(t, func(cfg *httpgate.Config) {
			cfg.Sources = []httpgate.Source{httpgate.Cookie(httpgate.CookieConfig{}), httpgate.Header("")}
		})
		byCookie, byHeader := request(), request()
		for i := range n {
			text := sign(t, at(uint64(10+i)))
			byCookie.Header.Add("Cookie", cookieName(i)+"="+text)
			byHeader.Header.Add(httpgate.DefaultHeader, text+";x")
		}
		for _, r := range []*http.Request{byCookie, byHeader} {
			w := handle(m, func(http.ResponseWriter, *http.Request) {}, r)
			cookies := w.Result().Cookies()
			got, ok := emitted(t, w.Header())
			if len(cookies) > 0 {
				got, ok = verify(t, cookies[0].Value)[0], true
			}
			if ok != want || ok && got.Position != tidegate.At(uint64(9+n)) {
				t.Errorf("%d tokens: %+v, %v", n, got, ok)
			}
		}
	}
}

func TestCacheControl(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		has, want []string
	}{
		{nil, []string{"private, no-store"}},
		{[]string{"public, max-age=3600"}, []string{"private, no-store"}},
		{[]string{"Public,S-MaxAge=60", "stale-while-revalidate = 5"}, []string{"private, no-store"}},
		{[]string{"private, no-store"}, []string{"private, no-store"}},
		{[]string{"max-age=0, no-cache, must-revalidate, no-transform"}, []string{"private, no-store, no-cache, must-revalidate, no-transform"}},
		{[]string{`private="set-cookie, x", no-transform, ext="a, public"`}, []string{`private, no-store, no-transform, ext="a, public"`}},
	} {
		m := newGate(t, func(cfg *httpgate.Config) { cfg.Sources = []httpgate.Source{httpgate.Cookie(httpgate.CookieConfig{})} })
		for _, commits := range []bool{false, true} {
			w := handle(m, func(w http.ResponseWriter, r *http.Request) {
				for _, v := range c.has {
					w.Header().Add("Cache-Control", v)
				}
				w.Header().Set("CDN-Cache-Control", "max-age=60")
				w.Header().Set("Vary", "Accept")
				if commits {
					note(r.Context(), at(10))
				}
			}, request())
			want, cdn := c.has, "max-age=60"
			if commits {
				want, cdn = c.want, "no-store"
			}
			if got := w.Header().Values("Cache-Control"); !slices.Equal(got, want) {
				t.Errorf("%q becomes %q, want %q", c.has, got, want)
			}
			if got := w.Header().Get("CDN-Cache-Control"); got != cdn {
				t.Errorf("%q: CDN-Cache-Control is %q", c.has, got)
			}
			if got := w.Header().Values("Vary"); !slices.Equal(got, []string{"Accept"}) {
				t.Errorf("%q: Vary is %q", c.has, got)
			}
		}
	}
}

func TestConfigThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	cookie := func(c httpgate.CookieConfig) httpgate.Config {
		return httpgate.Config{Sources: []httpgate.Source{httpgate.Cookie(c)}}
	}
	claim := httpgate.Claim(func(*http.Request) (string, bool) { return "", false })
	long := make([]string, tidegate.MaxMarks+1)
	for i := range long {
		long[i] = "c"
	}
	for _, c := range []struct {
		cfg  httpgate.Config
		want string
	}{
		{httpgate.Config{Clusters: []string{}}, "Config.Clusters"},
		{httpgate.Config{Clusters: long}, "Config.Clusters"},
		{httpgate.Config{Clusters: []string{""}}, "Config.Clusters[0]"},
		{httpgate.Config{Clusters: []string{strings.Repeat("c", 33)}}, "Config.Clusters[0]"},
		{httpgate.Config{MaxTokens: -1}, "Config.MaxTokens"},
		{httpgate.Config{MaxTokens: 65}, "Config.MaxTokens"},
		{httpgate.Config{Sources: []httpgate.Source{{}}}, "Config.Sources[0]"},
		{httpgate.Config{Sources: []httpgate.Source{claim}}, "add Header or Cookie"},
		{httpgate.Config{Sources: []httpgate.Source{httpgate.Store(nil, nil), httpgate.Header("")}}, "Config.Sources[0] is a Store"},
		{httpgate.Config{Sources: []httpgate.Source{httpgate.Header("")}, Keyring: nil, Clusters: nil, MaxTokens: 0}, ""},
		{httpgate.Config{Sources: make([]httpgate.Source, 9)}, "Config.Sources has 9"},
		{httpgate.Config{Sources: []httpgate.Source{httpgate.Header("a b")}}, "Config.Sources[0]"},
		{httpgate.Config{Sources: []httpgate.Source{httpgate.Header("Cookie")}}, "Config.Sources[0]"},
		{httpgate.Config{Sources: []httpgate.Source{httpgate.Header(""), httpgate.Header("x-consistency-token")}}, "Config.Sources[1]"},
		{httpgate.Config{Sources: []httpgate.Source{httpgate.Cookie(httpgate.CookieConfig{Prefix: "a"}), httpgate.Cookie(httpgate.CookieConfig{Prefix: "ab"})}}, "Config.Sources[1]"},
		{cookie(httpgate.CookieConfig{Prefix: "a b"}), "CookieConfig.Prefix"},
		{cookie(httpgate.CookieConfig{Prefix: "__Host-x", Insecure: true}), "CookieConfig.Prefix"},
		{cookie(httpgate.CookieConfig{Prefix: "__Host-x", Path: "/a"}), "CookieConfig.Prefix"},
		{cookie(httpgate.CookieConfig{Prefix: "__Host-x", Domain: "example.org"}), "CookieConfig.Prefix"},
		{cookie(httpgate.CookieConfig{Prefix: "__Secure-x", Insecure: true}), "CookieConfig.Prefix"},
		{cookie(httpgate.CookieConfig{SameSite: http.SameSiteNoneMode, Insecure: true}), "CookieConfig.SameSite"},
		{cookie(httpgate.CookieConfig{MaxAge: time.Millisecond}), "CookieConfig.MaxAge"},
		{cookie(httpgate.CookieConfig{MaxAge: 25 * time.Hour}), "CookieConfig.MaxAge"},
		{cookie(httpgate.CookieConfig{MaxAge: time.Hour}), "KeyringConfig.LongestLag"},
		{cookie(httpgate.CookieConfig{Domain: "a b"}), "CookieConfig"},
		{cookie(httpgate.CookieConfig{Path: "/;"}), "CookieConfig"},
	} {
		c.cfg.Keyring = newKeyring(t, tidegate.KeyringConfig{})
		if c.cfg.Clusters == nil {
			c.cfg.Clusters = []string{"main"}
		}
		_, err := httpgate.New(c.cfg)
		if c.want == "" {
			if err != nil {
				t.Errorf("%+v: %v", c.cfg, err)
			}
			continue
		}
		if !errors.Is(err, tidegate.ErrConfig) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.want, err)
		}
	}
	if _, err := httpgate.New(httpgate.Config{Clusters: []string{"main"}}); !errors.Is(err, tidegate.ErrConfig) || !strings.Contains(err.Error(), "Config.Keyring") {
		t.Errorf("no key ring: %v", err)
	}
}
