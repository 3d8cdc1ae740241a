package pgxgate_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
	"github.com/tidegatedb/tidegate/pgxgate"
)

// finder is a discoverer that finds what a test says.
type finder struct {
	mu    sync.Mutex
	nodes []pgxgate.Node
	err   error
	hangs bool
	asked []time.Time
}

func (f *finder) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *finder) Discover(ctx context.Context) ([]pgxgate.Node, error) {
	f.mu.Lock()
	f.asked = append(f.asked, time.Now())
	nodes, err, hangs := f.nodes, f.err, f.hangs
	f.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nodes, err
}

// calls returns when it was asked.
func (f *finder) calls() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// nowhere returns nodes that need no network to refuse.
func nowhere(t *testing.T, names ...string) (all []pgxgate.Node) {
	for _, name := range names {
		cfg := must[*pgxpool.Config](t)(pgxpool.ParseConfig("host=10.0.0.1 user=app sslmode=disable"))
		cfg.ConnConfig.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
		cfg.ConnConfig.DialFunc = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }
		all = append(all, pgxgate.Node{Name: name, Pool: cfg})
	}
	return all
}

// names returns the nodes that the database has.
func names(db *pgxgate.DB) (all []string) {
	for _, n := range db.Status().Nodes {
		all = append(all, n.Node)
	}
	slices.Sort(all)
	return all
}

func TestDiscoverer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var mu sync.Mutex
		logger := slog.New(slog.NewTextHandler(writer(func(p []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return log.Write(p)
		}), nil))
		warned := func() int {
			mu.Lock()
			defer mu.Unlock()
			return strings.Count(log.String(), "cannot be discovered")
		}
		f := &finder{nodes: nowhere(t, "a", "b")}
		db := must[*pgxgate.DB](t)(pgxgate.Open(t.Context(), pgxgate.Config{Cluster: "main", Discoverer: f, DiscoverInterval: time.Minute, Logger: logger}))
		closed := false
		defer func() {
			if !closed {
				db.Close()
			}
		}()
		expect := func(what string, want ...string) {
			t.Helper()
			time.Sleep(time.Minute + time.Second)
			if got := names(db); !slices.Equal(got, want) {
				t.Errorf("%s: the nodes are %v, want %v", what, got, want)
			}
		}
		if got := names(db); !slices.Equal(got, []string{"a", "b"}) || len(f.calls()) != 1 {
			t.Errorf("asked %d times, the nodes are %v", len(f.calls()), got)
		}
		before := db.Stats().Probes
		expect("the same", "a", "b")
		if at := f.calls(); len(at) != 2 || at[1].Sub(at[0]) != time.Minute {
			t.Errorf("asked at %v, want one minute apart", at)
		}
		if db.Stats().Probes == before {
			t.Error("the nodes are not probed any more")
		}
		f.set(func() { f.nodes = append(f.nodes[:1:1], nowhere(t, "c")...) })
		expect("one came and one went", "a", "c")
		f.set(func() { f.err = errors.New("no answer") })
		expect("an error", "a", "c")
		expect("another", "a", "c")
		if warned() != 1 {
			t.Errorf("%d warnings for failures in a row", warned())
		}
		f.set(func() { f.err = nil; f.nodes = nil })
		expect("no nodes", "a", "c")
		f.set(func() { f.nodes = []pgxgate.Node{{Name: "x", DSN: "host=h port=none"}} })
		expect("nodes that cannot be used", "a", "c")
		f.set(func() { f.hangs = true })
		expect("no answer in time", "a", "c")
		f.set(func() { f.hangs, f.nodes = false, nowhere(t, "d") })
		expect("an answer", "d")
		if warned() != 1 || !strings.Contains(log.String(), "can be discovered again") {
			t.Errorf("%d warnings:\n%s", warned(), log.String())
		}
		f.set(func() { f.hangs = true })
		for n := len(f.calls()); len(f.calls()) == n; { // until it is being asked
			time.Sleep(time.Second)
		}
		began := time.Now()
		closed = true
		db.Close()
		if time.Since(began) > time.Second {
			t.Errorf("Close took %v", time.Since(began))
		}
		asked := len(f.calls())
		time.Sleep(time.Hour)
		if len(f.calls()) != asked {
			t.Error("it is asked after Close")
		}
	})
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func TestDiscovererDefaultInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &finder{nodes: nowhere(t, "a")}
		db := must[*pgxgate.DB](t)(pgxgate.Open(t.Context(), pgxgate.Config{Cluster: "main", Discoverer: f}))
		time.Sleep(5*time.Minute + time.Second)
		db.Close()
		if n := len(f.calls()); n != 11 {
			t.Errorf("asked %d times in five minutes, want once at the start and each 30s", n)
		}
	})
}

func TestDiscovererMustFindSomethingAtOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("no answer")
		for _, c := range []struct {
			f    *finder
			want error
			says string
		}{
			{&finder{err: broken}, broken, "Config.Discoverer has not found the nodes of main: no answer"},
			{&finder{}, tidegate.ErrConfig, "Config.Nodes"},
			{&finder{nodes: []pgxgate.Node{{}}}, tidegate.ErrConfig, "Config.Nodes[0]"},
		} {
			if _, err := pgxgate.Open(t.Context(), pgxgate.Config{Cluster: "main", Discoverer: c.f}); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want one that wraps %v and says %q", err, c.want, c.says)
			}
		}
		for _, c := range []struct {
			names string
			cfg   pgxgate.Config
		}{
			{"Nodes", pgxgate.Config{}},
			{"Discoverer", pgxgate.Config{Discoverer: &finder{}, Nodes: nowhere(t, "a")}},
			{"DiscoverInterval", pgxgate.Config{Discoverer: &finder{}, DiscoverInterval: time.Millisecond}},
			{"DiscoverInterval", pgxgate.Config{Nodes: nowhere(t, "a"), DiscoverInterval: time.Minute}},
		} {
			c.cfg.Cluster = "main"
			db, err := pgxgate.Open(t.Context(), c.cfg)
			if !errors.Is(err, tidegate.ErrConfig) || !strings.Contains(err.Error(), "Config."+c.names+" ") {
				t.Errorf("%v, want one that names %s", err, c.names)
			}
			if err == nil {
				db.Close()
			}
		}
	})
}

// Servers that a name leads to are found, come and go while reads go on.
func TestDiscovererOnServers(t *testing.T) {
	c := cluster(t)
	const name = "_postgresql._tcp.db.example"
	record := func(s *pgcluster.Server) *net.SRV { return &net.SRV{Target: "host.example.", Port: uint16(s.Port)} }
	var mu sync.Mutex
	z := &zone{hosts: map[string][]string{"host.example.": {"127.0.0.1"}}, srv: map[string][]*net.SRV{name: {record(c.Primary())}}}
	d := &pgxgate.DNS{DSN: "host=db.example user=app dbname=postgres sslmode=disable", SRV: name, Patience: 1, Resolver: guarded{&mu, z}}
	db := must[*pgxgate.DB](t)(pgxgate.Open(t.Context(), pgxgate.Config{Cluster: "main", Discoverer: d, DiscoverInterval: time.Second}))
	defer db.Close()
	k := key(t)
	read := func() tidegate.Decision {
		t.Helper()
		ctx, seen := inSession(t)
		must[any](t)(db.Write().Exec(ctx, update, k, 5))
		var v int64
		if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&v); err != nil || v != 5 {
			t.Fatal(v, err)
		}
		last, _ := seen.Last()
		return last
	}
	if d := read(); d.Role != tidegate.RolePrimary || d.Reason != tidegate.ReasonNoReplica {
		t.Error(d)
	}
	first, second := c.Replicas()[0], c.Replicas()[1]
	for _, s := range []*pgcluster.Server{first, second, first} {
		mu.Lock()
		z.srv[name] = []*net.SRV{record(s), record(c.Primary())}
		mu.Unlock()
		at := "127.0.0.1:" + itoa(int64(s.Port))
		eventually(t, "reads on "+at, func() bool { return read().Node == at })
		if n := db.Status().Nodes; len(n) != 2 {
			t.Errorf("%d nodes", len(n))
		}
	}
}

// guarded is a resolver for one at a time.
type guarded struct {
	mu *sync.Mutex
	pgxgate.Resolver
}

func (g guarded) LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.Resolver.LookupSRV(ctx, service, proto, name)
}
