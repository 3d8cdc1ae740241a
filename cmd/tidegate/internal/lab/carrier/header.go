package carrier

import (
	"context"
	"net/http"

	"github.com/tidegatedb/tidegate/httpgate"
)

// header is for clients that are programs: they keep a set of tokens and send all
// of it.
var header = Carrier{
	Name:  "header",
	About: "tokens in X-Consistency-Token, kept by httpgate.Jar",
	Open:  openHeader,
}

func openHeader(_ context.Context, cfg Config) (Way, error) { return headerWay{cfg}, nil }

type headerWay struct{ cfg Config }

// Gate implements Way.
func (w headerWay) Gate(context.Context) (Gate, error) {
	return newGate(w.cfg, httpgate.Config{Sources: []httpgate.Source{httpgate.Header("")}})
}

// Client implements Way.
func (headerWay) Client(_ context.Context, _, host string, base http.RoundTripper) (Client, error) {
	c := &headerClient{cfg: httpgate.JarConfig{Hosts: []string{host}, Base: base}}
	return c, c.empty()
}

// Close implements Way.
func (headerWay) Close() {}

type headerClient struct {
	cfg httpgate.JarConfig
	jar *httpgate.Jar
}

// empty begins with a new jar.
func (c *headerClient) empty() (err error) {
	c.jar, err = httpgate.NewJar(c.cfg)
	return err
}

// Do implements Client.
func (c *headerClient) Do(req *http.Request) (*http.Response, error) { return c.jar.RoundTrip(req) }

// Forget implements Client.
func (c *headerClient) Forget(context.Context) int {
	had := len(c.jar.Tokens())
	_ = c.empty() // it worked with the same configuration
	return had
}
