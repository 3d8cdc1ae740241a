package httpgate_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/httpgate"
)

// tripper is a network without wires.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func respond(r *http.Request, status int, tokens ...string) *http.Response {
	h := http.Header{}
	for _, t := range tokens {
		h.Add(httpgate.DefaultHeader, t)
	}
	return &http.Response{StatusCode: status, Header: h, Body: http.NoBody, Request: r}
}

func TestJarReplacesWhatItHasSent(t *testing.T) {
	t.Parallel()
	var got string
	var answer []string
	during := func() {}
	jar, err := httpgate.NewJar(httpgate.JarConfig{Hosts: []string{"api"}, Base: tripper(func(r *http.Request) (*http.Response, error) {
		got = strings.Join(r.Header.Values(httpgate.DefaultHeader), "|")
		during()
		return respond(r, 500, answer...), nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		url    string
		answer []string
		during func()
		sends  string
		keeps  []string
	}{
		{name: "the first", url: "http://api/", answer: []string{"a"}, keeps: []string{"a"}},
		{name: "no answer", url: "http://api/", sends: "a", keeps: []string{"a"}},
		{name: "another host", url: "http://else/", answer: []string{"x"}, keeps: []string{"a"}},
		{name: "one came meanwhile", url: "http://API:80/", answer: []string{"c"}, during: func() { jar.Add("b", "a", "") }, sends: "a", keeps: []string{"b", "c"}},
		{name: "several", url: "http://api/", answer: []string{"d;1, e"}, sends: "b, c", keeps: []string{"d;1", "e"}},
		{name: "one is there already", url: "http://api/", answer: []string{"f"}, during: func() { jar.Add("f", "f") }, sends: "d;1, e", keeps: []string{"f"}},
		{name: "more than anybody answers", url: "http://api/", answer: []string{"1,2,3,4,5,6"}, sends: "f", keeps: []string{"1", "2", "3", "4"}},
	} {
		got, answer, during = "", c.answer, func() {}
		if c.during != nil {
			during = c.during
		}
		req, _ := http.NewRequest(http.MethodGet, c.url, nil)
		if _, err := jar.RoundTrip(req); err != nil {
			t.Fatal(err)
		}
		if len(req.Header) != 0 {
			t.Errorf("%s: the caller's request was changed: %v", c.name, req.Header)
		}
		if got != c.sends || !slices.Equal(jar.Tokens(), c.keeps) {
			t.Errorf("%s: sent %q, keeps %q", c.name, got, jar.Tokens())
		}
	}
}

func TestJarAndAnError(t *testing.T) {
	t.Parallel()
	jar, err := httpgate.NewJar(httpgate.JarConfig{Hosts: []string{"api"}, Header: "x-t", Base: tripper(func(r *http.Request) (*http.Response, error) {
		if r.Header.Get("X-T") != "a" {
			t.Errorf("it sent %v", r.Header)
		}
		return nil, http.ErrServerClosed
	})})
	if err != nil {
		t.Fatal(err)
	}
	jar.Add("a")
	req, _ := http.NewRequest(http.MethodGet, "http://api/", nil)
	if _, err := jar.RoundTrip(req); !errors.Is(err, http.ErrServerClosed) || !slices.Equal(jar.Tokens(), []string{"a"}) {
		t.Errorf("%v, %q", err, jar.Tokens())
	}
}

func TestJarConfigThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]httpgate.JarConfig{
		"JarConfig.Hosts":  {},
		`"http://api"`:     {Hosts: []string{"http://api"}},
		`"api/x"`:          {Hosts: []string{"api/x"}},
		`"*.example.org"`:  {Hosts: []string{"*.example.org"}},
		`"user@api"`:       {Hosts: []string{"user@api"}},
		`"api:"`:           {Hosts: []string{"ok", "api:"}},
		`""`:               {Hosts: []string{""}},
		`":80"`:            {Hosts: []string{":80"}},
		"JarConfig.Header": {Hosts: []string{"api"}, Header: "a b"},
	} {
		if _, err := httpgate.NewJar(cfg); !errors.Is(err, tidegate.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// A request that may have written and got no response leaves something behind that
// the next one brings: what its server cannot read makes the session catch up.
// However many responses are lost, one note says it.
func TestJarNotesALossOnce(t *testing.T) {
	t.Parallel()
	jar, err := httpgate.NewJar(httpgate.JarConfig{Hosts: []string{"api"}, Base: tripper(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("cut")
	})})
	if err != nil {
		t.Fatal(err)
	}
	jar.Add("a token")
	last := ""
	for range 3 {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://api/", nil)
		if _, err := jar.RoundTrip(req); err == nil {
			t.Fatal("it was answered")
		}
		// Each has a name of its own: the answer to a request that had sent an older one
		// must not delete it.
		got := jar.Tokens()
		if len(got) != 2 || got[0] != "a token" || got[1] == last {
			t.Errorf("%q", got)
		}
		last = got[1]
	}
}

func TestJarAfterALostResponse(t *testing.T) {
	t.Parallel()
	var sent []string
	var fails bool
	jar, err := httpgate.NewJar(httpgate.JarConfig{Hosts: []string{"api"}, Base: tripper(func(r *http.Request) (*http.Response, error) {
		sent = r.Header.Values(httpgate.DefaultHeader)
		if fails {
			return nil, errors.New("connection reset")
		}
		return respond(r, 200, "new"), nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	do := func(method string, failing bool) {
		fails = failing
		req, _ := http.NewRequest(method, "http://api/", nil)
		if resp, err := jar.RoundTrip(req); err == nil {
			resp.Body.Close()
		}
	}
	jar.Add("old")
	do(http.MethodGet, true)
	if got := jar.Tokens(); !slices.Equal(got, []string{"old"}) {
		t.Errorf("after a read that failed: %q", got)
	}
	do(http.MethodPut, true)
	left := jar.Tokens()
	if len(left) != 2 || left[0] != "old" {
		t.Fatalf("after a write that failed: %q", left)
	}
	gate := newGate(t, nil)
	r := request()
	r.Header.Set(httpgate.DefaultHeader, left[1])
	handle(gate, func(http.ResponseWriter, *http.Request) {}, r)
	if st := gate.Stats(); st.CatchUps != 1 || st.Refused.Malformed != 1 {
		t.Errorf("a server that is sent %q: %+v", left[1], st)
	}
	do(http.MethodGet, false)
	if got := jar.Tokens(); !slices.Equal(got, []string{"new"}) || len(sent) != 1 || !strings.Contains(sent[0], left[1]) {
		t.Errorf("the next request sent %q and left %q", sent, got)
	}
}
