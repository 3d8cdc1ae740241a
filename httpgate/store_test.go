package httpgate_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/httpgate"
	"github.com/tidegatedb/tidegate/tidegatetest"
)

// flakyStore is a MemoryStore that can be down, and counts round trips.
type flakyStore struct {
	*tidegate.MemoryStore
	down         atomic.Bool
	loads, saves atomic.Int32
}

func (s *flakyStore) Load(ctx context.Context, key, marker string) (tidegate.Kept, error) {
	if s.loads.Add(1); s.down.Load() {
		return tidegate.Kept{}, errors.New("down")
	}
	return s.MemoryStore.Load(ctx, key, marker)
}

func (s *flakyStore) Save(ctx context.Context, key string, saving tidegate.Saving) error {
	if s.saves.Add(1); s.down.Load() {
		return errors.New("down")
	}
	return s.MemoryStore.Save(ctx, key, saving)
}

func newStore(t testing.TB) *flakyStore {
	t.Helper()
	m, err := tidegate.NewMemoryStore(tidegate.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return &flakyStore{MemoryStore: m}
}

// login is the application's session key.
func login(r *http.Request) (string, bool) {
	c, err := r.Cookie("login")
	if err != nil {
		return "", false
	}
	return c.Value, true
}

// storeSource keeps sessions by the login; every instance has its own keeper.
func storeSource(t testing.TB, store tidegate.Store) httpgate.Source {
	t.Helper()
	k, err := tidegate.NewKeeper(tidegate.KeeperConfig{Store: store, Clusters: []string{"test"}})
	if err != nil {
		t.Fatal(err)
	}
	return httpgate.Store(k, login)
}

// loggedIn is a client that keeps nothing but the login, if there is no jar.
func loggedIn(name string, jar http.CookieJar) *http.Client {
	return &http.Client{Jar: jar, Transport: loginTransport{http.DefaultTransport, name}}
}

type loginTransport struct {
	base http.RoundTripper
	name string
}

func (l loginTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.AddCookie(&http.Cookie{Name: "login", Value: l.name})
	return l.base.RoundTrip(r)
}

// A client that keeps nothing sees its writes on another instance, and no other
// client is held to them.
func TestStoreAcrossInstances(t *testing.T) {
	t.Parallel()
	db, store := tidegatetest.New(t, tidegatetest.Config{}), newStore(t)
	cookie := httpgate.Cookie(httpgate.CookieConfig{Insecure: true})
	one, two := instance(t, db, storeSource(t, store), cookie), instance(t, db, storeSource(t, store), cookie)
	ann, bob := loggedIn("ann", nil), loggedIn("bob", nil)
	send(t, ann, http.MethodPut, one.URL, "old")
	db.Probe()
	for _, c := range []*http.Client{ann, bob} { // whoever is new to the store catches up once
		for range 2 {
			send(t, c, http.MethodGet, two.URL, "")
		}
	}
	db.Replica(0).Hold()
	db.Replica(1).Hold()
	send(t, ann, http.MethodPut, one.URL, "new")
	db.StaleUnlessRouted("k")
	if got, node := send(t, ann, http.MethodGet, two.URL, ""); got != "new" || node != db.Primary().Name() {
		t.Errorf("the writer sees %q on %s", got, node)
	}
	if got, node := send(t, bob, http.MethodGet, two.URL, ""); got != "old" || node == db.Primary().Name() {
		t.Errorf("somebody else sees %q on %s", got, node)
	}
	db.Replica(0).Release()
	db.Probe()
	if got, node := send(t, ann, http.MethodGet, two.URL, ""); got != "new" || node != db.Replica(0).Name() {
		t.Errorf("later the writer sees %q on %s", got, node)
	}
}

// While the store is down the client has the token; when it is back the store has it
// again, and the client's cookies go.
func TestStoreThatIsDownForAWhile(t *testing.T) {
	t.Parallel()
	db, store := tidegatetest.New(t, tidegatetest.Config{}), newStore(t)
	cookie := httpgate.Cookie(httpgate.CookieConfig{Insecure: true})
	one, two := instance(t, db, storeSource(t, store), cookie), instance(t, db, storeSource(t, store), cookie)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	ann := loggedIn("ann", jar)
	send(t, ann, http.MethodPut, one.URL, "old")
	db.Probe()
	send(t, ann, http.MethodGet, two.URL, "")
	if n := len(jar.Cookies(urlOf(t, one))); n != 0 {
		t.Fatalf("%d cookies though the store has all", n)
	}
	db.Replica(0).Hold()
	db.Replica(1).Hold()
	store.down.Store(true)
	send(t, ann, http.MethodPut, one.URL, "new")
	if n := len(jar.Cookies(urlOf(t, one))); n != 1 {
		t.Errorf("%d cookies while the store is down", n)
	}
	if got, _ := send(t, ann, http.MethodGet, two.URL, ""); got != "new" {
		t.Errorf("meanwhile it sees %q", got)
	}
	store.down.Store(false)
	for range 2 { // the second one by the store alone
		if got, _ := send(t, ann, http.MethodGet, two.URL, ""); got != "new" {
			t.Errorf("afterwards it sees %q", got)
		}
		if n := len(jar.Cookies(urlOf(t, one))); n != 0 {
			t.Errorf("%d cookies afterwards", n)
		}
	}
}

// What a request requires after its first byte goes to the store.
func TestStoreTakesWhatIsLate(t *testing.T) {
	t.Parallel()
	db, store := tidegatetest.New(t, tidegatetest.Config{}), newStore(t)
	var late atomic.Int32
	m := newGate(t, func(cfg *httpgate.Config) {
		cfg.Clusters = []string{"test"}
		cfg.Sources = []httpgate.Source{storeSource(t, store), httpgate.Header("")}
		cfg.Late = func(*http.Request, tidegate.Token) { late.Add(1) }
	})
	app := httptest.NewServer(m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			io.WriteString(w, "begun ")
			http.NewResponseController(w).Flush()
			if err := db.Put(r.Context(), "k", "new"); err != nil {
				t.Error(err)
			}
			return
		}
		value, _, err := db.Get(r.Context(), tidegate.Causal, "k")
		if err != nil {
			t.Error(err)
		}
		io.WriteString(w, value)
	})))
	defer app.Close()
	db.Replica(0).Hold()
	db.Replica(1).Hold()
	ann := loggedIn("ann", nil)
	send(t, ann, http.MethodGet, app.URL, "")
	send(t, ann, http.MethodPut, app.URL, "x")
	if got, _ := send(t, ann, http.MethodGet, app.URL, ""); got != "new" {
		t.Errorf("it sees %q", got)
	}
	if late.Load() != 0 || m.Stats().Late != 0 {
		t.Errorf("%d reports, %+v", late.Load(), m.Stats())
	}
	store.down.Store(true)
	send(t, ann, http.MethodPut, app.URL, "x")
	if late.Load() != 1 || m.Stats().Late != 1 || m.Stats().Unkept == 0 {
		t.Errorf("without the store: %d reports, %+v", late.Load(), m.Stats())
	}
}

