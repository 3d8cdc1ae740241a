package httpgate_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/httpgate"
	"github.com/tidegatedb/tidegate/tidegatetest"
)

// instance is one of an application's: GET shows what is stored, PUT stores it.
// The response names the node that was read from.
func instance(t *testing.T, db *tidegatetest.Cluster, sources ...httpgate.Source) *httptest.Server {
	t.Helper()
	m := newGate(t, func(cfg *httpgate.Config) {
		cfg.Clusters = []string{"test"}
		cfg.Sources = sources
		cfg.VisitorReads = true
	})
	s := httptest.NewServer(m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			value, _ := io.ReadAll(r.Body)
			if err := db.Put(r.Context(), "k", string(value)); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
			return
		}
		ctx, seen := tidegate.Observe(r.Context())
		value, _, err := db.Get(ctx, tidegate.Causal, "k")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		d, _ := seen.Last()
		w.Header().Set("X-Node", d.Node)
		io.WriteString(w, value)
	})))
	t.Cleanup(s.Close)
	return s
}

// carriers are the ways a client's tokens travel, and a new client for each.
func carriers(t *testing.T) map[string]struct {
	source httpgate.Source
	client func(hosts ...string) *http.Client
} {
	return map[string]struct {
		source httpgate.Source
		client func(hosts ...string) *http.Client
	}{
		"cookie": {httpgate.Cookie(httpgate.CookieConfig{Insecure: true}), func(...string) *http.Client {
			jar, err := cookiejar.New(nil)
			if err != nil {
				t.Fatal(err)
			}
			return &http.Client{Jar: jar}
		}},
		"header": {httpgate.Header(""), func(hosts ...string) *http.Client {
			jar, err := httpgate.NewJar(httpgate.JarConfig{Hosts: hosts})
			if err != nil {
				t.Fatal(err)
			}
			return &http.Client{Transport: jar}
		}},
	}
}

func send(t *testing.T, c *http.Client, method, url, value string) (body, node string) {
	t.Helper()
	var content io.Reader
	if value != "" {
		content = strings.NewReader(value)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, content)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %s, %v", method, url, resp.StatusCode, b, err)
	}
	return string(b), resp.Header.Get("X-Node")
}

// Whoever writes on one instance sees it on the other, though no replica has it.
func TestReadYourWritesAcrossInstances(t *testing.T) {
	t.Parallel()
	for name, c := range carriers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tidegatetest.New(t, tidegatetest.Config{})
			one, two := instance(t, db, c.source), instance(t, db, c.source)
			client, other := c.client(hostOf(one), hostOf(two)), c.client(hostOf(one), hostOf(two))
			send(t, client, http.MethodPut, one.URL, "old")
			db.Probe()
			db.Replica(0).Hold()
			db.Replica(1).Hold()
			send(t, client, http.MethodPut, one.URL, "new")
			db.StaleUnlessRouted("k")
			if got, node := send(t, client, http.MethodGet, two.URL, ""); got != "new" || node != db.Primary().Name() {
				t.Errorf("the writer sees %q on %s", got, node)
			}
			// Somebody else has not been promised anything: the test would notice.
			if got, node := send(t, other, http.MethodGet, two.URL, ""); got != "old" || node == db.Primary().Name() {
				t.Errorf("a visitor sees %q on %s", got, node)
			}
			db.Replica(0).Release()
			db.Probe()
			if got, node := send(t, client, http.MethodGet, two.URL, ""); got != "new" || node != db.Replica(0).Name() {
				t.Errorf("later the writer sees %q on %s", got, node)
			}
		})
	}
}

// What was seen on one replica does not vanish on another instance when that
// replica is gone and the other one is behind.
func TestMonotonicReadsAcrossInstances(t *testing.T) {
	t.Parallel()
	for name, c := range carriers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tidegatetest.New(t, tidegatetest.Config{})
			one, two := instance(t, db, c.source), instance(t, db, c.source)
			writer := c.client(hostOf(one), hostOf(two))
			send(t, writer, http.MethodPut, one.URL, "old")
			db.Probe()
			db.Replica(1).Hold()
			send(t, writer, http.MethodPut, one.URL, "new")
			db.Probe()
			var reader *http.Client
			for node := ""; node != db.Replica(0).Name(); {
				reader = c.client(hostOf(one), hostOf(two)) // until one is led to that replica
				var got string
				if got, node = send(t, reader, http.MethodGet, one.URL, ""); node == db.Replica(0).Name() && got != "new" {
					t.Fatalf("%s shows %q", node, got)
				}
			}
			db.Replica(0).Stop()
			db.Probe()
			if got, node := send(t, reader, http.MethodGet, two.URL, ""); got != "new" {
				t.Errorf("it sees %q on %s", got, node)
			}
		})
	}
}

// A service calls another one that writes; its caller sees the write.
func TestWriteOfAServiceThatIsCalled(t *testing.T) {
	t.Parallel()
	db := tidegatetest.New(t, tidegatetest.Config{})
	back := instance(t, db, httpgate.Header(""))
	transport, err := httpgate.NewTransport(httpgate.TransportConfig{
		Keyring: newKeyring(t, tidegate.KeyringConfig{}), Clusters: []string{"test"}, Hosts: []string{hostOf(back)},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := newGate(t, func(cfg *httpgate.Config) { cfg.Clusters = []string{"test"} })
	front := httptest.NewServer(m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, err := http.NewRequestWithContext(r.Context(), http.MethodPut, back.URL, strings.NewReader("new"))
		if err == nil {
			var resp *http.Response
			if resp, err = (&http.Client{Transport: transport}).Do(req); err == nil {
				err = resp.Body.Close()
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	})))
	defer front.Close()
	db.Replica(0).Hold()
	db.Replica(1).Hold()
	jar, err := httpgate.NewJar(httpgate.JarConfig{Hosts: []string{hostOf(front), hostOf(back)}})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: jar}
	send(t, client, http.MethodPost, front.URL, "")
	db.StaleUnlessRouted("k")
	if got, node := send(t, client, http.MethodGet, back.URL, ""); got != "new" {
		t.Errorf("it sees %q on %s", got, node)
	}
}

// A forged token cannot hold anybody's reads up, and advances nobody.
func TestForgedTokenAdvancesNothing(t *testing.T) {
	t.Parallel()
	db := tidegatetest.New(t, tidegatetest.Config{})
	app := instance(t, db, httpgate.Header(""))
	jar, err := httpgate.NewJar(httpgate.JarConfig{Hosts: []string{hostOf(app)}})
	if err != nil {
		t.Fatal(err)
	}
	send(t, &http.Client{Transport: jar}, http.MethodPut, app.URL, "v")
	db.Probe()
	forger := newKeyring(t, tidegate.KeyringConfig{Keys: []tidegate.Key{{ID: "k", Secret: secret(9)}}})
	forged := forger.Sign(tidegate.NewToken(tidegate.Mark{Cluster: "test", Epoch: epoch, Position: tidegate.At(1 << 60)}))
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, app.URL, nil)
	req.Header.Set(httpgate.DefaultHeader, forged)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK || string(body) != "v" {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
	for _, m := range verify(t, resp.Header.Get(httpgate.DefaultHeader)) {
		if m.Position.Covers(tidegate.At(1 << 59)) {
			t.Errorf("the answer requires %+v", m)
		}
	}
	if got, node := send(t, &http.Client{}, http.MethodGet, app.URL, ""); got != "v" || node == db.Primary().Name() {
		t.Errorf("somebody else sees %q on %s", got, node)
	}
}

func hostOf(s *httptest.Server) string {
	u, _ := url.Parse(s.URL)
	return u.Host
}
