package engine_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/engine/enginetest/fake"
	"github.com/tidegatedb/tidegate/internal/chance"
)

// plan says what one run of the simulation is like.
type plan struct {
	seed     uint64
	steps    int
	rough    bool    // nodes hang, refuse and restart
	stormy   bool    // replicas crash often
	doubtful bool    // outcomes are often unknown
	async    bool    // commits are acknowledged before they are flushed
	failover bool    // replicas are promoted
	apart    float64 // how often by somebody who knows of no other promotion
	kept     bool    // a store keeps the sessions of most clients
	mortal   bool    // instances end often, and the store forgets
	restless bool    // requests are long, and the store fails over from the beginning
	mistakes fake.Mistakes
	store    storeMistakes
}

// world is one run: a cluster, two instances, and clients that hop between them
// with nothing but their tokens.
type world struct {
	plan    plan
	dice    *dice
	cluster *fake.Cluster
	gates   []*fake.Gate
	clients []*client
	store   *simStore
	keeper  *tidegate.Keeper
	trace   *trace
	begun   time.Time

	// Of the plan's seed.
	wait    time.Duration
	par     int
	latency time.Duration
	pace    time.Duration
	// untold: primaries do not tell how their history came about; nameless: nor in which
	// life they are.
	untold, nameless bool

	open []*fake.Process // writes of nobody whom we ask, under way
	wg   sync.WaitGroup

	mu    sync.Mutex
	n     counts
	wrong *violation
}

// run runs the simulation in a bubble of its own.
func run(t *testing.T, p plan) (w *world) {
	t.Helper()
	chance.Seed(t, p.seed)
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, p)
		deeds := w.deeds()
		for range p.steps {
			deeds.step(w.dice.float())
			time.Sleep(w.dice.upTo(2 * w.pace))
			if w.failed() {
				break
			}
		}
		w.settle()
		w.wg.Wait()
		for _, g := range w.gates {
			g.Close()
		}
		time.Sleep(time.Second) // answers of the store that nobody waits for any more
	})
	w.n.Runs = 1
	return w
}

// spare is the memory of the last run's trace. Runs follow each other.
var spare = &trace{}

func newWorld(t *testing.T, p plan) *world {
	d := newDice(p.seed, 0)
	w := &world{plan: p, dice: d, begun: time.Now(), trace: spare}
	w.trace.reset()
	w.wait = []time.Duration{-1, 2 * time.Millisecond, 20 * time.Millisecond, 20 * time.Millisecond}[d.n(4)]
	w.latency = []time.Duration{100 * time.Microsecond, 400 * time.Microsecond, 2 * time.Millisecond}[d.n(3)]
	w.par = 1 + d.n(4)
	w.pace = 250 * time.Microsecond
	w.untold, w.nameless = p.failover && d.chance(.3), p.failover && d.chance(.3)
	w.cluster = fake.New(fake.Config{Replicas: 3, Manual: true, Ahead: 1 + d.n(3), Async: p.async, Untold: w.untold, Nameless: w.nameless})
	if p.failover && d.chance(.25) {
		w.replica().Mute(true)
	}
	for i := range 2 {
		w.gates = append(w.gates, w.gate(t, i))
	}
	w.store = newSimStore(w)
	var err error
	if w.keeper, err = tidegate.NewKeeper(tidegate.KeeperConfig{Store: w.store, Clusters: []string{cluster}, Timeout: 5 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	for i := range clients {
		w.clients = append(w.clients, newClient(w, i))
	}
	return w
}

// gate opens one instance.
func (w *world) gate(t *testing.T, i int) *fake.Gate {
	opts := fake.Options{
		Core: engine.Config{
			Cluster: cluster, Wait: w.wait, ProofWait: 200 * time.Millisecond, ProbeInterval: 20 * time.Millisecond, ProbeTimeout: 50 * time.Millisecond,
			DemandRate: []float64{250, 1000, 5000}[w.dice.n(3)], DemandBurst: 8,
		},
		Tags: [][]string{nil, nil, {"reporting"}, {"reporting"}}, Dedicated: []bool{3: w.plan.seed%4 == 3},
		Mistakes: w.plan.mistakes,
		Probed: func(n *fake.Node, asked time.Time, o *engine.Observation, err error) {
			w.trace.probed(w, i, n, asked, o, err)
		},
	}
	// Each node has its own dice, so that two things at one instant do not
	// exchange their luck.
	var of []*dice
	for n := range w.cluster.Nodes() {
		of = append(of, newDice(w.plan.seed, 1+10*i+n))
	}
	opts.Delay = func(n *fake.Node, op fake.Op) time.Duration {
		longest := w.latency
		if op == fake.OpShow {
			longest *= 4
		}
		return of[n.Index()].upTo(longest)
	}
	opts.Breaks = func(n *fake.Node, op fake.Op) bool {
		breaks := (op == fake.OpRead || op == fake.OpWrite) && of[n.Index()].chance(.004)
		if breaks {
			w.count(&w.n.Broken)
		}
		return breaks
	}
	pick := newDice(w.plan.seed, 100+i)
	opts.Pick = pick.n
	g, err := w.cluster.Open(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

const (
	cluster = "sim"
	clients = 12
)

func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wrong != nil
}

func (w *world) count(n *int) {
	w.mu.Lock()
	*n++
	w.mu.Unlock()
}

// now is the time since the run began.
func (w *world) now() time.Duration { return time.Since(w.begun) }

func (w *world) replica() *fake.Node { return w.cluster.Nodes()[1+w.dice.n(3)] }
