package httpgate_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/httpgate"
)

func newTransport(t *testing.T, cfg httpgate.TransportConfig) *httpgate.Transport {
	t.Helper()
	cfg.Keyring, cfg.Clusters = newKeyring(t, tidegate.KeyringConfig{}), []string{"main", "other"}
	tr, err := httpgate.NewTransport(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// call sends a request in a session at position 10 and returns the session.
func call(t *testing.T, tr http.RoundTripper, method, url string) (*tidegate.Session, *http.Response, error) {
	t.Helper()
	s := tidegate.NewSession(tidegate.NewToken(at(10)))
	req, err := http.NewRequestWithContext(tidegate.WithSession(t.Context(), s), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Own", "1")
	resp, err := tr.RoundTrip(req)
	if len(req.Header) != 1 {
		t.Errorf("the caller's request was changed: %v", req.Header)
	}
	return s, resp, err
}

func TestTransportSendsOnlyToItsHosts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		host, url string
		sends     bool
	}{
		{"api", "http://api/", true},
		{"api", "https://api/", true},
		{"API", "https://api:443/", true},
		{"api", "http://Api:80/", true},
		{"api:443", "https://api/", true},
		{"api:80", "http://api/", true},
		{"[::1]:8080", "http://[::1]:8080/", true},
		{"[::1]", "http://[::1]/", true},
		{"api:8080", "http://api:8080/", true},
		{"api", "http://api:8080/", false},
		{"api", "http://api:443/", false},
		{"api:443", "http://api/", false},
		{"api:8080", "http://api/", false},
		{"api", "http://api.example.org/", false},
		{"example.org", "http://api.example.org/", false},
		{"api", "http://api@else/", false},
		{"api", "http://else/api", false},
	} {
		var sent []string
		tr := newTransport(t, httpgate.TransportConfig{Hosts: []string{c.host}, Base: tripper(func(r *http.Request) (*http.Response, error) {
			sent = r.Header.Values(httpgate.DefaultHeader)
			return respond(r, 200, sign(t, at(20))), nil
		})})
		s, _, err := call(t, tr, http.MethodGet, c.url)
		if err != nil || len(sent) > 0 != c.sends {
			t.Errorf("%s, %s: sent %q, %v", c.host, c.url, sent, err)
		}
		if c.sends && verify(t, sent[0])[0].Position != tidegate.At(10) {
			t.Errorf("%s, %s: sent %q", c.host, c.url, sent)
		}
		if got := s.Token().Marks()[0].Position; (got == tidegate.At(20)) != c.sends {
			t.Errorf("%s, %s: the session requires %v", c.host, c.url, got)
		}
	}
}

// A redirect to a host that is not listed goes there without the token, and what
// comes back from it does not count.
func TestTransportDoesNotFollowRedirects(t *testing.T) {
	t.Parallel()
	var there http.Header
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		there = r.Header.Clone()
		w.Header().Set(httpgate.DefaultHeader, sign(t, at(99)))
	}))
	defer other.Close()
	var here http.Header
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		here = r.Header.Clone()
		w.Header().Set(httpgate.DefaultHeader, sign(t, at(20)))
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer service.Close()
	u, _ := url.Parse(service.URL)
	client := http.Client{Transport: newTransport(t, httpgate.TransportConfig{Hosts: []string{u.Host}})}
	s := tidegate.NewSession(tidegate.NewToken(at(10)))
	req, _ := http.NewRequestWithContext(tidegate.WithSession(t.Context(), s), http.MethodPost, service.URL, strings.NewReader("body"))
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if here.Get(httpgate.DefaultHeader) == "" || there == nil || there.Get(httpgate.DefaultHeader) != "" {
		t.Errorf("sent %v here and %v there", here, there)
	}
	if got := s.Token().Marks(); len(got) != 1 || got[0].Position != tidegate.At(20) {
		t.Errorf("%+v", got)
	}
}

