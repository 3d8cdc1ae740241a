package httpgate_test

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/httpgate"
)

// delivery is a network that delivers responses in the order in which the test
// releases them.
type delivery struct {
	base    http.RoundTripper
	arrived chan string
	release map[string]chan struct{}
}

func newDelivery(base http.RoundTripper, paths ...string) *delivery {
	d := &delivery{base: base, arrived: make(chan string, len(paths)), release: map[string]chan struct{}{}}
	for _, p := range paths {
		d.release[p] = make(chan struct{})
	}
	return d
}

func (d *delivery) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := d.base.RoundTrip(req)
	if wait := d.release[req.URL.Path]; wait != nil {
		d.arrived <- req.URL.Path
		<-wait
	}
	return resp, err
}

// together sends requests that all leave before any response is delivered, and
// delivers the responses in the order of the paths.
func (d *delivery) together(t *testing.T, client *http.Client, base string, paths ...string) {
	t.Helper()
	done := map[string]chan error{}
	for _, p := range paths {
		c := make(chan error, 1)
		done[p] = c
		go func() {
			resp, err := client.Get(base + p)
			if err == nil {
				resp.Body.Close()
			}
			c <- err
		}()
	}
	for range paths {
		<-d.arrived
	}
	for _, p := range paths {
		close(d.release[p])
		if err := <-done[p]; err != nil {
			t.Fatal(err)
		}
	}
}

// naive is a client that keeps the last token only.
type naive struct {
	base  http.RoundTripper
	token string
}

func (n *naive) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if n.token != "" {
		req.Header.Set(httpgate.DefaultHeader, n.token)
	}
	resp, err := n.base.RoundTrip(req)
	if err == nil && resp.Header.Get(httpgate.DefaultHeader) != "" {
		n.token = resp.Header.Get(httpgate.DefaultHeader)
	}
	return resp, err
}

// clients are the ways to keep tokens. The delivery is below what keeps them.
var clients = []struct {
	name  string
	keeps bool // what parallel responses say
	make  func(t *testing.T, d *delivery, u *url.URL) *http.Client
}{
	{"cookie jar", true, func(t *testing.T, d *delivery, _ *url.URL) *http.Client {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		return &http.Client{Transport: d, Jar: jar, Timeout: time.Minute}
	}},
	{"Jar", true, func(t *testing.T, d *delivery, u *url.URL) *http.Client {
		jar, err := httpgate.NewJar(httpgate.JarConfig{Hosts: []string{u.Host}, Base: d})
		if err != nil {
			t.Fatal(err)
		}
		return &http.Client{Transport: jar, Timeout: time.Minute}
	}},
	{"the last one only", false, func(_ *testing.T, d *delivery, _ *url.URL) *http.Client {
		return &http.Client{Transport: &naive{base: d}, Timeout: time.Minute}
	}},
}

// Two requests of one client run in parallel and their responses arrive in either
// order: what both said is there afterwards.
func TestResponsesInAnyOrder(t *testing.T) {
	t.Parallel()
	does := map[string]func(r *http.Request){
		"/start":   func(r *http.Request) { note(r.Context(), at(10), seen(1)) },
		"/older":   func(r *http.Request) { note(r.Context(), at(20)) },
		"/newer":   func(r *http.Request) { note(r.Context(), at(30)) },
		"/stays":   func(r *http.Request) { note(r.Context(), seen(1)) }, // and its token says what it said
		"/another": func(r *http.Request) { note(r.Context(), seen(2)) },
		"/idle":    func(*http.Request) {},
	}
	for _, c := range []struct {
		order []string
		want  tidegate.Mark
		// lost is what a client that keeps the last token only has afterwards.
		lost tidegate.Mark
	}{
		{[]string{"/older", "/newer"}, at(30), at(30)},
		{[]string{"/newer", "/older"}, at(30), at(20)},
		{[]string{"/newer", "/stays"}, at(30), at(10)},
		{[]string{"/stays", "/newer"}, at(30), at(30)},
		{[]string{"/newer", "/idle"}, at(30), at(30)},
		{[]string{"/newer", "/older", "/another", "/stays"}, seenAt(30, 2), at(10)},
	} {
		for _, client := range clients {
			name := fmt.Sprint(client.name, c.order)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				m := newGate(t, func(cfg *httpgate.Config) {
					cfg.Sources = []httpgate.Source{httpgate.Cookie(httpgate.CookieConfig{}), httpgate.Header("")}
				})
				var last tidegate.Mark
				server, base := serve(t, m.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/last" {
						does[r.URL.Path](r)
						return
					}
					last = tidegate.SessionFrom(r.Context()).Token().Marks()[0]
				})), true)
				u, _ := url.Parse(server.URL)
				d := newDelivery(base.Transport, c.order...)
				cl := client.make(t, d, u)
				get(t, cl, server.URL+"/start")
				d.together(t, cl, server.URL, c.order...)
				get(t, cl, server.URL+"/last")
				want := c.want
				if !client.keeps {
					want = c.lost
				}
				if last.Position != want.Position || !covers(last.Seen, want.Seen) {
					t.Errorf("the client has %+v, want %+v", last, want)
				}
			})
		}
	}
}

