package redisgate_test

import (
	"context"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/redisgate"
)

func Example() {
	// The client is closed when the application ends.
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
	store, err := redisgate.New(client, redisgate.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Check(context.Background()); err != nil {
		log.Fatal(err) // says what to grant
	}
	keeper, err := tidegate.NewKeeper(tidegate.KeeperConfig{Store: store, Clusters: []string{"main"}})
	if err != nil {
		log.Fatal(err)
	}
	session := keeper.Open("the account's key")
	_ = session // for httpgate, or tidegate.WithSession
}
