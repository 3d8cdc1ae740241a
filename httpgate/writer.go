package httpgate

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// writer is the response as the handler sees it: it sees to it that the token goes
// out before the first byte, and leaves everything else to the inner writer.
//
// What is optional in a ResponseWriter is in types of its own, all of them views
// of the same exchange, so that the handler finds what the inner writer has and
// nothing else.
type writer exchange

func (w *writer) exchange() *exchange { return (*exchange)(w) }

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.inner }

// Header implements http.ResponseWriter.
func (w *writer) Header() http.Header { return w.inner.Header() }

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	// Informational responses come before the one that counts; 101 is that one.
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.exchange().first()
	}
	w.inner.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *writer) Write(b []byte) (int, error) {
	w.exchange().first()
	return w.inner.Write(b)
}

// WriteString implements io.StringWriter.
func (w *writer) WriteString(s string) (int, error) {
	w.exchange().first()
	return io.WriteString(w.inner, s)
}

type flusher exchange

// Flush implements http.Flusher.
func (f *flusher) Flush() { _ = f.FlushError() }

// FlushError is for http.ResponseController.
func (f *flusher) FlushError() error {
	(*exchange)(f).first()
	return http.NewResponseController(f.inner).Flush()
}

type hijacker exchange

// Hijack implements http.Hijacker.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.inner).Hijack()
	h.hijacked = h.hijacked || err == nil
	return conn, rw, err
}

type readerFrom exchange

// ReadFrom implements io.ReaderFrom.
func (r *readerFrom) ReadFrom(src io.Reader) (int64, error) {
	(*exchange)(r).first()
	return r.inner.(io.ReaderFrom).ReadFrom(src)
}

type pusher exchange

// Push implements http.Pusher.
func (p *pusher) Push(target string, opts *http.PushOptions) error {
	return p.inner.(http.Pusher).Push(target, opts)
}

type closeNotifier exchange

// CloseNotify implements http.CloseNotifier, which is deprecated and still asked
// for by routers.
func (c *closeNotifier) CloseNotify() <-chan bool {
	return c.inner.(http.CloseNotifier).CloseNotify() //nolint:staticcheck // passed on to whoever asks for it
}

// unwraps is a writer around another, as http.ResponseController knows them.
type unwraps interface{ Unwrap() http.ResponseWriter }

// canFlush reports whether http.ResponseController could flush w, and canHijack
// whether it could take over its connection. A writer that can only by way of
// what it wraps must not be asked past us: its first byte would go out without
// the token.
func canFlush(w http.ResponseWriter) bool {
	for {
		switch t := w.(type) {
		case interface{ FlushError() error }, http.Flusher:
			return true
		case unwraps:
			w = t.Unwrap()
		default:
			return false
		}
	}
}

func canHijack(w http.ResponseWriter) bool {
	for {
		switch t := w.(type) {
		case http.Hijacker:
			return true
		case unwraps:
			w = t.Unwrap()
		default:
			return false
		}
	}
}