// Round trips to the store of one request.
func TestStoreRoundTrips(t *testing.T) {
	t.Parallel()
	db := tidegatetest.New(t, tidegatetest.Config{})
	read := func(r *http.Request) {
		if _, _, err := db.Get(r.Context(), tidegate.Causal, "k"); err != nil {
			t.Error(err)
		}
	}
	write := func(r *http.Request) {
		if err := db.Put(r.Context(), "k", "v"); err != nil {
			t.Error(err)
		}
	}
	for name, c := range map[string]struct {
		does         []func(*http.Request)
		loads, saves int32
	}{
		"nothing":           {nil, 0, 0},
		"a read":            {[]func(*http.Request){read}, 1, 1},
		"three reads":       {[]func(*http.Request){read, read, read}, 1, 1},
		"a write":           {[]func(*http.Request){write}, 1, 1},
		"a write and reads": {[]func(*http.Request){write, read, write, read}, 1, 1},
		"a read, a write":   {[]func(*http.Request){read, write}, 2, 1},
	} {
		store := newStore(t)
		m := newGate(t, func(cfg *httpgate.Config) {
			cfg.Clusters = []string{"test"}
			cfg.Sources = []httpgate.Source{storeSource(t, store), httpgate.Header("")}
		})
		r := request()
		r.AddCookie(&http.Cookie{Name: "login", Value: "ann"})
		w := handle(m, func(_ http.ResponseWriter, r *http.Request) {
			for _, do := range c.does {
				do(r)
			}
		}, r)
		if l, s := store.loads.Load(), store.saves.Load(); l != c.loads || s != c.saves {
			t.Errorf("%s: %d loads and %d saves", name, l, s)
		}
		if h := w.Header(); len(h) != 0 {
			t.Errorf("%s: the store has it, and the response says %v", name, h)
		}
	}
}

