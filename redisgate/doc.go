// Package redisgate keeps sessions in Redis or Valkey: its [Store] is the
// [tidegate.Store] for an application with more than one instance.
//
//	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
//	store, err := redisgate.New(client, redisgate.Config{})
//	if err == nil {
//		err = store.Check(ctx)
//	}
//	keeper, err := tidegate.NewKeeper(tidegate.KeeperConfig{Store: store, ...})
//
// A load and a save are a script each: one round trip and one step, with keys of one
// slot, so that it works in a cluster too. They need Redis 7 or Valkey 7.2, or newer, and
// a user that may run what [Store.Check] tries. Without ContextTimeoutEnabled a call
// that a keeper has given up goes on until the client's ReadTimeout, and holds a
// connection so long.
//
// # What a server forgets
//
// Redis acknowledges what it can still lose: it evicts, it fails over to a replica
// that lacks the last saves, it starts again from an older snapshot. A session that may
// be short of something catches up, and no more than that happens:
//
//   - an entry that was evicted, flushed or never replicated is made again, with a new
//     birth;
//   - when the server has another history than before, no entry is whole for a TTL
//     from when that was noticed, and none that is older ever again. A server's history
//     ends when its process does, and when it was a replica for a while. What a replica
//     says of itself is never used: a load there is an error.
//
// Replicas that come and go, the first one of a server included, are no other history.
//
// What a server cannot know, the store does not notice: a primary that was replaced and
// has not heard of it yet answers as before. What it acknowledges is lost to the others,
// and they know that for a TTL; those who still talk to it miss what the others do.
// Sentinel and Cluster bound how long that lasts (min-replicas-to-write,
// cluster-node-timeout).
package redisgate
