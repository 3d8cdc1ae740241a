package carrier

import (
	"context"
	"net/http"
	"net/http/cookiejar"
	"net/url"

	"github.com/tidegatedb/tidegate/httpgate"
)

// cookie is for browsers: they know nothing of tokens, and do what each response
// says.
var cookie = Carrier{
	Name:  "cookie",
	About: "tokens in cookies, kept by a cookie jar that knows nothing of them, as in a browser",
	Open:  openCookie,
}

func openCookie(_ context.Context, cfg Config) (Way, error) { return cookieWay{cfg}, nil }

type cookieWay struct{ cfg Config }

// Gate implements Way.
func (w cookieWay) Gate(context.Context) (Gate, error) {
	// Without encryption, because the requests stay on this machine.
	source := httpgate.Cookie(httpgate.CookieConfig{Insecure: true})
	return newGate(w.cfg, httpgate.Config{Sources: []httpgate.Source{source}})
}

// Client implements Way.
func (cookieWay) Client(_ context.Context, _, host string, base http.RoundTripper) (Client, error) {
	c := &cookieClient{http.Client{Transport: base}, &url.URL{Scheme: "http", Host: host, Path: "/"}}
	return c, c.empty()
}

// Close implements Way.
func (cookieWay) Close() {}

type cookieClient struct {
	http.Client
	home *url.URL
}

// empty begins with a new jar.
func (c *cookieClient) empty() (err error) {
	c.Jar, err = cookiejar.New(nil)
	return err
}

// Forget implements Client.
func (c *cookieClient) Forget(context.Context) int {
	had := len(c.Jar.Cookies(c.home))
	_ = c.empty() // cookiejar.New has no error to give
	return had
}
