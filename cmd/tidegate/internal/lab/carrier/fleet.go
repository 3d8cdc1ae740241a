package carrier

import (
	"context"
	"net/http"
	"strconv"
	"sync"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/traffic"
	"github.com/tidegatedb/tidegate/eventgate"
)

// FleetConfig says how a fleet serves. Every field must be set.
type FleetConfig struct {
	Config
	Carrier Carrier
	// Carried says that the instances have sessions that the carrier carries. Else
	// requests take the same way without.
	Carried bool
	// Sessions is the number of sessions of the load; events need two at least.
	Sessions int
	// Seed chooses who is told of which event.
	Seed uint64
}

// Fleet is the instances of an application behind HTTP and a balancer. It
// implements traffic.Backend, and is safe for concurrent use.
type Fleet struct {
	cfg      FleetConfig
	way      Way
	queue    *Queue          // nil: no events
	events   *eventgate.Gate // nil: events carry no token
	balancer *Balancer
	end      sync.Once

	mu         sync.Mutex
	instances  []*instance // by number
	gates      []Gate      // of all instances that there ever were
	transports []*http.Transport
}

// Open starts a server for each instance and the balancer. It closes the
// instances, also when it fails.
func Open(ctx context.Context, cfg FleetConfig, apps ...strategy.Instance) (*Fleet, error) {
	f := &Fleet{cfg: cfg}
	for number, app := range apps {
		f.instances = append(f.instances, &instance{number: number, app: app})
	}
	if err := f.open(ctx); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *Fleet) open(ctx context.Context) (err error) {
	if f.way, err = f.cfg.Carrier.Open(ctx, f.cfg.Config); err != nil {
		return err
	}
	if f.cfg.Carrier.Events {
		f.queue = NewQueue(f.cfg.Sessions, f.cfg.Seed)
		if f.cfg.Carried {
			f.events, err = eventgate.New(eventgate.Config{Keyring: f.cfg.Keyring, Clusters: []string{f.cfg.Cluster}})
			if err != nil {
				return err
			}
		}
	}
	var hosts []string
	for _, i := range f.instances {
		if err := f.start(ctx, i); err != nil {
			return err
		}
		hosts = append(hosts, i.server.host)
	}
	f.balancer, err = StartBalancer(ctx, hosts...)
	return err
}

// start starts an instance with what the fleet shares.
func (f *Fleet) start(ctx context.Context, i *instance) error {
	i.queue, i.events = f.queue, f.events
	if f.cfg.Carried {
		gate, err := f.way.Gate(ctx)
		if err != nil {
			return err
		}
		f.mu.Lock()
		f.gates = append(f.gates, gate)
		f.mu.Unlock()
		i.gate = gate
	}
	return i.start(ctx)
}

// Replace puts a new instance in the place of the one with that number. It returns
// when the old one has answered what it was asked, and is closed. Beside an error
// the old one stays and the new one is closed.
func (f *Fleet) Replace(ctx context.Context, number int, with strategy.Instance) error {
	next := &instance{number: number, app: with}
	if err := f.start(ctx, next); err != nil {
		next.close()
		return err
	}
	f.balancer.Replace(number, next.server.host)
	f.mu.Lock()
	old := f.instances[number]
	f.instances[number] = next
	f.mu.Unlock()
	old.close()
	return nil
}

// Client implements traffic.Backend. Each client has connections of its own.
func (f *Fleet) Client(session int) traffic.Client {
	transport := newTransport()
	f.mu.Lock()
	f.transports = append(f.transports, transport)
	f.mu.Unlock()
	c := &client{key: strconv.Itoa(session), host: f.balancer.Host()}
	var err error
	if c.Client, err = f.way.Client(context.Background(), c.key, c.host, transport); err != nil {
		return broken{err}
	}
	if f.queue == nil || session < 0 {
		return c
	}
	return &listener{c, f.queue.Events(session)}
}

// Stats returns what was counted so far.
func (f *Fleet) Stats() (s Stats) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, g := range f.gates {
		s = s.plus(g.Stats())
	}
	if f.queue != nil {
		s.Undelivered = f.queue.Undelivered()
	}
	if f.events != nil {
		e := f.events.Stats()
		s = s.plus(Stats{CatchUps: e.CatchUps, Fresh: e.Fresh, Refused: e.Refused.Total()})
	}
	return s
}

// Close closes all instances and what is around them. Nothing may use the fleet
// any more. Closing twice is the same as once.
func (f *Fleet) Close() { f.end.Do(f.close) }

func (f *Fleet) close() {
	for _, t := range f.transports {
		t.CloseIdleConnections()
	}
	if f.balancer != nil {
		f.balancer.Close()
	}
	for _, i := range f.instances {
		i.close()
	}
	if f.queue != nil {
		f.queue.Close()
	}
	if f.way != nil {
		f.way.Close()
	}
}

// broken is a client that could not be made.
type broken struct{ err error }

// Read implements traffic.Client.
func (b broken) Read(_ context.Context, op *record.Op) { op.Err = b.err }

// Write implements traffic.Client.
func (b broken) Write(_ context.Context, op *record.Op) { op.Err = b.err }

// Forget implements traffic.Client.
func (broken) Forget(context.Context) int { return 0 }