func seenAt(n uint64, ids ...tidegate.Incarnation) tidegate.Mark {
	m := at(n)
	m.Seen = ids
	return m
}

func covers(have, want []tidegate.Incarnation) bool {
	for _, id := range want {
		if !slices.Contains(have, id) {
			return false
		}
	}
	return true
}

func get(t *testing.T, c *http.Client, url string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

// A read that stays on its replica shows more than another request of the client,
// which leaves the replica, can know of. Its response must say so although its
// token is what it was: the other response deletes the one that both brought.
func TestReadThatStaysIsNotLost(t *testing.T) {
	t.Parallel()
	for _, client := range clients[:2] {
		for _, order := range [][]string{{"/leaves", "/stays"}, {"/stays", "/leaves"}} {
			var last tidegate.Mark
			m := newGate(t, func(cfg *httpgate.Config) {
				cfg.Sources = []httpgate.Source{httpgate.Cookie(httpgate.CookieConfig{}), httpgate.Header("")}
				cfg.VisitorReads = true
			})
			server, base := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/leaves" {
					// What it read from has a bound now, and another took its place. A
					// session cannot be made to forget from outside: another answers.
					w.Header().Set("Cache-Control", "no-store")
					answer := sign(t, seenAt(20, 2))
					w.Header().Set(httpgate.DefaultHeader, answer+";left")
					http.SetCookie(w, &http.Cookie{Name: cookieName(7), Value: answer, Path: "/", Secure: true})
					for _, c := range r.Cookies() {
						http.SetCookie(w, &http.Cookie{Name: c.Name, Path: "/", Secure: true, MaxAge: -1})
					}
					return
				}
				m.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/last" {
						last = tidegate.SessionFrom(r.Context()).Token().Marks()[0]
						return
					}
					note(r.Context(), seen(1))
				})).ServeHTTP(w, r)
			}), true)
			u, _ := url.Parse(server.URL)
			d := newDelivery(base.Transport, order...)
			cl := client.make(t, d, u)
			get(t, cl, server.URL+"/start")
			d.together(t, cl, server.URL, order...)
			get(t, cl, server.URL+"/last")
			if last.Position != tidegate.At(20) || !covers(last.Seen, []tidegate.Incarnation{1, 2}) {
				t.Errorf("%s, %q: the client has %+v", client.name, order, last)
			}
		}
	}
}

// Two responses with the same token are two in a client: a request that has sent
// one must not make it forget the other.
func TestSameTokenTwiceIsTwo(t *testing.T) {
	t.Parallel()
	m := newGate(t, func(cfg *httpgate.Config) { cfg.VisitorReads = true })
	server, base := serve(t, m.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		note(r.Context(), seen(1))
	})), true)
	u, _ := url.Parse(server.URL)
	d := newDelivery(base.Transport, "/a", "/b")
	jar, err := httpgate.NewJar(httpgate.JarConfig{Hosts: []string{u.Host}, Base: d})
	if err != nil {
		t.Fatal(err)
	}
	d.together(t, &http.Client{Transport: jar}, server.URL, "/a", "/b")
	if got := jar.Tokens(); len(got) != 2 || got[0] == got[1] {
		t.Errorf("%q", got)
	}
}
