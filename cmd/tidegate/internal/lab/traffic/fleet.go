package traffic

import (
	"sync"

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
// new one, lets the old one end those that it has, and closes it.
func (f *Fleet) Replace(number int, with strategy.Instance) {
	f.mu.Lock()
	old := f.members[number]
	f.members[number] = &member{Instance: with}
	f.mu.Unlock()
	old.busy.Wait()
	old.Close()
}

// Close closes all instances. Nothing may use the fleet any more.
func (f *Fleet) Close() {
	for _, m := range f.members {
		m.Close()
	}
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