func TestTransportMergesWhatComesBack(t *testing.T) {
	t.Parallel()
	garbage := []string{"garbage"}
	for _, c := range []struct {
		name   string
		status int
		method string
		answer []string
		err    error
		want   tidegate.Position
		duty   bool
		stats  httpgate.TransportStats
	}{
		{name: "nothing", status: 200, want: tidegate.At(10), stats: httpgate.TransportStats{Sent: 1}},
		{name: "a token", status: 200, answer: []string{sign(t, at(20)) + ";id"}, want: tidegate.At(20), stats: httpgate.TransportStats{Sent: 1, Merged: 1}},
		{name: "an older one", status: 200, answer: []string{sign(t, at(9))}, want: tidegate.At(10), stats: httpgate.TransportStats{Sent: 1, Merged: 1}},
		{name: "with an error", status: 503, answer: []string{sign(t, at(20))}, want: tidegate.At(20), stats: httpgate.TransportStats{Sent: 1, Merged: 1}},
		{name: "two", status: 200, answer: []string{sign(t, at(20)), sign(t, at(30))}, want: tidegate.At(30), stats: httpgate.TransportStats{Sent: 1, Merged: 2}},
		{name: "garbage", status: 200, answer: garbage, want: tidegate.At(10), duty: true, stats: httpgate.TransportStats{Sent: 1, CatchUps: 1, Refused: httpgate.Refusals{Malformed: 1}}},
		{name: "foreign", status: 200, answer: []string{sign(t, tidegate.Mark{Cluster: "else", Position: tidegate.At(99)})}, want: tidegate.At(10), duty: true, stats: httpgate.TransportStats{Sent: 1, CatchUps: 1, Refused: httpgate.Refusals{Foreign: 1}}},
		{name: "too many", status: 200, answer: []string{"a,b,c,d,e,f"}, want: tidegate.At(10), duty: true, stats: httpgate.TransportStats{Sent: 1, CatchUps: 1, Refused: httpgate.Refusals{Malformed: 4, TooMany: 1}}},
		{name: "a failed read", err: io.ErrUnexpectedEOF, want: tidegate.At(10), stats: httpgate.TransportStats{Sent: 1}},
		{name: "a failed write", err: io.ErrUnexpectedEOF, method: http.MethodPost, want: tidegate.At(10), duty: true, stats: httpgate.TransportStats{Sent: 1, CatchUps: 1}},
	} {
		tr := newTransport(t, httpgate.TransportConfig{Hosts: []string{"api"}, Base: tripper(func(r *http.Request) (*http.Response, error) {
			if c.err != nil {
				return nil, c.err
			}
			return respond(r, c.status, c.answer...), nil
		})})
		s, _, err := call(t, tr, c.method, "http://api/")
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v", c.name, err)
		}
		duties := 0
		var position tidegate.Position
		for _, m := range s.Token().Marks() {
			position = position.Join(m.Position)
			if m.CatchUp {
				duties++
			}
		}
		if position != c.want || (duties == 2) != c.duty {
			t.Errorf("%s: %+v", c.name, s.Token().Marks())
		}
		if got := tr.Stats(); got != c.stats {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// Without a session nothing is sent. One that requires nothing is somebody, too: the
// service's answer is for it.
func TestTransportWithoutAnythingToSay(t *testing.T) {
	t.Parallel()
	tr := newTransport(t, httpgate.TransportConfig{Hosts: []string{"api"}, Header: "x-t", Base: tripper(func(r *http.Request) (*http.Response, error) {
		if sent := r.Header.Get("X-T"); (sent != "") != (tidegate.SessionFrom(r.Context()) != nil) || sent != "" && len(verify(t, sent)) != 0 {
			t.Errorf("it sent %v", r.Header)
		}
		resp := respond(r, 200)
		resp.Header.Set("X-T", sign(t, at(20)))
		return resp, nil
	})})
	fresh := tidegate.NewSession()
	for _, ctx := range []context.Context{t.Context(), tidegate.WithSession(t.Context(), fresh)} {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://api/", nil)
		if _, err := tr.RoundTrip(req); err != nil {
			t.Fatal(err)
		}
	}
	if got := fresh.Token().Marks(); len(got) != 1 || got[0].Position != tidegate.At(20) {
		t.Errorf("%+v", got)
	}
	if got := tr.Stats(); got != (httpgate.TransportStats{Sent: 1, Merged: 1}) {
		t.Errorf("%+v", got)
	}
}

// What does not fit into a token is not left out in silence.
func TestTransportWithMoreThanFits(t *testing.T) {
	t.Parallel()
	tr := newTransport(t, httpgate.TransportConfig{Hosts: []string{"api"}, Base: tripper(func(r *http.Request) (*http.Response, error) {
		token, err := newKeyring(t, tidegate.KeyringConfig{}).Verify(r.Header.Get(httpgate.DefaultHeader))
		if err != nil || !token.CatchesUp() {
			t.Errorf("it sent %+v, %v", token.Marks(), err)
		}
		return respond(r, 200), nil
	})})
	s := tidegate.NewSession()
	for i := range tidegate.MaxMarks + 1 {
		s.Merge(tidegate.NewToken(tidegate.Mark{Cluster: string(rune('a' + i)), Position: tidegate.At(1)}))
	}
	req, _ := http.NewRequestWithContext(tidegate.WithSession(t.Context(), s), http.MethodGet, "http://api/", nil)
	if _, err := tr.RoundTrip(req); err != nil || tr.Stats().Sent != 1 {
		t.Errorf("%v, %+v", err, tr.Stats())
	}
}

func TestTransportConfigThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	good := func() httpgate.TransportConfig {
		return httpgate.TransportConfig{Keyring: newKeyring(t, tidegate.KeyringConfig{}), Clusters: []string{"main"}, Hosts: []string{"api"}}
	}
	for want, edit := range map[string]func(*httpgate.TransportConfig){
		"TransportConfig.Keyring":  func(c *httpgate.TransportConfig) { c.Keyring = nil },
		"TransportConfig.Clusters": func(c *httpgate.TransportConfig) { c.Clusters = nil },
		"TransportConfig.Hosts":    func(c *httpgate.TransportConfig) { c.Hosts = nil },
		"TransportConfig.Header":   func(c *httpgate.TransportConfig) { c.Header = "Cookie" },
	} {
		cfg := good()
		edit(&cfg)
		if _, err := httpgate.NewTransport(cfg); !errors.Is(err, tidegate.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// An answer without a token to a request that may have written can be of a balancer that
// has given up on the service.
func TestAnswerOfABalancer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method string
		status int
		lost   bool
	}{
		{http.MethodPost, http.StatusGatewayTimeout, true}, {http.MethodPost, http.StatusBadGateway, true}, {http.MethodPost, http.StatusNoContent, false},
		{http.MethodPost, http.StatusConflict, false}, {http.MethodGet, http.StatusGatewayTimeout, false},
	} {
		base := tripper(func(r *http.Request) (*http.Response, error) { return respond(r, c.status), nil })
		tr := newTransport(t, httpgate.TransportConfig{Hosts: []string{"api"}, Base: base})
		jar, err := httpgate.NewJar(httpgate.JarConfig{Hosts: []string{"api"}, Base: base})
		if err != nil {
			t.Fatal(err)
		}
		s := tidegate.NewSession()
		for _, rt := range []http.RoundTripper{tr, jar} {
			req, _ := http.NewRequestWithContext(tidegate.WithSession(t.Context(), s), c.method, "http://api/", nil)
			if _, err := rt.RoundTrip(req); err != nil {
				t.Fatal(err)
			}
		}
		if m := s.Token().Marks(); (len(m) > 0 && m[0].CatchUp) != c.lost {
			t.Errorf("%s, %d: the session requires %+v", c.method, c.status, m)
		}
		if got := jar.Tokens(); (len(got) == 1) != c.lost {
			t.Errorf("%s, %d: the jar has %q", c.method, c.status, got)
		}
	}
}
