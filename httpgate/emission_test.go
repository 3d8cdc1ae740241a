package httpgate_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/httpgate"
)

// answers are all ways in which a handler answers after a commit.
var answers = []struct {
	name   string
	method string
	answer func(w http.ResponseWriter, r *http.Request)
	status int
	body   string
}{
	{name: "nothing is written", answer: func(http.ResponseWriter, *http.Request) {}, status: 200},
	{name: "implicit 200", answer: func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("hello")) }, status: 200, body: "hello"},
	{name: "a string", answer: func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }, status: 200, body: "hello"},
	{name: "an empty write", answer: func(w http.ResponseWriter, _ *http.Request) { w.Write(nil) }, status: 200},
	{name: "201", answer: status(201, "made"), status: 201, body: "made"},
	{name: "204", answer: status(204, ""), status: 204},
	{name: "301", answer: redirect(301), status: 301},
	{name: "302", answer: redirect(302), status: 302},
	{name: "303", answer: redirect(303), status: 303},
	{name: "304", answer: status(304, ""), status: 304},
	{name: "307", answer: redirect(307), status: 307},
	{name: "404 after a commit", answer: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "gone", http.StatusNotFound) }, status: 404, body: "gone\n"},
	{name: "500 after a commit", answer: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", http.StatusInternalServerError) }, status: 500, body: "broken\n"},
	{name: "a panic after a commit", answer: func(http.ResponseWriter, *http.Request) { panic("broken") }, status: 500, body: "recovered: broken"},
	{name: "HEAD", method: http.MethodHead, answer: status(200, ""), status: 200},
	{name: "HEAD without a word", method: http.MethodHead, answer: func(http.ResponseWriter, *http.Request) {}, status: 200},
	{name: "the status twice", answer: func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		w.WriteHeader(http.StatusBadRequest)
	}, status: 202},
	{
		name: "a stream", status: 200, body: "one two",
		answer: func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "one ")
			w.(http.Flusher).Flush()
			io.WriteString(w, "two")
		},
	},
	{
		name: "flushed headers", status: 200, body: "later",
		answer: func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			io.WriteString(w, "later")
		},
	},
	{
		name: "flushed by the controller", status: 200, body: "later",
		answer: func(w http.ResponseWriter, _ *http.Request) {
			if err := http.NewResponseController(w).Flush(); err != nil {
				panic(err)
			}
			io.WriteString(w, "later")
		},
	},
	{
		name: "copied", status: 200, body: "hello",
		answer: func(w http.ResponseWriter, _ *http.Request) {
			io.Copy(w, struct{ io.Reader }{strings.NewReader("hello")})
		},
	},
	{
		name: "a served file", status: 200, body: "hello",
		answer: func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "a.txt", time.Time{}, strings.NewReader("hello"))
		},
	},
	{
		name: "early hints", status: 200, body: "hello",
		answer: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</a.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			note(r.Context(), at(20)) // not too late
			io.WriteString(w, "hello")
		},
	},
}

func status(code int, body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		io.WriteString(w, body)
	}
}

func redirect(code int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Method = http.MethodPost // without a body
		http.Redirect(w, r, "/there", code)
	}
}

func TestEveryResponseAfterACommitCarriesTheToken(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		for _, c := range answers {
			t.Run(protocol+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				m := newGate(t, func(cfg *httpgate.Config) {
					cfg.Sources = []httpgate.Source{httpgate.Header(""), httpgate.Cookie(httpgate.CookieConfig{})}
				})
				handler := recovers(m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					note(r.Context(), at(10))
					c.answer(w, r)
				})))
				server, client := serve(t, handler, protocol == "HTTP/2.0")
				var informational atomic.Int64
				req, _ := http.NewRequest(c.method, server.URL, nil)
				req = req.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
					Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
						informational.Add(1)
						if len(h[httpgate.DefaultHeader]) > 0 || len(h["Set-Cookie"]) > 0 {
							t.Error("an informational response carries the token")
						}
						return nil
					},
				}))
				resp, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.Proto != protocol || resp.StatusCode != c.status || c.body != "" && string(body) != c.body {
					t.Errorf("%s %d %q, %v", resp.Proto, resp.StatusCode, body, err)
				}
				want := tidegate.At(10)
				if c.name == "early hints" {
					want = tidegate.At(20)
					if informational.Load() != 1 {
						t.Errorf("%d informational responses", informational.Load())
					}
				}
				if got, ok := emitted(t, resp.Header); !ok || got.Position != want {
					t.Errorf("the header says %+v, %v", got, ok)
				}
				if cookies := resp.Cookies(); len(cookies) != 1 || verify(t, cookies[0].Value)[0].Position != want {
					t.Errorf("the cookies are %v", cookies)
				}
				if got := m.Stats(); got != (httpgate.Stats{Emitted: 1, Fresh: 1}) {
					t.Errorf("%+v", got)
				}
			})
		}
	}
}

