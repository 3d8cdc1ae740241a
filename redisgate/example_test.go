package redisgate_test

import (
	"context"
	"net/http"

	"github.com/redis/go-redis/v9"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/httpgate"
	"github.com/tidegatedb/tidegate/redisgate"
)

// Sessions of clients that keep nothing but the application's own session cookie.
func Example() {
	serve := func(ctx context.Context, keyring *tidegate.Keyring, mux http.Handler) (http.Handler, error) {
		client := redis.NewClient(&redis.Options{Addr: "redis:6379", ContextTimeoutEnabled: true})
		store, err := redisgate.New(client, redisgate.Config{})
		if err != nil {
			return nil, err
		}
		if err := store.Check(ctx); err != nil {
			return nil, err
		}
		keeper, err := tidegate.NewKeeper(tidegate.KeeperConfig{Store: store, Clusters: []string{"main"}})
		if err != nil {
			return nil, err
		}
		sessionID := func(r *http.Request) (string, bool) {
			c, err := r.Cookie("session")
			if err != nil {
				return "", false
			}
			return c.Value, true // of a session that the application has verified
		}
		gate, err := httpgate.New(httpgate.Config{
			Keyring:  keyring,
			Clusters: []string{"main"},
			Sources: []httpgate.Source{
				httpgate.Store(keeper, sessionID),
				httpgate.Cookie(httpgate.CookieConfig{}), // for what the store cannot keep
			},
		})
		if err != nil {
			return nil, err
		}
		return gate.Wrap(mux), nil
	}
	_ = serve
	// Output:
}
