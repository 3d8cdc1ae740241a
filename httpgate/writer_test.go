package httpgate_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// What a handler finds behind the middleware is what the server has.
func TestWriterHasWhatTheServerHas(t *testing.T) {
	t.Parallel()
	type parts struct{ flusher, hijacker, readerFrom, pusher, closeNotifier, stringWriter bool }
	look := func(w http.ResponseWriter) (p parts) {
		_, p.flusher = w.(http.Flusher)
		_, p.hijacker = w.(http.Hijacker)
		_, p.readerFrom = w.(io.ReaderFrom)
		_, p.pusher = w.(http.Pusher)
		_, p.closeNotifier = w.(http.CloseNotifier) //nolint:staticcheck // what routers still ask for
		_, p.stringWriter = w.(io.StringWriter)
		return p
	}
	for _, http2 := range []bool{false, true} {
		m := newGate(t, nil)
		server, client := serve(t, http.HandlerFunc(func(outer http.ResponseWriter, r *http.Request) {
			m.Wrap(http.HandlerFunc(func(inner http.ResponseWriter, r *http.Request) {
				want, got := look(outer), look(inner)
				if want != got {
					t.Errorf("HTTP/2 %v: %+v, want %+v", http2, got, want)
				}
				outerErr := errors.Is(http.NewResponseController(outer).EnableFullDuplex(), http.ErrNotSupported)
				if err := http.NewResponseController(inner).EnableFullDuplex(); errors.Is(err, http.ErrNotSupported) != outerErr {
					t.Errorf("HTTP/2 %v: EnableFullDuplex: %v", http2, err)
				}
				if p, ok := inner.(http.Pusher); ok {
					if err := p.Push("/x", nil); !errors.Is(err, http.ErrNotSupported) { // Go's client takes none
						t.Errorf("push: %v", err)
					}
				}
			})).ServeHTTP(outer, r)
		}), http2)
		resp, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if (resp.ProtoMajor == 2) != http2 {
			t.Errorf("the protocol is %s", resp.Proto)
		}
	}
}

func TestDeadlinesReachTheServer(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		m := newGate(t, nil)
		result := make(chan error, 1)
		server, client := serve(t, m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rc := http.NewResponseController(w)
			err := errors.Join(rc.SetWriteDeadline(time.Now().Add(time.Minute)), rc.SetReadDeadline(time.Unix(1, 0)))
			if err == nil {
				_, err = r.Body.Read(make([]byte, 1)) // nothing comes: only the deadline ends it
			}
			result <- err
		})), http2)
		body, writer := io.Pipe()
		t.Cleanup(func() { writer.Close() })
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			req, _ := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, body)
			if resp, err := client.Do(req); err == nil {
				resp.Body.Close()
			}
		}()
		var timeout interface{ Timeout() bool }
		if err := <-result; !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("HTTP/2 %v: %v", http2, err)
		}
		cancel()
	}
}

// A handler reads on while its answer is under way, as with the bare server.
func TestFullDuplex(t *testing.T) {
	t.Parallel()
	m := newGate(t, nil)
	server, client := serve(t, m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		if err := rc.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		note(r.Context(), at(10))
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			io.WriteString(w, strings.ToUpper(lines.Text())+"\n")
			rc.Flush()
		}
	})), false)
	body, writer := io.Pipe()
	go io.WriteString(writer, "one\n")
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answers := bufio.NewScanner(resp.Body)
	if answers.Scan(); answers.Text() != "ONE" {
		t.Errorf("%q", answers.Text())
	}
	if got, ok := emitted(t, resp.Header); !ok || got.Position != at(10).Position {
		t.Errorf("%+v, %v", got, ok)
	}
	io.WriteString(writer, "two\n")
	if answers.Scan(); answers.Text() != "TWO" {
		t.Errorf("%q", answers.Text())
	}
	writer.Close()
}

// net/http's copy from a file is not lost.
func TestReadFromReachesTheServer(t *testing.T) {
	t.Parallel()
	m := newGate(t, nil)
	server, client := serve(t, m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note(r.Context(), at(10))
		n, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader("hello"))
		if n != 5 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	})), false)
	resp, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if _, ok := emitted(t, resp.Header); !ok || string(body) != "hello" {
		t.Errorf("%q, %v", body, ok)
	}
}

// Wrapped twice, as by a router and once more by a part of it, it acts once.
func TestWrapTwice(t *testing.T) {
	t.Parallel()
	m := newGate(t, nil)
	w := handle(m, func(w http.ResponseWriter, r *http.Request) {
		outer := r.Context()
		m.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.Context() != outer {
				t.Error("it has another context")
			}
			note(r.Context(), at(10))
		})).ServeHTTP(w, r)
	}, request())
	if _, ok := emitted(t, w.Header()); !ok || m.Stats().Emitted != 1 || m.Stats().Fresh != 1 {
		t.Errorf("%v, %+v", w.Header(), m.Stats())
	}
}

// 101 is the last status of a response although it begins with a 1.
func TestSwitchingProtocols(t *testing.T) {
	t.Parallel()
	m := newGate(t, nil)
	w := handle(m, func(w http.ResponseWriter, r *http.Request) {
		note(r.Context(), at(10))
		w.WriteHeader(http.StatusSwitchingProtocols)
		note(r.Context(), at(20))
	}, request())
	if got, ok := emitted(t, w.Result().Header); !ok || got.Position != at(10).Position || m.Stats().Late != 1 {
		t.Errorf("%+v, %v, %+v", got, ok, m.Stats())
	}
}
