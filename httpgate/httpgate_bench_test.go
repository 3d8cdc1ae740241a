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
	// As an adapter does with a session that is kept in a store.
	readsKept := func(w http.ResponseWriter, r *http.Request) {
		s := tidegate.SessionFrom(r.Context())
		if err := s.Load(r.Context()); err != nil {
			b.Error(err)
		}
		note(r.Context(), seen(1))
		s.EndRead()
		w.WriteHeader(http.StatusNoContent)
	}
	writesKept := func(w http.ResponseWriter, r *http.Request) {
		s := tidegate.SessionFrom(r.Context())
		if err := s.BeginWrite(r.Context()); err != nil {
			b.Error(err)
		}
		commits++
		note(r.Context(), at(commits))
		s.EndWrite()
		w.WriteHeader(http.StatusNoContent)
	}
	token := sign(b, at(10), seen(1))
	for _, c := range []struct {
		name    string
		source  httpgate.Source
		bare    bool
		kept    bool
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
		{name: "store in memory/idle", kept: true, handler: idle},
		{name: "store in memory/read", kept: true, handler: readsKept},
		{name: "store in memory/write", kept: true, handler: writesKept},
	} {
		b.Run(c.name, func(b *testing.B) {
			var h http.Handler = c.handler
			if !c.bare {
				sources := []httpgate.Source{c.source}
				if c.kept {
					sources = []httpgate.Source{storeSource(b, newStore(b)), httpgate.Header("")}
				}
				h = newGate(b, func(cfg *httpgate.Config) {
					cfg.Sources, cfg.Clusters = sources, []string{"main", "test"}
					if c.kept {
						cfg.Clusters = []string{"test"}
					}
				}).Wrap(h)
			}
			r := request()
			if c.token != "" {
				r = request(c.token)
				r.Header.Set("Cookie", cookieName(1)+"="+c.token)
			}
			if c.kept {
				r.Header.Set("Cookie", "login=ann")
			}
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(&sink{http.Header{}}, r)
			}
		})
	}
}
