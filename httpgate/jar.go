package httpgate

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/tidegatedb/tidegate"
)

// JarConfig configures a [Jar].
type JarConfig struct {
	// Hosts are the services that tokens are sent to and kept from, as in
	// [TransportConfig]. They share one history, so they should be of one
	// application. At least one is required.
	Hosts []string
	// Header is the name of the header. Empty means [DefaultHeader].
	Header string
	// Base sends the requests. Nil means http.DefaultTransport.
	Base http.RoundTripper
}

// Jar is an http.RoundTripper that keeps the tokens of one client that talks by
// header, as a cookie jar does for one that talks by cookies. It needs no keys:
// to a client a token is opaque. It is safe for concurrent use.
//
// The rule that it follows, for clients in other languages: send all tokens that
// you have; when a response brings a token, forget those that its request sent
// and keep the new one beside the others; when a request that may have written gets no
// response, keep something that is no token, such as "lost", beside them: the next
// request then sees all that is committed by its time. A client that keeps the last
// token only loses what parallel responses said.
type Jar struct {
	cfg   JarConfig
	hosts hostList

	mu     sync.Mutex
	tokens []string // oldest first
}

// NewJar returns an empty jar, or an error that wraps tidegate.ErrConfig and
// names the field.
func NewJar(cfg JarConfig) (*Jar, error) {
	header, err := headerName("JarConfig", cfg.Header)
	if err != nil {
		return nil, err
	}
	hosts, err := newHostList("JarConfig", cfg.Hosts)
	if err != nil {
		return nil, err
	}
	cfg.Header = header
	if cfg.Base == nil {
		cfg.Base = http.DefaultTransport
	}
	return &Jar{cfg: cfg, hosts: hosts}, nil
}

// Tokens returns the texts of the tokens, oldest first, to keep them beyond the
// process.
func (j *Jar) Tokens() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.tokens)
}

// Add puts tokens into the jar beside those that are there.
func (j *Jar) Add(tokens ...string) { j.replace(nil, tokens) }

// RoundTrip implements http.RoundTripper.
func (j *Jar) RoundTrip(req *http.Request) (*http.Response, error) {
	if !j.hosts.has(req.URL) {
		return j.cfg.Base.RoundTrip(req)
	}
	sent := j.Tokens()
	if len(sent) > 0 {
		req = withHeader(req, j.cfg.Header, strings.Join(sent, ", "))
	}
	resp, err := j.cfg.Base.RoundTrip(req)
	if err != nil {
		// Nobody knows what it has done, and the tokens that are here do not say.
		if !safe(req.Method) {
			j.lose()
		}
		return resp, err
	}
	var got []string
	eachItem(resp.Header[j.cfg.Header], func(text string) bool {
		got = append(got, text)
		return len(got) < maxAnswers
	})
	if len(got) > 0 {
		j.replace(sent, got)
	} else if unheard(req, resp) {
		j.lose()
	}
	return resp, nil
}

// lose notes that nobody knows what a request has done. One such note says as much as
// many.
func (j *Jar) lose() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tokens = slices.DeleteFunc(j.tokens, func(t string) bool { return strings.HasPrefix(t, lost+";") })
	j.tokens = append(j.tokens, lost+";"+newID())
}

// replace forgets the tokens that were sent and keeps what came back for them.
func (j *Jar) replace(sent, got []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tokens = slices.DeleteFunc(j.tokens, func(t string) bool { return slices.Contains(sent, t) })
	for _, t := range got {
		if t != "" && !slices.Contains(j.tokens, t) {
			j.tokens = append(j.tokens, t)
		}
	}
}

// lost is what a client sends that does not know what it has written. It is refused as
// every text that is no token, and makes the session catch up; the answer replaces it.
const lost = "lost"

var errNoHosts = errors.New("it is empty; name the hosts that may have tokens")

func badHost(h string) error {
	return fmt.Errorf("%q is no host; write it as in a URL, such as api.internal or 10.0.0.7:8080", h)
}

func configError(field string, err error) error {
	return fmt.Errorf("%w: %s: %w", tidegate.ErrConfig, field, err)
}
