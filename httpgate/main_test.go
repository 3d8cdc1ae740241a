package httpgate_test

import (
	"bytes"
	"context"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/httpgate"
)

var epoch = tidegate.Epoch{System: 7, Line: 1}

func secret(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

func newKeyring(t testing.TB, cfg tidegate.KeyringConfig) *tidegate.Keyring {
	t.Helper()
	if cfg.Keys == nil {
		cfg.Keys = []tidegate.Key{{ID: "k", Secret: secret(1)}}
	}
	k, err := tidegate.NewKeyring(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// newGate returns a middleware for the cluster "main"; edit changes its configuration.
func newGate(t testing.TB, edit func(*httpgate.Config)) *httpgate.Middleware {
	t.Helper()
	cfg := httpgate.Config{Keyring: newKeyring(t, tidegate.KeyringConfig{}), Clusters: []string{"main"}}
	if edit != nil {
		edit(&cfg)
	}
	m, err := httpgate.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// at is a mark of a commit or of a read on the primary, seen one of a read on a
// replica.
func at(n uint64) tidegate.Mark {
	return tidegate.Mark{Cluster: "main", Epoch: epoch, Position: tidegate.At(n)}
}

func seen(ids ...tidegate.Incarnation) tidegate.Mark {
	return tidegate.Mark{Cluster: "main", Epoch: epoch, Seen: ids}
}

// note is what a database does: it finds the session and advances it.
func note(ctx context.Context, marks ...tidegate.Mark) {
	tidegate.SessionFrom(ctx).Merge(tidegate.NewToken(marks...))
}

func sign(t testing.TB, marks ...tidegate.Mark) string {
	t.Helper()
	text := newKeyring(t, tidegate.KeyringConfig{}).Sign(tidegate.NewToken(marks...))
	return text
}

// verify returns the marks of a token's text as a response's header has it.
func verify(t testing.TB, text string) []tidegate.Mark {
	t.Helper()
	text, _, _ = strings.Cut(text, ";")
	token, err := newKeyring(t, tidegate.KeyringConfig{}).Verify(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return token.Marks()
}

// emitted returns the only mark of the token in the response's header, and false
// when there is none.
func emitted(t testing.TB, h http.Header) (tidegate.Mark, bool) {
	t.Helper()
	switch values := h.Values(httpgate.DefaultHeader); len(values) {
	case 0:
		return tidegate.Mark{}, false
	case 1:
		marks := verify(t, values[0])
		if len(marks) != 1 {
			t.Fatalf("%d marks: %+v", len(marks), marks)
		}
		return marks[0], true
	default:
		t.Fatalf("%d headers", len(values))
		return tidegate.Mark{}, false
	}
}

// serve starts a server of HTTP/1.1 or HTTP/2, and returns a client of it with an
// empty cookie jar.
func serve(t testing.TB, h http.Handler, http2 bool) (*httptest.Server, *http.Client) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = http2
	s.Config.ErrorLog = log.New(discard{}, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := s.Client()
	c.Jar = jar
	c.Timeout = time.Minute
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return s, c
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// handle runs one request through the middleware.
func handle(m *httpgate.Middleware, h http.HandlerFunc, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	m.Wrap(h).ServeHTTP(w, r)
	return w
}

// request returns a GET that brings these tokens by header.
func request(tokens ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, t := range tokens {
		r.Header.Add(httpgate.DefaultHeader, t)
	}
	return r
}
