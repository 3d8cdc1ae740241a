package tidegate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/storetest"
)

func TestMemoryStoreIsAStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, look func(*testing.T, storetest.Subject)) {
		synctest.Test(t, func(t *testing.T) {
			const room = 64
			store := &crowded{MemoryStore: newMemoryStore(t, tidegate.MemoryConfig{TTL: time.Minute, MaxEntries: room}), keys: map[string]bool{}}
			look(t, storetest.Subject{
				Store: store,
				Lose:  func(ctx context.Context, key string) error { return store.crowdOut(ctx, key, room) },
				Pass: func(_ context.Context, d time.Duration) error {
					time.Sleep(d)
					return nil
				},
			})
		})
	})
}

func newMemoryStore(t testing.TB, cfg tidegate.MemoryConfig) *tidegate.MemoryStore {
	t.Helper()
	store, err := tidegate.NewMemoryStore(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// crowded is a store that knows its keys, so that others can push one of them out.
type crowded struct {
	*tidegate.MemoryStore
	mu   sync.Mutex
	keys map[string]bool
	more int
}

func (c *crowded) note(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys[key] = true
}

func (c *crowded) Load(ctx context.Context, key, marker string) (tidegate.Kept, error) {
	c.note(key)
	return c.MemoryStore.Load(ctx, key, marker)
}

func (c *crowded) Save(ctx context.Context, key string, s tidegate.Saving) error {
	c.note(key)
	return c.MemoryStore.Save(ctx, key, s)
}

// crowdOut uses all other keys, new ones in all the room that is left, and the others
// again: the new ones go first then.
func (c *crowded) crowdOut(ctx context.Context, key string, room int) error {
	delete(c.keys, key)
	var errs []error
	use := func(key string) {
		_, err := c.MemoryStore.Load(ctx, key, "")
		errs = append(errs, err)
	}
	for other := range c.keys {
		use(other)
	}
	for range room - len(c.keys) {
		c.more++
		use(fmt.Sprint("more ", c.more))
	}
	for other := range c.keys {
		use(other)
	}
	if n := c.Len(); n != room {
		errs = append(errs, fmt.Errorf("%d entries are in the room for %d", n, room))
	}
	return errors.Join(errs...)
}

func TestMemoryConfigIsChecked(t *testing.T) {
	t.Parallel()
	for field, cfg := range map[string]tidegate.MemoryConfig{
		"MemoryConfig.TTL ":        {TTL: time.Second - 1},
		"MemoryConfig.MaxEntries ": {MaxEntries: -1},
	} {
		if _, err := tidegate.NewMemoryStore(cfg); !errors.Is(err, tidegate.ErrConfig) || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	if store := newMemoryStore(t, tidegate.MemoryConfig{}); store.TTL() != time.Hour {
		t.Errorf("TTL is %v by itself", store.TTL())
	}
}
