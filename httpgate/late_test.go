package httpgate_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/httpgate"
)

// What a response that has begun can no longer carry is counted and reported.
func TestChangeAfterTheFirstByte(t *testing.T) {
	t.Parallel()
	ask := func(r *http.Request) { tidegate.SessionFrom(r.Context()) }
	for _, c := range []struct {
		name          string
		brings        []tidegate.Mark
		before, after func(*http.Request)
		late          bool
		position      tidegate.Position
	}{
		{name: "nothing", before: func(*http.Request) {}, after: func(*http.Request) {}},
		{name: "a commit before", before: func(r *http.Request) { note(r.Context(), at(10)) }, after: func(*http.Request) {}},
		{name: "a commit before, asked again", before: func(r *http.Request) { note(r.Context(), at(10)) }, after: ask},
		{name: "a read before", before: func(r *http.Request) { note(r.Context(), at(10), seen(1)) }, after: func(*http.Request) {}},
		{name: "a commit after", after: func(r *http.Request) { note(r.Context(), at(10)) }, late: true, position: tidegate.At(10)},
		{
			name: "one before, one after", before: func(r *http.Request) { note(r.Context(), at(10)) },
			after: func(r *http.Request) { note(r.Context(), at(11)) }, late: true, position: tidegate.At(11),
		},
		{
			name: "a read before and the same after", before: func(r *http.Request) { note(r.Context(), at(10), seen(1)) },
			after: func(r *http.Request) { note(r.Context(), seen(1)) }, late: true, position: tidegate.At(10),
		},
		{name: "a visitor's read after", after: func(r *http.Request) { note(r.Context(), seen(1)) }},
		{
			name: "a read after", brings: []tidegate.Mark{at(10)},
			after: func(r *http.Request) { note(r.Context(), seen(1)) }, late: true, position: tidegate.At(10),
		},
	} {
		var reported []tidegate.Token
		m := newGate(t, func(cfg *httpgate.Config) {
			cfg.Late = func(r *http.Request, token tidegate.Token) {
				if r.URL.Path != "/" {
					t.Errorf("%s: the request is for %s", c.name, r.URL)
				}
				reported = append(reported, token)
			}
		})
		r := request()
		if c.brings != nil {
			r = request(sign(t, c.brings...))
		}
		handle(m, func(w http.ResponseWriter, r *http.Request) {
			if c.before != nil {
				c.before(r)
			}
			io.WriteString(w, "first")
			c.after(r)
			io.WriteString(w, "second")
		}, r)
		if got := m.Stats().Late; (got == 1) != c.late || int(got) != len(reported) {
			t.Errorf("%s: late %d, reported %d", c.name, got, len(reported))
		}
		if len(reported) == 1 && reported[0].Marks()[0].Position != c.position {
			t.Errorf("%s: reported %+v", c.name, reported[0].Marks())
		}
	}
}

// A transaction that was begun before the first byte commits after it, and nobody
// asks for the session again.
func TestCommitOfWhatWasBegunBeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	m := newGate(t, nil)
	handle(m, func(w http.ResponseWriter, r *http.Request) {
		s := tidegate.SessionFrom(r.Context())
		io.WriteString(w, "first")
		s.Merge(tidegate.NewToken(at(10)))
	}, request())
	if got := m.Stats(); got.Late != 1 || got.Emitted != 0 {
		t.Errorf("%+v", got)
	}
}

func TestPanicAfterTheFirstByte(t *testing.T) {
	t.Parallel()
	m := newGate(t, nil)
	w := httptest.NewRecorder()
	recovers(m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "first")
		note(r.Context(), at(10))
		panic("broken")
	}))).ServeHTTP(w, request())
	if got := m.Stats(); got.Late != 1 {
		t.Errorf("%+v", got)
	}
}

// A connection that was taken over has no headers: all changes are late.
func TestChangeOnAHijackedConnection(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		brings        []tidegate.Mark
		before, after func(*http.Request)
		late          uint64
	}{
		{name: "none", before: func(*http.Request) {}, after: func(*http.Request) {}},
		{name: "a read", brings: []tidegate.Mark{seen(1)}, before: func(r *http.Request) { note(r.Context(), seen(1)) }, after: func(*http.Request) {}, late: 1},
		{name: "before", before: func(r *http.Request) { note(r.Context(), at(10)) }, after: func(*http.Request) {}, late: 1},
		{name: "after", before: func(*http.Request) {}, after: func(r *http.Request) { note(r.Context(), at(10)) }, late: 1},
	} {
		m := newGate(t, nil)
		done := make(chan struct{})
		server, client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(done)
			m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c.before(r)
				conn, rw, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nraw")
				rw.Flush()
				c.after(r)
			})).ServeHTTP(w, r)
		}), false)
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if c.brings != nil {
			req.Header.Set(httpgate.DefaultHeader, sign(t, c.brings...))
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		<-done
		if got := m.Stats(); string(body) != "raw" || got.Late != c.late || got.Emitted != 0 {
			t.Errorf("%s: %q, %+v", c.name, body, got)
		}
	}
}

// More than a token holds goes out as less that requires no less.
func TestMoreThanFitsIntoAToken(t *testing.T) {
	t.Parallel()
	m := newGate(t, nil)
	many := make([]tidegate.Mark, tidegate.MaxMarks+1)
	for i := range many {
		many[i] = tidegate.Mark{Cluster: "main", Epoch: tidegate.Epoch{System: 7, Line: uint64(i + 1)}, Position: tidegate.At(10)}
	}
	w := handle(m, func(_ http.ResponseWriter, r *http.Request) { note(r.Context(), many...) }, request())
	if got, ok := emitted(t, w.Header()); !ok || !got.CatchUp {
		t.Errorf("%+v, %v", got, ok)
	}
	for i := range many {
		many[i].Cluster = string(rune('a' + i))
	}
	w = handle(m, func(_ http.ResponseWriter, r *http.Request) { note(r.Context(), many...) }, request())
	text, _, _ := strings.Cut(w.Header().Get(httpgate.DefaultHeader), ";")
	token, err := newKeyring(t, tidegate.KeyringConfig{}).Verify(text)
	if err != nil || !token.CatchesUp() {
		t.Errorf("%+v, %v", token.Marks(), err)
	}
	if got := m.Stats(); got.Emitted != 2 || got.Late != 0 {
		t.Errorf("%+v", got)
	}
	// What is required of clusters that it does not name is required of ours.
	handle(m, func(_ http.ResponseWriter, r *http.Request) {
		if s := tidegate.SessionFrom(r.Context()); !s.Token().CatchesUp() {
			t.Errorf("%+v", s.Token().Marks())
		}
	}, request(text))
	if got := m.Stats(); got.Refused.Total() != 0 {
		t.Errorf("%+v", got)
	}
}
