package tidegate

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

const (
	defaultKeeperTimeout = 50 * time.Millisecond
	defaultLongestLag    = time.Hour
)

// KeeperConfig configures a [Keeper].
type KeeperConfig struct {
	// Store keeps the tokens. It is required.
	Store Store
	// Clusters names the clusters that a session has to catch up with when what was
	// kept of it is missing or cannot be had. At least one is required.
	Clusters []string
	// Timeout bounds each call of the store. A session that was not loaded by then
	// catches up, and writes go on. Zero means 50 ms; at most 10 s.
	Timeout time.Duration
	// LongestLag is how far a replica may be behind and still be used. An entry must
	// not end while a replica that lacks what it requires is in use, so that this may
	// not exceed the store's TTL. Zero means one hour.
	LongestLag time.Duration
}

// Keeper keeps sessions in a [Store], by a key that the application has for them: its
// own login session. The key should be hard to guess, because the nonce in tokens comes
// from it. It is safe for concurrent use.
//
// A session is loaded when it first needs its history and saved when its carrier says
// so. Before its first write a marker is set in the store, which the save after the
// write clears: should that save fail, or this process end before, the session's
// next request catches up. So a request that only reads makes two round trips to the
// store, and so does one that writes.
type Keeper struct {
	cfg      KeeperConfig
	counters keeperCounters
}

type keeperCounters struct {
	loads, failedLoads, catchUps, failedMarkers, saves, failedSaves atomic.Uint64
}

// KeeperStats is what a [Keeper] has done since it was made.
type KeeperStats struct {
	// Loads counts loads of sessions, those before a write included.
	Loads uint64
	// FailedLoads counts those of them that failed or took too long.
	FailedLoads uint64
	// CatchUps counts sessions that had to catch up: not loaded, or not whole.
	CatchUps uint64
	// FailedMarkers counts writes before which no marker could be set.
	FailedMarkers uint64
	// Saves counts saves, and FailedSaves those that failed or took too long.
	Saves, FailedSaves uint64
}

// NewKeeper returns a keeper, or an error that wraps [ErrConfig] and names the field.
func NewKeeper(cfg KeeperConfig) (*Keeper, error) {
	cfg.Clusters = append([]string(nil), cfg.Clusters...)
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultKeeperTimeout
	}
	if cfg.LongestLag == 0 {
		cfg.LongestLag = defaultLongestLag
	}
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return &Keeper{cfg: cfg}, nil
}

// validate returns an error that begins with the field's name.
func (c *KeeperConfig) validate() error {
	switch {
	case c.Store == nil:
		return errors.New("KeeperConfig.Store is nil; use NewMemoryStore, or redisgate's for more than one instance")
	case len(c.Clusters) == 0:
		return errors.New("KeeperConfig.Clusters is empty; name the clusters whose positions sessions have here")
	case len(c.Clusters) > MaxMarks:
		return fmt.Errorf("KeeperConfig.Clusters has %d names; a token carries at most %d", len(c.Clusters), MaxMarks)
	case c.Timeout < 0 || c.Timeout > 10*time.Second:
		return fmt.Errorf("KeeperConfig.Timeout is %v; use up to 10s", c.Timeout)
	case c.LongestLag < 0:
		return fmt.Errorf("KeeperConfig.LongestLag is %v; use more than 0", c.LongestLag)
	case c.Store.TTL() < c.LongestLag:
		return fmt.Errorf("KeeperConfig.LongestLag is %v and the store's TTL only %v: a session would be forgotten while a replica that lacks its writes is in use; "+
			"raise the TTL, or lower LongestLag to the lag at which replicas are taken out", c.LongestLag, c.Store.TTL())
	}
	for i, name := range c.Clusters {
		if len(name) == 0 || len(name) > MaxClusterName {
			return fmt.Errorf("KeeperConfig.Clusters[%d] (%q) has %d bytes; use 1 to %d", i, name, len(name), MaxClusterName)
		}
	}
	return nil
}

// Open returns the session that is kept under a key, joined with what the tokens
// require. The store is not asked yet. Keys are often credentials, so the store gets
// a hash of it only.
func (k *Keeper) Open(key string, tokens ...Token) *Session {
	sum := sha256.Sum256([]byte(key))
	s := NewSession(tokens...)
	// All requests of the session agree on where to read first, and on whether they are
	// part of a rollout.
	s.nonce = binary.BigEndian.Uint64(sum[24:]) | 1
	s.kept = &keeping{k: k, key: base64.RawURLEncoding.EncodeToString(sum[:18]), turn: make(chan struct{}, 1)}
	return s
}

// Clusters returns the names of the clusters that sessions catch up with.
func (k *Keeper) Clusters() []string { return slices.Clone(k.cfg.Clusters) }

// Stats returns the counters. They are read one after the other, while requests go on.
func (k *Keeper) Stats() KeeperStats {
	c := &k.counters
	return KeeperStats{
		Loads: c.loads.Load(), FailedLoads: c.failedLoads.Load(), CatchUps: c.catchUps.Load(),
		FailedMarkers: c.failedMarkers.Load(), Saves: c.saves.Load(), FailedSaves: c.failedSaves.Load(),
	}
}

// errStoreSlow is what a call of the store ends with that took too long.
var errStoreSlow = errors.New("the store did not answer within KeeperConfig.Timeout")

// ask calls a store and returns within the timeout, whatever the store does with the
// context.
func ask[T any](ctx context.Context, timeout time.Duration, f func(context.Context) (T, error)) (T, error) {
	type answer struct {
		t   T
		err error
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errStoreSlow)
	defer cancel()
	done := make(chan answer, 1)
	go func() {
		t, err := f(ctx)
		done <- answer{t, err}
	}()
	select {
	case a := <-done:
		return a.t, a.err
	case <-ctx.Done():
		return *new(T), context.Cause(ctx)
	}
}
