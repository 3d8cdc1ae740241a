package redisgate

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Config configures a [Store]. The zero value can be used.
type Config struct {
	// TTL is how long an entry is kept from when it was used last. All instances have to
	// agree on it. Zero means one hour; at least a second.
	TTL time.Duration
	// Prefix is what the store's keys begin with. Empty means "tg:".
	Prefix string
}

func (c Config) withDefaults() Config {
	if c.TTL == 0 {
		c.TTL = time.Hour
	}
	if c.Prefix == "" {
		c.Prefix = "tg:"
	}
	return c
}

// validate returns an error that begins with the field's name.
func (c Config) validate() error {
	switch {
	case c.TTL < time.Second:
		return fmt.Errorf("Config.TTL is %v; use a second or more", c.TTL)
	case strings.ContainsAny(c.Prefix, "{}"):
		return fmt.Errorf("Config.Prefix is %q; leave the braces out, the store spreads its keys by hash tags of its own", c.Prefix)
	}
	return nil
}

// usable tells what is wrong with a client.
func usable(client redis.UniversalClient) error {
	// A typed nil is what a constructor's ignored error leaves.
	switch c := client.(type) {
	case nil:
		return errors.New("the client is nil; use redis.NewClient, NewFailoverClient or NewClusterClient")
	case *redis.Client:
		if c == nil {
			return usable(nil)
		}
	case *redis.ClusterClient:
		if c == nil {
			return usable(nil)
		}
	case *redis.Ring:
		// It would find an entry that is whole and old.
		return errors.New("the client is a redis.Ring, which uses another server while one does not answer, and then the first one again " +
			"as if nothing had been saved in between; use NewClient, NewFailoverClient or NewClusterClient")
	}
	return nil
}
