package carrier_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/carrier"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/check"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/traffic"
	"github.com/tidegatedb/tidegate/httpgate"
)

// storeKey is a header that says under which key a session is kept.
const storeKey = "X-Store-Key"

// stored keeps sessions on the side of the servers, by what any carrier can do: the
// way has what the instances share, each gate is a middleware of its own, and the
// clients know a key.
func stored(store tidegate.Store) carrier.Carrier {
	return carrier.Carrier{Name: "stored", About: "sessions in a store", Open: func(_ context.Context, cfg carrier.Config) (carrier.Way, error) {
		return storeWay{cfg, store}, nil
	}}
}

type storeWay struct {
	cfg   carrier.Config
	store tidegate.Store
}

func (w storeWay) Gate(context.Context) (carrier.Gate, error) {
	keeper, err := tidegate.NewKeeper(tidegate.KeeperConfig{Store: w.store, Clusters: []string{w.cfg.Cluster}, Timeout: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	m, err := httpgate.New(httpgate.Config{
		Keyring: w.cfg.Keyring, Clusters: []string{w.cfg.Cluster},
		Sources: []httpgate.Source{
			httpgate.Store(keeper, func(r *http.Request) (string, bool) { key := r.Header.Get(storeKey); return key, key != "" }),
			httpgate.Header(""), // for what could not be saved
		},
	})
	return storeGate{m, keeper}, err
}

func (storeWay) Client(_ context.Context, key, _ string, base http.RoundTripper) (carrier.Client, error) {
	return &storeClient{base: base, key: key}, nil
}

func (storeWay) Close() {}

type storeGate struct {
	*httpgate.Middleware
	keeper *tidegate.Keeper
}

func (g storeGate) Stats() carrier.Stats {
	return carrier.Stats{Emitted: g.Middleware.Stats().Emitted, CatchUps: g.keeper.Stats().CatchUps}
}

type storeClient struct {
	base http.RoundTripper
	key  string
	lost int
}

func (c *storeClient) Do(req *http.Request) (*http.Response, error) {
	req.Header.Set(storeKey, fmt.Sprintf("%s-%d", c.key, c.lost))
	return c.base.RoundTrip(req)
}

// Forget lets the store have nothing: there is nothing under the next key.
func (c *storeClient) Forget(context.Context) int {
	c.lost++
	return 1
}

// What a carrier is asked for is enough for one that keeps sessions in a store.
func TestCarrierWithAStore(t *testing.T) {
	t.Parallel()
	load := traffic.Load{Sessions: 4, Instances: 2, Rate: 400, Writes: 0.2, Parallel: 0.5, Drops: 0.05, Duration: time.Second / 2}
	var s sums
	for load.Seed = 1; load.Seed <= 30 && (s.reads < 100 || s.overlaps < 20 || s.dropped < 5); load.Seed++ {
		store, err := tidegate.NewMemoryStore(tidegate.MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		tr := newTrial(t.Context(), t, stored(store))
		log := record.NewLog(load.Sessions)
		traffic.Drive(t.Context(), load, time.Now(), tr.fleet, check.New(load.Keys()), log)
		s.add(log)
		if stats := tr.fleet.Stats(); stats.CatchUps == 0 || stats.Emitted != 0 || store.Len() < load.Sessions {
			t.Errorf("%d sessions are kept, %+v", store.Len(), stats)
		}
	}
	if s.failed > 0 || s.broken > 0 || s.dropped < 5 {
		t.Errorf("%d runs: %+v", load.Seed-1, s)
	}
}
