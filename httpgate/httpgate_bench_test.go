package httpgate_test

import (
	"net/http"
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/httpgate"
)

// sink is a response that keeps nothing.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }
func (s *sink) WriteHeader(int)             {}

// What the middleware costs a request: "bare" is the handler without it.
func BenchmarkRequest(b *testing.B) {
	commits := uint64(100)
	idle := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
	reads := func(w http.ResponseWriter, r *http.Request) {
		tidegate.SessionFrom(r.Context())
		w.WriteHeader(http.StatusNoContent)
	}
	writes := func(w http.ResponseWriter, r *http.Request) {
		commits++
		note(r.Context(), at(commits))
		w.WriteHeader(http.StatusNoContent)
	}
	token := sign(b, at(10), seen(1))
	for _, c := range []struct {
		name    string
		source  httpgate.Source
		bare    bool
		token   string
		handler http.HandlerFunc
	}{
		{name: "bare", bare: true, handler: idle},
		{name: "no token/idle", source: httpgate.Header(""), handler: idle},
		{name: "no token/write", source: httpgate.Header(""), handler: writes},
		{name: "header/idle", source: httpgate.Header(""), token: token, handler: idle},
		{name: "header/read", source: httpgate.Header(""), token: token, handler: reads},
		{name: "header/write", source: httpgate.Header(""), token: token, handler: writes},
		{name: "cookie/idle", source: httpgate.Cookie(httpgate.CookieConfig{}), token: token, handler: idle},
		{name: "cookie/read", source: httpgate.Cookie(httpgate.CookieConfig{}), token: token, handler: reads},
		{name: "cookie/write", source: httpgate.Cookie(httpgate.CookieConfig{}), token: token, handler: writes},
	} {
		b.Run(c.name, func(b *testing.B) {
			var h http.Handler = c.handler
			if !c.bare {
				h = newGate(b, func(cfg *httpgate.Config) { cfg.Sources = []httpgate.Source{c.source} }).Wrap(h)
			}
			r := request()
			if c.token != "" {
				r = request(c.token)
				r.Header.Set("Cookie", cookieName(1)+"="+c.token)
			}
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(&sink{http.Header{}}, r)
			}
		})
	}
}
