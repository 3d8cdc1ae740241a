package httpgate

import (
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/tidegatedb/tidegate"
)

// TransportConfig configures a [Transport].
type TransportConfig struct {
	// Keyring signs what is sent and verifies what comes back. It is required, and
	// the services on both sides need the same keys.
	Keyring *tidegate.Keyring
	// Clusters names the clusters that a session has to catch up with when a
	// service's token is refused, or when a request that may have changed something
	// got no answer. At least one is required.
	Clusters []string
	// Hosts are the services that tokens are sent to and taken from: "host" or
	// "host:port", compared with the request's URL as a whole. A host without a port
	// stands for its scheme's own. Nothing else ever gets a token, redirects included.
	Hosts []string
	// Header is the name of the header. Empty means [DefaultHeader].
	Header string
	// Base sends the requests. Nil means http.DefaultTransport.
	Base http.RoundTripper
}

// Transport is an http.RoundTripper for calls to other services on behalf of a
// request. It sends the token of the session in the request's context, and merges
// the one that comes back into that session, whatever the response's status. It
// is safe for concurrent use.
type Transport struct {
	cfg      TransportConfig
	verifier verifier
	hosts    hostList

	sent, merged, catchUps atomic.Uint64
	refused                refusals
}

// TransportStats is what a [Transport] has done since it was made.
type TransportStats struct {
	// Sent counts requests that carried a token.
	Sent uint64
	// Merged counts tokens that came back and were merged.
	Merged uint64
	// CatchUps counts calls after which the session had to catch up.
	CatchUps uint64
	// Refused counts tokens that came back and were refused.
	Refused Refusals
}

// NewTransport returns a transport, or an error that wraps tidegate.ErrConfig and
// names the field.
func NewTransport(cfg TransportConfig) (*Transport, error) {
	if err := validateKeys("TransportConfig", cfg.Keyring, cfg.Clusters); err != nil {
		return nil, err
	}
	header, err := headerName("TransportConfig", cfg.Header)
	if err != nil {
		return nil, err
	}
	hosts, err := newHostList("TransportConfig", cfg.Hosts)
	if err != nil {
		return nil, err
	}
	cfg.Header = header
	if cfg.Base == nil {
		cfg.Base = http.DefaultTransport
	}
	v := verifier{cfg.Keyring, append([]string(nil), cfg.Clusters...)}
	return &Transport{cfg: cfg, verifier: v, hosts: hosts}, nil
}

// Stats returns the counters. They are read one after the other, while requests
// go on.
func (t *Transport) Stats() TransportStats {
	return TransportStats{Sent: t.sent.Load(), Merged: t.merged.Load(), CatchUps: t.catchUps.Load(), Refused: t.refused.snapshot()}
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.hosts.has(req.URL) {
		return t.cfg.Base.RoundTrip(req)
	}
	s := tidegate.SessionFrom(req.Context())
	if s == nil {
		return t.cfg.Base.RoundTrip(req)
	}
	// A service's write is the session's as well.
	begin, end := s.Load, func() {}
	if !safe(req.Method) {
		begin, end = s.BeginWrite, s.EndWrite
	}
	if err := begin(req.Context()); err != nil {
		closeBody(req)
		return nil, err
	}
	defer end()
	// Also one that requires nothing: without any the service does not know whom to answer,
	// and may keep in a store of its own what it writes.
	req = withHeader(req, t.cfg.Header, t.cfg.Keyring.Sign(s.Token()))
	t.sent.Add(1)
	resp, err := t.cfg.Base.RoundTrip(req)
	if err != nil {
		// Nobody knows what the service has done.
		if !safe(req.Method) {
			t.catchUp(s)
		}
		return resp, err
	}
	if !t.merge(s, resp) && unheard(req, resp) {
		t.catchUp(s)
	}
	return resp, nil
}

// unheard reports whether an answer without a token may be of somebody between here and
// the service, which may have written and could not say so.
func unheard(req *http.Request, resp *http.Response) bool {
	return !safe(req.Method) && resp.StatusCode >= http.StatusInternalServerError
}

// closeBody does what a RoundTripper must also when it fails.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

func (t *Transport) catchUp(s *tidegate.Session) {
	t.catchUps.Add(1)
	t.verifier.catchUp(s)
}

// maxAnswers is how many tokens of one response are read.
const maxAnswers = 4

// merge joins what came back into the session, and reports whether there was anything. A
// service has one token to say; if it cannot be read, the session must see all that the
// service may have done.
func (t *Transport) merge(s *tidegate.Session, resp *http.Response) bool {
	n, refused := 0, false
	eachToken(resp.Header[t.cfg.Header], func(text string) bool {
		if n++; n > maxAnswers {
			t.refused.add(errTooMany)
			refused = true
			return false
		}
		token, err := t.verifier.verify(text)
		if err != nil {
			t.refused.add(err)
			refused = true
			return true
		}
		s.Merge(token)
		t.merged.Add(1)
		return true
	})
	if refused {
		t.catchUp(s)
	}
	return n > 0
}

// safe reports whether requests of the method change nothing (RFC 9110, 9.2.1).
func safe(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// withHeader returns a copy of the request with one more value of the header: a
// RoundTripper must not change what it is given.
func withHeader(req *http.Request, name, value string) *http.Request {
	copied := *req
	copied.Header = make(http.Header, len(req.Header)+1)
	for k, v := range req.Header {
		copied.Header[k] = v
	}
	copied.Header[name] = append(append([]string(nil), req.Header[name]...), value)
	return &copied
}

// headerName returns the canonical name of the header that carries tokens.
func headerName(config, name string) (string, error) {
	if name == "" {
		name = DefaultHeader
	}
	s := Header(name)
	if err := s.validate(nil); err != nil {
		return "", configError(config+".Header", err)
	}
	return textproto.CanonicalMIMEHeaderKey(name), nil
}

// hostList holds hosts in lower case, with or without a port.
type hostList map[string]bool

func newHostList(config string, hosts []string) (hostList, error) {
	list := make(hostList, len(hosts))
	for _, h := range hosts {
		u, err := url.Parse("//" + h)
		if err != nil || u.Host != h || h == "" || u.Hostname() == "" || strings.HasSuffix(h, ":") || strings.Contains(h, "*") {
			return nil, configError(config+".Hosts", badHost(h))
		}
		list[strings.ToLower(h)] = true
	}
	if len(list) == 0 {
		return nil, configError(config+".Hosts", errNoHosts)
	}
	return list, nil
}

// has reports whether the URL's host is one of the list: as it is written, or
// without a port that its scheme implies anyhow.
func (l hostList) has(u *url.URL) bool {
	host, port := strings.ToLower(u.Hostname()), u.Port()
	implied := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	bare := host
	if strings.Contains(host, ":") {
		bare = "[" + host + "]"
	}
	if port == "" || port == implied {
		return l[bare] || implied != "" && l[net.JoinHostPort(host, implied)]
	}
	return l[net.JoinHostPort(host, port)]
}
