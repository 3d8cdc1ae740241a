package httpgate

import (
	"io"
	"net/http"
)

// The optional parts of a ResponseWriter, as a bit set.
const (
	hasFlusher = 1 << iota
	hasHijacker
	hasReaderFrom
	hasPusher
	hasCloseNotifier
)

// partsOf returns which parts a writer has.
func partsOf(w http.ResponseWriter) (parts int) {
	if canFlush(w) {
		parts |= hasFlusher
	}
	if canHijack(w) {
		parts |= hasHijacker
	}
	if _, ok := w.(io.ReaderFrom); ok {
		parts |= hasReaderFrom
	}
	if _, ok := w.(http.Pusher); ok {
		parts |= hasPusher
	}
	if _, ok := w.(http.CloseNotifier); ok { //nolint:staticcheck // deprecated, and still asked for by routers
		parts |= hasCloseNotifier
	}
	return parts
}

// view returns the response as a writer with these parts: one type for each
// combination, because a type either has a method or has not.
func (x *exchange) view(parts int) http.ResponseWriter {
	w, f, h, r, p, c := (*writer)(x), (*flusher)(x), (*hijacker)(x), (*readerFrom)(x), (*pusher)(x), (*closeNotifier)(x)
	switch parts {
	case hasFlusher:
		return struct {
			*writer
			*flusher
		}{w, f}
	case hasHijacker:
		return struct {
			*writer
			*hijacker
		}{w, h}
	case hasFlusher | hasHijacker:
		return struct {
			*writer
			*flusher
			*hijacker
		}{w, f, h}
	case hasReaderFrom:
		return struct {
			*writer
			*readerFrom
		}{w, r}
	case hasFlusher | hasReaderFrom:
		return struct {
			*writer
			*flusher
			*readerFrom
		}{w, f, r}
	case hasHijacker | hasReaderFrom:
		return struct {
			*writer
			*hijacker
			*readerFrom
		}{w, h, r}
	case hasFlusher | hasHijacker | hasReaderFrom:
		return struct {
			*writer
			*flusher
			*hijacker
			*readerFrom
		}{w, f, h, r}
	case hasPusher:
		return struct {
			*writer
			*pusher
		}{w, p}
	case hasFlusher | hasPusher:
		return struct {
			*writer
			*flusher
			*pusher
		}{w, f, p}
	case hasHijacker | hasPusher:
		return struct {
			*writer
			*hijacker
			*pusher
		}{w, h, p}
	case hasFlusher | hasHijacker | hasPusher:
		return struct {
			*writer
			*flusher
			*hijacker
			*pusher
		}{w, f, h, p}
	case hasReaderFrom | hasPusher:
		return struct {
			*writer
			*readerFrom
			*pusher
		}{w, r, p}
	case hasFlusher | hasReaderFrom | hasPusher:
		return struct {
			*writer
			*flusher
			*readerFrom
			*pusher
		}{w, f, r, p}
	case hasHijacker | hasReaderFrom | hasPusher:
		return struct {
			*writer
			*hijacker
			*readerFrom
			*pusher
		}{w, h, r, p}
	case hasFlusher | hasHijacker | hasReaderFrom | hasPusher:
		return struct {
			*writer
			*flusher
			*hijacker
			*readerFrom
			*pusher
		}{w, f, h, r, p}
	case hasCloseNotifier:
		return struct {
			*writer
			*closeNotifier
		}{w, c}
	case hasFlusher | hasCloseNotifier:
		return struct {
			*writer
			*flusher
			*closeNotifier
		}{w, f, c}
	case hasHijacker | hasCloseNotifier:
		return struct {
			*writer
			*hijacker
			*closeNotifier
		}{w, h, c}
	case hasFlusher | hasHijacker | hasCloseNotifier:
		return struct {
			*writer
			*flusher
			*hijacker
			*closeNotifier
		}{w, f, h, c}
	case hasReaderFrom | hasCloseNotifier:
		return struct {
			*writer
			*readerFrom
			*closeNotifier
		}{w, r, c}
	case hasFlusher | hasReaderFrom | hasCloseNotifier:
		return struct {
			*writer
			*flusher
			*readerFrom
			*closeNotifier
		}{w, f, r, c}
	case hasHijacker | hasReaderFrom | hasCloseNotifier:
		return struct {
			*writer
			*hijacker
			*readerFrom
			*closeNotifier
		}{w, h, r, c}
	case hasFlusher | hasHijacker | hasReaderFrom | hasCloseNotifier:
		return struct {
			*writer
			*flusher
			*hijacker
			*readerFrom
			*closeNotifier
		}{w, f, h, r, c}
	case hasPusher | hasCloseNotifier:
		return struct {
			*writer
			*pusher
			*closeNotifier
		}{w, p, c}
	case hasFlusher | hasPusher | hasCloseNotifier:
		return struct {
			*writer
			*flusher
			*pusher
			*closeNotifier
		}{w, f, p, c}
	case hasHijacker | hasPusher | hasCloseNotifier:
		return struct {
			*writer
			*hijacker
			*pusher
			*closeNotifier
		}{w, h, p, c}
	case hasFlusher | hasHijacker | hasPusher | hasCloseNotifier:
		return struct {
			*writer
			*flusher
			*hijacker
			*pusher
			*closeNotifier
		}{w, f, h, p, c}
	case hasReaderFrom | hasPusher | hasCloseNotifier:
		return struct {
			*writer
			*readerFrom
			*pusher
			*closeNotifier
		}{w, r, p, c}
	case hasFlusher | hasReaderFrom | hasPusher | hasCloseNotifier:
		return struct {
			*writer
			*flusher
			*readerFrom
			*pusher
			*closeNotifier
		}{w, f, r, p, c}
	case hasHijacker | hasReaderFrom | hasPusher | hasCloseNotifier:
		return struct {
			*writer
			*hijacker
			*readerFrom
			*pusher
			*closeNotifier
		}{w, h, r, p, c}
	case hasFlusher | hasHijacker | hasReaderFrom | hasPusher | hasCloseNotifier:
		return struct {
			*writer
			*flusher
			*hijacker
			*readerFrom
			*pusher
			*closeNotifier
		}{w, f, h, r, p, c}
	}
	return w
}
