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

// promoted makes a replica stub the primary of the next line.
func promoted(s *stub) {
	s.set(func(s *stub) {
		s.answer.Role, s.answer.Epoch, s.answer.Ceiling, s.answer.Replayed = tidegate.RolePrimary, epoch(2), s.answer.Applied, s.answer.Applied
	})
}

// A write waits for a primary, for as long as it may, and goes there with the first look
// that shows it.
func TestWriteWaitsForAPrimary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := replicaStub(2, 100)
		c := core(t, engine.Config{ProbeInterval: 100 * time.Millisecond, PrimaryWait: 2 * time.Second}, r)
		begun := time.Now()
		if _, err := c.BeginWrite(t.Context()); !errors.Is(err, tidegate.ErrNoPrimary) || time.Since(begun) != 2*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		begun = time.Now()
		if _, err := c.BeginWrite(short); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, tidegate.ErrNoPrimary) || time.Since(begun) != 300*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		time.AfterFunc(time.Second, func() { promoted(r) })
		begun = time.Now()
		w, err := c.BeginWrite(t.Context())
		if took := time.Since(begun); err != nil || w.Source() != engine.Source(r) || took < time.Second || took > time.Second+150*time.Millisecond {
			t.Errorf("after %v: %v", took, err)
		}
		c.EndWrite(&w)
	})
}

// A read that no replica covers waits for a primary, too, and takes what comes first: one, or
// a replica that has caught up.
func TestReadWaitsForAPrimary(t *testing.T) {
	for name, x := range map[string]struct {
		happens func(r *stub)
		class   tidegate.Class
		role    tidegate.Role
	}{
		"a replica catches up":     {func(r *stub) { r.at(200) }, tidegate.Causal, tidegate.RoleReplica},
		"it is promoted":           {func(r *stub) { r.at(200); promoted(r) }, tidegate.Causal, tidegate.RolePrimary},
		"promoted, a strong read":  {func(r *stub) { r.at(200); promoted(r) }, strong, tidegate.RolePrimary},
		"nothing":                  {func(*stub) {}, tidegate.Causal, tidegate.RoleUnknown},
		"a strong read in between": {func(r *stub) { r.at(200) }, strong, tidegate.RoleUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := replicaStub(2, 100)
				c := core(t, engine.Config{ProbeInterval: 50 * time.Millisecond, Wait: 5 * time.Millisecond, PrimaryWait: time.Second}, r)
				ctx, _ := sessionAt(t.Context(), needs(200))
				time.AfterFunc(400*time.Millisecond, func() { x.happens(r) })
				begun := time.Now()
				var rd engine.Read
				err := c.Begin(ctx, x.class, &rd)
				took := time.Since(begun)
				switch {
				case x.role == tidegate.RoleUnknown:
					if !errors.Is(err, tidegate.ErrNotFresh) || !errors.Is(err, tidegate.ErrNoPrimary) || took < time.Second {
						t.Errorf("after %v: %v", took, err)
					}
				case err != nil || c.Decision(&rd).Role != x.role || c.Decision(&rd).Unproven || took > 600*time.Millisecond:
					t.Errorf("after %v: %v, error %v", took, c.Decision(&rd), err)
				default:
					c.End(&rd)
				}
			})
		})
	}
}
