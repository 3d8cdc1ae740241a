package carrier

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/httpgate"
	"github.com/tidegatedb/tidegate/internal/redisserver"
	"github.com/tidegatedb/tidegate/redisgate"
)

// stored is for clients that keep nothing but a session ID: the servers keep their
// sessions for them.
var stored = Carrier{
	Name:      "redis",
	About:     "sessions in a Redis or Valkey server, by a key; clients know nothing of tokens",
	CatchesUp: true,
	Open:      openRedis,
}

// storeHeader says which session a client has, as the application's own cookie would.
const storeHeader = "X-Lab-Store-Key"

// redisWay is what the instances share: one server, which ends with it.
type redisWay struct {
	cfg    Config
	server *redisserver.Server
	store  *redisgate.Store
	client *redis.Client
}

func openRedis(ctx context.Context, cfg Config) (Way, error) {
	inst, err := redisserver.Find()
	if err != nil {
		return nil, err
	}
	server, err := redisserver.Start(ctx, inst)
	if err != nil {
		return nil, err
	}
	w := &redisWay{cfg: cfg, server: server}
	w.client = redis.NewClient(&redis.Options{Addr: server.Addr, ContextTimeoutEnabled: true})
	if w.store, err = redisgate.New(w.client, redisgate.Config{}); err == nil {
		err = w.store.Check(ctx)
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// Gate implements Way.
func (w *redisWay) Gate(context.Context) (Gate, error) {
	keeper, err := tidegate.NewKeeper(tidegate.KeeperConfig{Store: w.store, Clusters: []string{w.cfg.Cluster}})
	if err != nil {
		return nil, err
	}
	key := func(r *http.Request) (string, bool) {
		k := r.Header.Get(storeHeader)
		return k, k != ""
	}
	g, err := newGate(w.cfg, httpgate.Config{Sources: []httpgate.Source{httpgate.Store(keeper, key), httpgate.Header("")}})
	if err != nil {
		return nil, err
	}
	return redisGate{g, keeper}, nil
}

// Client implements Way.
func (w *redisWay) Client(_ context.Context, key, host string, base http.RoundTripper) (Client, error) {
	// What the store cannot keep comes back by header, and goes out with the next request.
	jar, err := httpgate.NewJar(httpgate.JarConfig{Hosts: []string{host}, Base: base})
	if err != nil {
		return nil, err
	}
	return &redisClient{jar: jar, key: key}, nil
}

// Close implements Way.
func (w *redisWay) Close() {
	_ = w.client.Close()
	_ = w.server.Stop()
}

type redisGate struct {
	Gate
	keeper *tidegate.Keeper
}

// Stats implements Gate: the keeper counts the sessions that it could not load.
func (g redisGate) Stats() Stats {
	s := g.Gate.Stats()
	s.CatchUps += g.keeper.Stats().CatchUps
	return s
}

type redisClient struct {
	jar  *httpgate.Jar
	key  string
	lost atomic.Int64
	used atomic.Bool // since then
}

// Do implements Client.
func (c *redisClient) Do(req *http.Request) (*http.Response, error) {
	c.used.Store(true)
	req.Header.Set(storeHeader, c.key+"-"+strconv.FormatInt(c.lost.Load(), 10))
	return c.jar.RoundTrip(req)
}

// Forget implements Client: there is nothing under the next key, as if the store had
// lost what was there.
func (c *redisClient) Forget(context.Context) int {
	c.lost.Add(1)
	if c.used.Swap(false) {
		return 1
	}
	return 0
}
