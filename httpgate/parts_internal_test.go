package httpgate

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/tidegatedb/tidegate"
)

// full is a writer with every part; it notes what was called.
type full struct {
	http.ResponseWriter
	called []string
}

func (f *full) note(s string)                           { f.called = append(f.called, s) }
func (f *full) Header() http.Header                     { return http.Header{} }
func (f *full) Flush()                                  { f.note("Flush") }
func (f *full) Push(string, *http.PushOptions) error    { f.note("Push"); return nil }
func (f *full) CloseNotify() <-chan bool                { f.note("CloseNotify"); return nil }
func (f *full) ReadFrom(io.Reader) (n int64, err error) { f.note("ReadFrom"); return 0, nil }
func (f *full) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	f.note("Hijack")
	return nil, nil, nil
}

// Each combination has exactly its own methods, and they reach the inner writer.
func TestViewHasItsPartsAndNoOthers(t *testing.T) {
	t.Parallel()
	for parts := range 1 << 5 {
		inner := &full{}
		x := newExchange(t, inner)
		w := x.view(parts)
		has := func(bit int) bool { return parts&bit != 0 }
		var want []string
		expect := func(bit int, name string, got bool, call func()) {
			if got != has(bit) {
				t.Errorf("parts %05b: %s is there: %v", parts, name, got)
			}
			if got {
				call()
				want = append(want, name)
			}
		}
		f, ok := w.(http.Flusher)
		expect(hasFlusher, "Flush", ok, func() { f.Flush() })
		if _, ok := w.(interface{ FlushError() error }); ok != has(hasFlusher) {
			t.Errorf("parts %05b: FlushError is there: %v", parts, ok)
		}
		h, ok := w.(http.Hijacker)
		expect(hasHijacker, "Hijack", ok, func() { _, _, _ = h.Hijack() })
		r, ok := w.(io.ReaderFrom)
		expect(hasReaderFrom, "ReadFrom", ok, func() { _, _ = r.ReadFrom(nil) })
		p, ok := w.(http.Pusher)
		expect(hasPusher, "Push", ok, func() { _ = p.Push("/", nil) })
		c, ok := w.(http.CloseNotifier) //nolint:staticcheck // what routers still ask for
		expect(hasCloseNotifier, "CloseNotify", ok, func() { c.CloseNotify() })
		if _, ok := w.(context.Context); ok {
			t.Errorf("parts %05b: it is a context", parts)
		}
		if u, ok := w.(unwraps); !ok || u.Unwrap() != http.ResponseWriter(inner) {
			t.Errorf("parts %05b: it does not unwrap", parts)
		}
		if len(inner.called) != len(want) {
			t.Errorf("parts %05b: called %q, want %q", parts, inner.called, want)
		}
		if x.hijacked != has(hasHijacker) || x.started != (has(hasFlusher) || has(hasReaderFrom)) {
			t.Errorf("parts %05b: hijacked %v, started %v", parts, x.hijacked, x.started)
		}
	}
}

func newExchange(t *testing.T, inner http.ResponseWriter) *exchange {
	t.Helper()
	k, err := tidegate.NewKeyring(tidegate.KeyringConfig{Keys: []tidegate.Key{{ID: "k", Secret: make([]byte, 32)}}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(Config{Keyring: k, Clusters: []string{"main"}})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := http.NewRequest(http.MethodGet, "/", nil)
	return m.begin(inner, r)
}

// plain has nothing beside the three methods of a ResponseWriter.
type plain struct{ http.ResponseWriter }

// wrapped has them and leads to another writer.
type wrapped struct {
	plain
	inner http.ResponseWriter
}

func (w wrapped) Unwrap() http.ResponseWriter { return w.inner }

// flushError is a writer that flushes in the new way only.
type flushError struct{ plain }

func (flushError) FlushError() error { return io.ErrClosedPipe }

func TestPartsOf(t *testing.T) {
	t.Parallel()
	const all = hasFlusher | hasHijacker | hasReaderFrom | hasPusher | hasCloseNotifier
	for name, c := range map[string]struct {
		w    http.ResponseWriter
		want int
	}{
		"nothing":                   {plain{}, 0},
		"everything":                {&full{}, all},
		"wraps nothing":             {wrapped{inner: plain{}}, 0},
		"wraps everything":          {wrapped{inner: wrapped{inner: &full{}}}, hasFlusher | hasHijacker},
		"flushes in the new way":    {flushError{}, hasFlusher},
		"wraps one that flushes so": {wrapped{inner: flushError{}}, hasFlusher},
	} {
		if got := partsOf(c.w); got != c.want {
			t.Errorf("%s: %05b, want %05b", name, got, c.want)
		}
	}
}

// A flush that goes past the middleware would send the headers without the token.
func TestFlushOfWhatTheInnerWriterWraps(t *testing.T) {
	t.Parallel()
	x := newExchange(t, wrapped{inner: &full{}})
	if err := http.NewResponseController(x.view(partsOf(x.inner))).Flush(); err != nil || !x.started {
		t.Errorf("%v, started %v", err, x.started)
	}
	x = newExchange(t, flushError{})
	if err := http.NewResponseController(x.view(partsOf(x.inner))).Flush(); err != io.ErrClosedPipe || !x.started {
		t.Errorf("%v, started %v", err, x.started)
	}
	x = newExchange(t, wrapped{inner: plain{}})
	if err := http.NewResponseController(x.view(partsOf(x.inner))).Flush(); err == nil || x.started {
		t.Errorf("%v, started %v", err, x.started)
	}
	x = newExchange(t, wrapped{inner: &full{}})
	if _, _, err := http.NewResponseController(x.view(partsOf(x.inner))).Hijack(); err != nil || !x.hijacked {
		t.Errorf("%v, hijacked %v", err, x.hijacked)
	}
}

func TestSessionKeyIsKnown(t *testing.T) {
	t.Parallel()
	if sessionKey == nil {
		t.Fatal("the key of sessions in contexts is not known: every request counts as one that has used its session")
	}
	x := newExchange(t, plain{})
	x.Value("else")
	if x.asked.Load() {
		t.Error("asking for something else counts")
	}
	if tidegate.SessionFrom(x) != x.session || !x.asked.Load() {
		t.Error("asking for the session does not count")
	}
	x.asked.Store(false)
	tidegate.Wrote(x, "main")
	if !x.asked.Load() {
		t.Error("a write beside the database does not count")
	}
}
