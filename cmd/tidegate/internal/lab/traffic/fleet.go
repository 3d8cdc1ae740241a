package traffic

import (
	"context"
	"sync"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
)

// Fleet is the running instances of the application, as its load balancer knows
// them. It is safe for concurrent use.
type Fleet struct {
	mu      sync.RWMutex
	members []*member
}

// member is an instance and the operations that it is serving.
type member struct {
	strategy.Instance
	busy sync.WaitGroup
}

// NewFleet returns a fleet of these instances. It closes them.
func NewFleet(instances ...strategy.Instance) *Fleet {
	f := &Fleet{}
	for _, i := range instances {
		f.members = append(f.members, &member{Instance: i})
	}
	return f
}

// Replace sends all further operations of the instance with that number to the
// new one, lets the old one end those that it has, and closes it. It cannot fail.
func (f *Fleet) Replace(_ context.Context, number int, with strategy.Instance) error {
	f.mu.Lock()
	old := f.members[number]
	f.members[number] = &member{Instance: with}
	f.mu.Unlock()
	old.busy.Wait()
	old.Close()
	return nil
}

// Close closes all instances. Nothing may use the fleet any more.
func (f *Fleet) Close() {
	for _, m := range f.members {
		m.Close()
	}
}

// Client implements Backend. The client calls the instances' methods; the plan
// says which instance's, and between two of them only the token moves. Its
// requests must not overlap.
func (f *Fleet) Client(session int) Client {
	return &direct{fleet: f, session: &strategy.Session{ID: session}}
}

type direct struct {
	fleet   *Fleet
	session *strategy.Session
}

// Read implements Client.
func (d *direct) Read(ctx context.Context, op *record.Op) {
	d.fleet.serve(op.Instance, func(i strategy.Instance) {
		switch relaxed, ok := i.(strategy.Relaxed); {
		case op.Strong:
			op.Answer, op.Err = i.ReadStrong(ctx, d.session, op.Asked)
		case op.Budget != nil && ok:
			op.Answer, op.Err = relaxed.ReadRelaxed(ctx, d.session, op.Asked, *op.Budget)
		default:
			op.Answer, op.Err = i.Read(ctx, d.session, op.Asked)
		}
	})
}

// Write implements Client.
func (d *direct) Write(ctx context.Context, op *record.Op) {
	d.fleet.serve(op.Instance, func(i strategy.Instance) {
		op.Err = i.Write(ctx, d.session, op.Key, op.Version)
	})
}

// Forget implements Client.
func (d *direct) Forget(context.Context) int {
	had := 0
	if d.session.Token != "" {
		had = 1
	}
	d.session.Token = ""
	return had
}

// serve has the instance with that number do something.
func (f *Fleet) serve(number int, do func(strategy.Instance)) {
	f.mu.RLock()
	m := f.members[number]
	m.busy.Add(1) // before Replace can wait for it
	f.mu.RUnlock()
	defer m.busy.Done()
	do(m.Instance)
}
