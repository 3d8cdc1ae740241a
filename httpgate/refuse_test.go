package httpgate_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/httpgate"
)

// refused are tokens that must not count, and what they are counted as.
func refused(t *testing.T) map[string]struct {
	tokens []string
	want   httpgate.Refusals
} {
	good := sign(t, at(99))
	by := func(cfg tidegate.KeyringConfig, marks ...tidegate.Mark) string {
		text := newKeyring(t, cfg).Sign(tidegate.NewToken(marks...))
		return text
	}
	shifted := func(d time.Duration) string {
		return by(tidegate.KeyringConfig{Now: func() time.Time { return time.Now().Add(d) }}, at(99))
	}
	altered := good[:len(good)-10] + swap(good[len(good)-10]) + good[len(good)-9:]
	return map[string]struct {
		tokens []string
		want   httpgate.Refusals
	}{
		"garbage":            {[]string{"garbage"}, httpgate.Refusals{Malformed: 1}},
		"binary":             {[]string{"tg1.\x01\xff"}, httpgate.Refusals{Malformed: 1}},
		"of a later version": {[]string{"tg2." + good[4:]}, httpgate.Refusals{Malformed: 1}},
		"cut short":          {[]string{good[:40]}, httpgate.Refusals{Malformed: 1}},
		"altered":            {[]string{altered}, httpgate.Refusals{Signature: 1}},
		"forged":             {[]string{by(tidegate.KeyringConfig{Keys: []tidegate.Key{{ID: "k", Secret: secret(2)}}}, at(99))}, httpgate.Refusals{Signature: 1}},
		"of a retired key":   {[]string{by(tidegate.KeyringConfig{Keys: []tidegate.Key{{ID: "old", Secret: secret(1)}}}, at(99))}, httpgate.Refusals{Key: 1}},
		"expired":            {[]string{shifted(-25 * time.Hour)}, httpgate.Refusals{Expired: 1}},
		"of the far future":  {[]string{shifted(time.Hour)}, httpgate.Refusals{Future: 1}},
		"too large":          {[]string{"tg1." + strings.Repeat("A", tidegate.MaxSignedBytes)}, httpgate.Refusals{TooLarge: 1}},
		"of another cluster": {[]string{sign(t, tidegate.Mark{Cluster: "else", Position: tidegate.At(99)})}, httpgate.Refusals{Foreign: 1}},
		"several":            {[]string{"a, b", "c"}, httpgate.Refusals{Malformed: 3}},
		"one of two":         {[]string{sign(t, at(10)), altered}, httpgate.Refusals{Signature: 1}},
	}
}

func swap(c byte) string {
	if c == 'A' {
		return "B"
	}
	return "A"
}

// A token that is refused requires nothing, costs a catch-up, and is replaced. It
// is never an error of the request, wherever it comes from.
func TestRefusedTokens(t *testing.T) {
	t.Parallel()
	for name, c := range refused(t) {
		for _, source := range []string{"header", "cookie", "claim"} {
			m := newGate(t, func(cfg *httpgate.Config) {
				cfg.Sources = []httpgate.Source{httpgate.Header(""), httpgate.Cookie(httpgate.CookieConfig{})}
				if source == "claim" {
					cfg.Sources = append(cfg.Sources, httpgate.Claim(func(r *http.Request) (string, bool) {
						return strings.Join(c.tokens, ","), true
					}))
				}
			})
			r := request()
			switch source {
			case "header":
				r = request(c.tokens...)
			case "cookie":
				for i, text := range strings.Split(strings.Join(c.tokens, ","), ",") {
					r.Header.Add("Cookie", cookieName(i)+"="+strings.TrimSpace(text))
				}
			}
			w := handle(m, func(_ http.ResponseWriter, r *http.Request) {
				marks := tidegate.SessionFrom(r.Context()).Token().Marks()
				want := tidegate.Position{}
				if name == "one of two" {
					want = tidegate.At(10)
				}
				catchUp := false
				for _, m := range marks {
					if m.Cluster != "main" || m.Position != want && !m.Position.IsZero() {
						t.Errorf("%s, %s: the session requires %+v", name, source, m)
					}
					catchUp = catchUp || m.CatchUp
				}
				if !catchUp {
					t.Errorf("%s, %s: it need not catch up: %+v", name, source, marks)
				}
			}, r)
			got := m.Stats()
			if w.Code != 200 || got.Refused != c.want || got.Refused.Total() == 0 || got.CatchUps != 1 || got.Fresh != 0 || got.Emitted != 1 {
				t.Errorf("%s, %s: status %d, %+v", name, source, w.Code, got)
			}
			if cookies := w.Result().Cookies(); source == "cookie" {
				if want := len(strings.Split(strings.Join(c.tokens, ","), ",")); len(cookies) != 1+want {
					t.Errorf("%s: %d cookies, want one and %d deleted: %v", name, len(cookies), want, cookies)
				}
			}
		}
	}
}

// cookieName returns a name as responses make them.
func cookieName(i int) string {
	return "__Host-tg." + strings.Repeat(string(rune('a'+i%26)), 15) + string(rune('a'+i/26))
}

