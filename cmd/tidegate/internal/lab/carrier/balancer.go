package carrier

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
)

// Balancer is an HTTP server that sends each request to the next of its
// backends, whoever asks. Headers and bodies pass as they are, and as they come.
// It is safe for concurrent use.
type Balancer struct {
	server *server

	mu       sync.Mutex
	backends []*backend
	turn     int
}

// backend is one server behind the balancer, and the requests that it has.
type backend struct {
	proxy     *httputil.ReverseProxy
	transport *http.Transport
	busy      sync.WaitGroup
}

// StartBalancer starts a balancer in front of the hosts, each with its port.
func StartBalancer(ctx context.Context, hosts ...string) (*Balancer, error) {
	b := &Balancer{}
	for _, h := range hosts {
		b.backends = append(b.backends, newBackend(h))
	}
	var err error
	if b.server, err = serve(ctx, b); err != nil {
		return nil, err
	}
	return b, nil
}

// Host is where the balancer listens, with the port.
func (b *Balancer) Host() string { return b.server.host }

// ServeHTTP implements http.Handler.
func (b *Balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	to := b.backends[b.turn%len(b.backends)]
	b.turn++
	to.busy.Add(1) // before Replace can wait for it
	b.mu.Unlock()
	defer to.busy.Done()
	to.proxy.ServeHTTP(w, r)
}

// Replace puts another host in the place of the backend with that number, and
// returns when the old one has answered all that it was asked.
func (b *Balancer) Replace(number int, host string) {
	b.mu.Lock()
	old := b.backends[number]
	b.backends[number] = newBackend(host)
	b.mu.Unlock()
	old.busy.Wait()
	old.transport.CloseIdleConnections()
}

// Close ends the balancer. Nobody asks it any more.
func (b *Balancer) Close() {
	b.server.close()
	for _, to := range b.backends {
		to.transport.CloseIdleConnections()
	}
}

func newBackend(host string) *backend {
	transport := newTransport()
	target := &url.URL{Scheme: "http", Host: host}
	return &backend{transport: transport, proxy: &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // the backend sees what the client asked for
		},
		FlushInterval: -1, // what comes goes on at once
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "balancer: "+err.Error(), http.StatusBadGateway)
		},
	}}
}
