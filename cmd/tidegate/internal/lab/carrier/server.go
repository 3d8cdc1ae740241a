package carrier

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// endTime bounds how long a server may take to end the requests that it has.
const endTime = 5 * time.Second

// server is an HTTP server on a free port of this machine's own network.
type server struct {
	http *http.Server
	host string // with the port
	done chan struct{}
}

// serve starts a server. The context bounds the start only.
func serve(ctx context.Context, h http.Handler) (*server, error) {
	var cfg net.ListenConfig
	l, err := cfg.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{
		// Clients that give up at the end of a run are nothing to tell of.
		http: &http.Server{Handler: h, ReadHeaderTimeout: endTime, ErrorLog: log.New(io.Discard, "", 0)},
		host: l.Addr().String(), done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l)
	}()
	return s, nil
}

// close lets the server end what it has, and ends it.
func (s *server) close() {
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	_ = s.http.Shutdown(ctx)
	_ = s.http.Close()
	<-s.done
}

// newTransport returns connections of its owner's own. It adds no header.
func newTransport() *http.Transport {
	return &http.Transport{MaxIdleConnsPerHost: backlog, DisableCompression: true}
}
