package engine_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// Who may be written to when more than one history is in sight.
func TestWritesGoToTheNewestHistoryOnly(t *testing.T) {
	for _, x := range []struct {
		name   string
		change func(p, r *stub)
		want   int // the node, or -1 for none
	}{
		{"one primary", func(_, _ *stub) {}, 0},
		{"a replica of a newer line whose primary is out of sight", func(_, r *stub) { r.answer.Epoch = epoch(2) }, -1},
		{"a promoted replica beside the old primary", func(_, r *stub) { r.answer.Role, r.answer.Epoch = tidegate.RolePrimary, epoch(2) }, 1},
		{"two primaries of one line", func(_, r *stub) { r.answer.Role = tidegate.RolePrimary }, -1},
		{"a promoted replica that is gone again", func(_, r *stub) {
			r.answer.Role, r.answer.Epoch = tidegate.RolePrimary, epoch(2)
			time.AfterFunc(500*time.Millisecond, func() { r.set(func(r *stub) { r.err = errors.New("gone") }) })
		}, -1},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, r := primaryStub(1, 100), replicaStub(2, 100)
				c := core(t, engine.Config{ProbeInterval: 100 * time.Millisecond}, p, r)
				p.set(func(p *stub) { r.set(func(r *stub) { x.change(p, r) }) })
				time.Sleep(3 * time.Second)
				w, err := c.BeginWrite(t.Context())
				switch {
				case x.want < 0 && !errors.Is(err, tidegate.ErrNoPrimary):
					t.Errorf("node %d, %v: want ErrNoPrimary", w.Node, err)
				case x.want >= 0 && (err != nil || w.Node != x.want):
					t.Errorf("node %d, %v: want node %d", w.Node, err, x.want)
				}
			})
		})
	}
}
