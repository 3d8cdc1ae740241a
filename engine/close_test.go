package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// The bubble itself fails the tests here when a goroutine of the core is left.

func TestCloseRefusesReadsAndWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := core(t, engine.Config{}, primaryStub(1, 100), replicaStub(2, 100))
		c.Close()
		c.Close()
		ctx, _ := sessionAt(t.Context())
		for _, class := range []tidegate.Class{tidegate.Causal, strong, relaxed} {
			if err := c.Begin(ctx, class, &engine.Read{}); !errors.Is(err, tidegate.ErrClosed) {
				t.Errorf("%s read: %v, want ErrClosed", class, err)
			}
		}
		if _, err := c.BeginWrite(ctx); !errors.Is(err, tidegate.ErrClosed) {
			t.Errorf("write: %v, want ErrClosed", err)
		}
	})
}

func TestCloseWhileProbesHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r := primaryStub(1, 100), replicaStub(2, 100)
		c := core(t, engine.Config{ProbeInterval: 10 * time.Millisecond, ProbeTimeout: time.Hour}, p, r)
		r.set(func(s *stub) { s.hung, s.took = true, 5*time.Millisecond })
		time.Sleep(time.Second)
		began := time.Now()
		c.Close()
		if took := time.Since(began); took != 5*time.Millisecond {
			t.Errorf("Close took %v, want as long as the probe needs to notice", took)
		}
		r.set(func(s *stub) {
			if s.flying != 0 {
				t.Error("Close left a probe under way")
			}
		})
	})
}

// Closing under a waiting read leaves it to its own limits.
func TestCloseUnderAWaitingRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := core(t, engine.Config{Wait: 50 * time.Millisecond}, primaryStub(1, 100), replicaStub(2, 10))
		ctx, _ := sessionAt(t.Context(), needs(50))
		time.AfterFunc(10*time.Millisecond, c.Close)
		began := time.Now()
		if err := c.Begin(ctx, tidegate.Causal, &engine.Read{}); time.Since(began) > 50*time.Millisecond {
			t.Errorf("ended after %v with %v, want within its wait", time.Since(began), err)
		}
	})
}

func TestReadyBeforeNodesAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := primaryStub(1, 100)
		hung.hung = true
		c, err := engine.New(engine.Config{Cluster: "main", ProbeTimeout: time.Second, Nodes: []engine.Node{{Name: "a", Source: hung}}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := c.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ready with a context that ends first: %v", err)
		}
		if err := c.Ready(t.Context()); err != nil {
			t.Errorf("a node that does not answer is a result too: %v", err)
		}
		if _, err := c.BeginWrite(t.Context()); !errors.Is(err, tidegate.ErrNoPrimary) {
			t.Errorf("a write without a primary: %v", err)
		}
	})
}

func TestReadyOfAClosedCore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := primaryStub(1, 100)
		hung.hung = true
		c, err := engine.New(engine.Config{Cluster: "main", Nodes: []engine.Node{{Name: "a", Source: hung}}})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(10*time.Millisecond, c.Close)
		if err := c.Ready(t.Context()); !errors.Is(err, tidegate.ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
		c.Close()
	})
}