// recovers turns a panic into an answer, as applications do outside of all else.
func recovers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if err := recover(); err != nil {
				w.WriteHeader(http.StatusInternalServerError)
				fmt.Fprint(w, "recovered: ", err)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func TestPanicPassesOn(t *testing.T) {
	t.Parallel()
	m := newGate(t, nil)
	w := httptest.NewRecorder()
	func() {
		defer func() {
			if err := recover(); err != http.ErrAbortHandler {
				t.Errorf("recovered %v", err)
			}
		}()
		m.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			note(r.Context(), at(10))
			panic(http.ErrAbortHandler)
		})).ServeHTTP(w, request())
	}()
	if got, ok := emitted(t, w.Header()); !ok || got.Position != tidegate.At(10) {
		t.Errorf("%+v, %v", got, ok)
	}
}

// Whether a response carries a token, by what the request brought and what its
// handler did.
func TestWhenAResponseCarriesAToken(t *testing.T) {
	t.Parallel()
	ask := func(r *http.Request) { tidegate.SessionFrom(r.Context()) }
	for _, c := range []struct {
		name   string
		brings []tidegate.Mark
		does   func(r *http.Request)
		edit   func(*httpgate.Config)
		want   bool
	}{
		{name: "nothing was done", brings: []tidegate.Mark{at(10)}},
		{name: "nothing was done, and it has read on a replica", brings: []tidegate.Mark{seen(1)}},
		{name: "nothing has changed", brings: []tidegate.Mark{at(10)}, does: ask},
		{name: "less than it had", brings: []tidegate.Mark{at(10)}, does: func(r *http.Request) { note(r.Context(), at(9)) }},
		{name: "a commit", brings: []tidegate.Mark{at(10)}, does: func(r *http.Request) { note(r.Context(), at(11)) }, want: true},
		{name: "another replica", brings: []tidegate.Mark{seen(1)}, does: func(r *http.Request) { note(r.Context(), seen(2)) }, want: true},
		{name: "the same replica", brings: []tidegate.Mark{seen(1)}, does: func(r *http.Request) { note(r.Context(), seen(1)) }, want: true},
		{name: "a duty that may be renewed", brings: []tidegate.Mark{{Cluster: "main", CatchUp: true}}, does: func(r *http.Request) { tidegate.Wrote(r.Context(), "main") }, want: true},
		{name: "another history", brings: []tidegate.Mark{at(10)}, does: func(r *http.Request) {
			note(r.Context(), tidegate.Mark{Cluster: "main", Epoch: tidegate.Epoch{System: 7, Line: 2}, Position: tidegate.At(10)})
		}, want: true},
		{name: "a visitor who does nothing"},
		{name: "a visitor who reads on a replica", does: func(r *http.Request) { note(r.Context(), seen(1)) }},
		{name: "a visitor who reads, and it matters", does: func(r *http.Request) { note(r.Context(), seen(1)) }, edit: func(c *httpgate.Config) { c.VisitorReads = true }, want: true},
		{name: "somebody known who reads", does: func(r *http.Request) { note(r.Context(), seen(1)) }, edit: func(c *httpgate.Config) {
			c.Known = func(*http.Request) bool { return true }
			c.Missing = func(*http.Request) httpgate.Policy { return httpgate.Fresh }
		}, want: true},
		{name: "a visitor who writes", does: func(r *http.Request) { note(r.Context(), at(10)) }, want: true},
		{name: "a visitor whose write is unknown", does: func(r *http.Request) { tidegate.Wrote(r.Context(), "main") }, want: true},
	} {
		m := newGate(t, c.edit)
		r := request()
		if c.brings != nil {
			r = request(sign(t, c.brings...))
		}
		w := handle(m, func(_ http.ResponseWriter, r *http.Request) {
			if c.does != nil {
				c.does(r)
			}
		}, r)
		if got := w.Header().Get(httpgate.DefaultHeader) != ""; got != c.want {
			t.Errorf("%s: the response carries a token: %v", c.name, got)
		}
		if cc := w.Header().Get("Cache-Control"); cc != "" != c.want {
			t.Errorf("%s: Cache-Control is %q", c.name, cc)
		}
		if got := m.Stats(); got.Late != 0 || got.Emitted > 0 != c.want {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// The session can be asked for below contexts that others have made.
func TestSessionIsAskedForBelowOtherContexts(t *testing.T) {
	t.Parallel()
	m := newGate(t, nil)
	w := handle(m, func(_ http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		ctx, _ = tidegate.Observe(ctx)
		note(ctx, seen(1))
	}, request(sign(t, seen(1))))
	if _, ok := emitted(t, w.Header()); !ok {
		t.Error("no token")
	}
}

// Several tokens that together say what the session says need no answer.
func TestNothingChangedSinceSeveralTokens(t *testing.T) {
	t.Parallel()
	m := newGate(t, nil)
	w := handle(m, func(_ http.ResponseWriter, r *http.Request) { note(r.Context(), at(11)) },
		request(sign(t, at(12)), sign(t, at(11)), sign(t, at(10))))
	if got, ok := emitted(t, w.Header()); ok || m.Stats() != (httpgate.Stats{}) {
		t.Errorf("%+v, %+v", got, m.Stats())
	}
}