// A request whose client is gone has its writes kept.
func TestStoreOutlivesTheRequest(t *testing.T) {
	t.Parallel()
	db, store := tidegatetest.New(t, tidegatetest.Config{}), newStore(t)
	m := newGate(t, func(cfg *httpgate.Config) {
		cfg.Clusters = []string{"test"}
		cfg.Sources = []httpgate.Source{storeSource(t, store), httpgate.Header("")}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	r := request().WithContext(ctx)
	r.AddCookie(&http.Cookie{Name: "login", Value: "ann"})
	handle(m, func(_ http.ResponseWriter, r *http.Request) {
		if err := db.Put(r.Context(), "k", "v"); err != nil {
			t.Error(err)
		}
		cancel()
	}, r)
	if s := m.Stats(); store.saves.Load() != 1 || s.Unkept != 0 {
		t.Errorf("%d saves, %+v", store.saves.Load(), s)
	}
}

// A refused token of somebody whom the store knows is a catch-up, as everywhere.
func TestStoreAndARefusedToken(t *testing.T) {
	t.Parallel()
	m := newGate(t, func(cfg *httpgate.Config) {
		cfg.Clusters = []string{"test"}
		cfg.Sources = []httpgate.Source{storeSource(t, newStore(t)), httpgate.Header("")}
	})
	r := request("garbage")
	r.AddCookie(&http.Cookie{Name: "login", Value: "ann"})
	w := handle(m, func(_ http.ResponseWriter, r *http.Request) {
		s := tidegate.SessionFrom(r.Context())
		if marks := s.Token().Marks(); len(marks) != 1 || !marks[0].CatchUp {
			t.Errorf("it requires %+v", marks)
		}
	}, r)
	if m.Stats().Refused.Malformed != 1 || !strings.HasPrefix(w.Header().Get(httpgate.DefaultHeader), "tg1.") {
		t.Errorf("%+v, %v", m.Stats(), w.Header())
	}
}

func urlOf(t testing.TB, s *httptest.Server) *url.URL {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// A service that keeps sessions in a store of its own answers a call whose session
// requires nothing yet: the write is the caller's as well.
func TestServiceWithAStore(t *testing.T) {
	t.Parallel()
	db := tidegatetest.New(t, tidegatetest.Config{})
	service := instance(t, db, storeSource(t, newStore(t)), httpgate.Header(""))
	transport, err := httpgate.NewTransport(httpgate.TransportConfig{
		Keyring: newKeyring(t, tidegate.KeyringConfig{}), Clusters: []string{"test"}, Hosts: []string{hostOf(service)}, Base: loginTransport{http.DefaultTransport, "ann"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Put(t.Context(), "k", "old"); err != nil {
		t.Fatal(err)
	}
	db.Probe()
	db.Replica(0).Hold()
	db.Replica(1).Hold()
	ctx := tidegate.WithSession(t.Context(), tidegate.NewSession())
	req, _ := http.NewRequestWithContext(ctx, http.MethodPut, service.URL, strings.NewReader("new"))
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if v, _, err := db.Get(ctx, tidegate.Causal, "k"); v != "new" || err != nil {
		t.Errorf("the caller sees %q, %v", v, err)
	}
}

// A store that would not catch up with all clusters is refused.
func TestStoreOfOtherClusters(t *testing.T) {
	t.Parallel()
	_, err := httpgate.New(httpgate.Config{
		Keyring: newKeyring(t, tidegate.KeyringConfig{}), Clusters: []string{"test", "main"},
		Sources: []httpgate.Source{storeSource(t, newStore(t)), httpgate.Header("")},
	})
	if !errors.Is(err, tidegate.ErrConfig) || !strings.Contains(err.Error(), `Config.Clusters names "main"`) || !strings.Contains(err.Error(), "KeeperConfig.Clusters") {
		t.Error(err)
	}
}

// Who has no key has no entry: visitors do not share one.
func TestNoKeyIsNoSession(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	m := newGate(t, func(cfg *httpgate.Config) {
		cfg.Clusters = []string{"test"}
		cfg.Sources = []httpgate.Source{storeSource(t, store), httpgate.Header("")}
	})
	for _, value := range []string{"", "-"} {
		r := request()
		if value == "" {
			r.AddCookie(&http.Cookie{Name: "login", Value: ""})
		}
		handle(m, func(_ http.ResponseWriter, r *http.Request) {
			s := tidegate.SessionFrom(r.Context())
			_ = s.Load(r.Context())
			note(r.Context(), tidegate.Mark{Cluster: "test", Epoch: epoch, Position: tidegate.At(9)})
		}, r)
	}
	if store.Len() != 0 || store.loads.Load() != 0 {
		t.Errorf("%d entries, %d loads", store.Len(), store.loads.Load())
	}
}