// More tokens than are read: the oldest ones count, and what the others require is
// not known.
func TestTooManyTokens(t *testing.T) {
	t.Parallel()
	m := newGate(t, func(cfg *httpgate.Config) {
		cfg.MaxTokens = 2
		cfg.Sources = []httpgate.Source{httpgate.Cookie(httpgate.CookieConfig{})}
	})
	r := request()
	for i := range 11 {
		r.Header.Add("Cookie", cookieName(i)+"="+sign(t, at(uint64(10+i))))
	}
	w := handle(m, func(_ http.ResponseWriter, r *http.Request) {
		marks := tidegate.SessionFrom(r.Context()).Token().Marks()
		if len(marks) != 2 || marks[0].Position != tidegate.At(17) || !marks[1].CatchUp {
			t.Errorf("%+v", marks)
		}
	}, r)
	deleted := map[string]bool{}
	for _, c := range w.Result().Cookies() {
		deleted[c.Name] = c.MaxAge < 0
	}
	for i := range 11 {
		if deleted[cookieName(i)] != (i < 8) {
			t.Errorf("cookie %d is deleted: %v", i, deleted[cookieName(i)])
		}
	}
	if got := m.Stats(); got.Refused != (httpgate.Refusals{TooMany: 1}) || got.CatchUps != 1 {
		t.Errorf("%+v", got)
	}
}

// A token of two clusters is taken whole where one of them is known: the other's
// positions go through.
func TestTokenOfTwoClusters(t *testing.T) {
	t.Parallel()
	other := tidegate.Mark{Cluster: "else", Position: tidegate.At(7)}
	for _, brings := range [][]tidegate.Mark{{at(10), other}, {other, at(10)}} {
		m := newGate(t, nil)
		w := handle(m, func(_ http.ResponseWriter, r *http.Request) { note(r.Context(), at(20)) }, request(sign(t, brings...)))
		got := map[string]tidegate.Position{}
		for _, mark := range verify(t, w.Header().Get(httpgate.DefaultHeader)) {
			got[mark.Cluster] = mark.Position
		}
		if len(got) != 2 || got["main"] != tidegate.At(20) || got["else"] != tidegate.At(7) || m.Stats().Refused.Total() != 0 {
			t.Errorf("%+v, %+v", got, m.Stats())
		}
	}
}

// While keys are rotated both are good, and answers are signed with the new one.
func TestRotatedKey(t *testing.T) {
	t.Parallel()
	ring := newKeyring(t, tidegate.KeyringConfig{Keys: []tidegate.Key{{ID: "new", Secret: secret(2)}, {ID: "k", Secret: secret(1)}}})
	m := newGate(t, func(cfg *httpgate.Config) { cfg.Keyring = ring })
	w := handle(m, func(_ http.ResponseWriter, r *http.Request) { note(r.Context(), at(20)) }, request(sign(t, at(10))))
	text, _, _ := strings.Cut(w.Header().Get(httpgate.DefaultHeader), ";")
	if err := ring.SetKeys(tidegate.Key{ID: "new", Secret: secret(2)}); err != nil {
		t.Fatal(err)
	}
	if token, err := ring.Verify(text); err != nil || token.Marks()[0].Position != tidegate.At(20) {
		t.Errorf("%+v, %v", token.Marks(), err)
	}
	if got := m.Stats(); got.Refused.Total() != 0 {
		t.Errorf("%+v", got)
	}
}

func TestMissingToken(t *testing.T) {
	t.Parallel()
	known := func(r *http.Request) bool { return r.Header.Get("Authorization") != "" }
	for _, c := range []struct {
		name     string
		edit     func(*httpgate.Config)
		user     bool
		brings   []string
		catchUps uint64
		fresh    uint64
	}{
		{name: "a visitor", fresh: 1},
		{name: "nobody is known", user: true, fresh: 1},
		{name: "a visitor where users are known", edit: func(c *httpgate.Config) { c.Known = known }, fresh: 1},
		{name: "a user", edit: func(c *httpgate.Config) { c.Known = known }, user: true, catchUps: 1},
		{name: "a user with a token", edit: func(c *httpgate.Config) { c.Known = known }, user: true, brings: []string{sign(t, at(10))}},
		{name: "a user with a token that requires nothing", edit: func(c *httpgate.Config) { c.Known = known }, user: true, brings: []string{sign(t)}},
		{name: "an empty header is none", brings: []string{"", " , "}, fresh: 1},
		{name: "always", edit: func(c *httpgate.Config) {
			c.Missing = func(*http.Request) httpgate.Policy { return httpgate.CatchUp }
		}, catchUps: 1},
		{name: "never", edit: func(c *httpgate.Config) {
			c.Known = known
			c.Missing = func(*http.Request) httpgate.Policy { return httpgate.Fresh }
		}, user: true, fresh: 1},
	} {
		m := newGate(t, func(cfg *httpgate.Config) {
			cfg.Clusters = []string{"main", "other"}
			if c.edit != nil {
				c.edit(cfg)
			}
		})
		r := request(c.brings...)
		if c.user {
			r.Header.Set("Authorization", "yes")
		}
		handle(m, func(_ http.ResponseWriter, r *http.Request) {
			duties := 0
			for _, m := range tidegate.SessionFrom(r.Context()).Token().Marks() {
				if m.CatchUp {
					duties++
				}
			}
			if duties != 2*int(c.catchUps) {
				t.Errorf("%s: %d clusters to catch up with", c.name, duties)
			}
		}, r)
		if got := m.Stats(); got.CatchUps != c.catchUps || got.Fresh != c.fresh || got.Refused.Total() != 0 {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
