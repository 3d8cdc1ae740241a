package traffic_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/check"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/traffic"
)

// copyOf is an instance of an app that is open until it is closed.
type copyOf struct {
	*app
	name string
	t    *testing.T

	serving int
	closed  bool
	served  int
}

func (c *copyOf) enter() {
	c.app.mu.Lock()
	defer c.app.mu.Unlock()
	if c.closed {
		c.t.Errorf("%s serves after it was closed", c.name)
	}
	c.serving++
	c.served++
}

func (c *copyOf) leave() {
	c.app.mu.Lock()
	defer c.app.mu.Unlock()
	c.serving--
}

func (c *copyOf) Read(ctx context.Context, s *strategy.Session, keys []int64) (record.Answer, error) {
	c.enter()
	defer c.leave()
	return c.app.Read(ctx, s, keys)
}

func (c *copyOf) Write(ctx context.Context, s *strategy.Session, key, version int64) error {
	c.enter()
	defer c.leave()
	return c.app.Write(ctx, s, key, version)
}

func (c *copyOf) Close() {
	c.app.mu.Lock()
	defer c.app.mu.Unlock()
	if c.serving > 0 || c.closed {
		c.t.Errorf("%s is closed while it serves %d operations; closed before: %v", c.name, c.serving, c.closed)
	}
	c.closed = true
}

// A replaced instance ends what it has, gets nothing more and is closed; the new
// one serves from then on. Nobody notices.
func TestInstancesAreReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	l := usual
	l.Duration = 2 * time.Second
	a := newApp()
	a.readTime = 20 * time.Millisecond // so that some are always under way
	first := &copyOf{app: a, name: "the first", t: t}
	stays := &copyOf{app: a, name: "the one that stays", t: t}
	second := &copyOf{app: a, name: "the second", t: t}
	fleet := traffic.NewFleet(first, stays)
	log := record.NewLog(l.Sessions)
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		time.AfterFunc(time.Second, func() {
			defer close(done)
			if err := fleet.Replace(t.Context(), 0, second); err != nil {
				t.Error(err)
			}
			if !first.closed {
				t.Error("Replace returned before the old instance was closed")
			}
		})
		traffic.Drive(t.Context(), l, time.Now(), fleet, check.New(l.Keys()), log)
		<-done
	})
	if first.served == 0 || second.served == 0 || stays.served < first.served {
		t.Errorf("served %d, then %d; the other %d", first.served, second.served, stays.served)
	}
	if log.FirstError() != nil || log.FirstViolation() != nil {
		t.Errorf("%v, %v", log.FirstError(), log.FirstViolation())
	}
	fleet.Close()
	if !second.closed || !stays.closed {
		t.Error("an instance stays open")
	}
}
