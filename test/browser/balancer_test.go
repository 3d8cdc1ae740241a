package browser

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// holdHeader names a request whose response is to be held back.
const holdHeader = "X-Hold"

// balancer stands between a browser and the instances, and gives each its turn.
type balancer struct {
	url     string
	carry   carrier
	proxies []*httputil.ReverseProxy

	answered chan string   // what a response that is held back was named
	over     chan struct{} // closed when the test ends: then nothing is held back

	mu    sync.Mutex
	held  map[string]chan struct{}
	trips []trip
}

// trip is a request that reached the balancer, and what was answered.
type trip struct {
	method, path string
	instance     int
	status       int
	cookies      []*http.Cookie // that the request brought
	header       http.Header    // of the response, as the instance sent it
}

// carrier is what becomes of the cookies on their way. The zero carrier lets them
// pass.
type carrier struct {
	request  func(http.Header)
	response func(http.Header)
}

// newBalancer starts a balancer over the instances.
func newBalancer(t *testing.T, p protocol, instances []*httptest.Server, carry carrier) *balancer {
	t.Helper()
	b := &balancer{carry: carry, answered: make(chan string), over: make(chan struct{}), held: map[string]chan struct{}{}}
	for _, s := range instances {
		target, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		b.proxies = append(b.proxies, &httputil.ReverseProxy{
			Transport: s.Client().Transport, // trusts its server, and speaks the same protocol
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				if carry.request != nil {
					carry.request(r.Out.Header)
				}
			},
			ModifyResponse: b.deliver,
		})
	}
	s := serveTLS(t, p, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Proto != p.name {
			t.Errorf("the browser speaks %s, not %s", r.Proto, p.name)
		}
		b.next(r).ServeHTTP(w, r)
	}))
	t.Cleanup(func() { close(b.over) }) // before the server waits for its requests
	b.url = s.URL
	return b
}

// tripKey finds a request's trip in its context.
type tripKey struct{}

// next notes the request and chooses the instance whose turn it is.
func (b *balancer) next(r *http.Request) http.Handler {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.trips)
	b.trips = append(b.trips, trip{
		method: r.Method, path: r.URL.Path, instance: n % len(b.proxies), cookies: r.Cookies(),
	})
	proxy := b.proxies[n%len(b.proxies)]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), tripKey{}, n)))
	})
}

// deliver notes a response, and holds it back if its request says so.
func (b *balancer) deliver(resp *http.Response) error {
	n := resp.Request.Context().Value(tripKey{}).(int)
	b.mu.Lock()
	b.trips[n].status, b.trips[n].header = resp.StatusCode, resp.Header.Clone()
	b.mu.Unlock()
	if b.carry.response != nil {
		b.carry.response(resp.Header)
	}
	name := resp.Request.Header.Get(holdHeader)
	if name == "" {
		return nil
	}
	select {
	case b.answered <- name:
	case <-b.over:
		return nil
	}
	select {
	case <-b.hold(name):
	case <-b.over:
	}
	return nil
}

// hold returns what is closed when the response of that name may go.
func (b *balancer) hold(name string) chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held[name] == nil {
		b.held[name] = make(chan struct{})
	}
	return b.held[name]
}

// release lets the response of that name go.
func (b *balancer) release(name string) { close(b.hold(name)) }

// since returns the trips after the first n.
func (b *balancer) since(n int) []trip {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.trips[n:])
}

// count returns how many requests have come.
func (b *balancer) count() int { return len(b.since(0)) }

// prefix begins the names of the cookies that carry tokens.
const prefix = "__Host-tg."

// withoutCookies carries nothing: each request is of somebody new.
var withoutCookies = carrier{response: func(h http.Header) { h.Del("Set-Cookie") }}

// underOneName carries tokens as a single cookie, which each response replaces: what
// an application would do that keeps the last token.
var underOneName = carrier{
	request: func(h http.Header) {
		h.Set("Cookie", strings.ReplaceAll(h.Get("Cookie"), "__Host-last=", prefix+"0123456789abcdef="))
	},
	response: func(h http.Header) {
		set := h.Values("Set-Cookie")
		h.Del("Set-Cookie")
		for _, line := range set {
			name, value, _ := strings.Cut(line, "=")
			switch {
			case !strings.HasPrefix(name, prefix):
				h.Add("Set-Cookie", line)
			case !strings.HasPrefix(value, ";"): // a deletion would undo what the same response sets
				h.Add("Set-Cookie", "__Host-last="+value)
			}
		}
	},
}
