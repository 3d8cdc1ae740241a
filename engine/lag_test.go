package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// tide is a cluster whose replicas apply everything a fixed time after the
// primary.
type tide struct {
	mu      sync.Mutex
	commits []time.Time // of position 1, 2 and so on
	lag     time.Duration
	stopped int // what no replica goes beyond, if not zero
}

// stop makes replicas stay where they are.
func (d *tide) stop() {
	at := int(d.ago(d.lag).Number())
	d.mu.Lock()
	d.stopped = at
	d.mu.Unlock()
}

// commit commits and returns its position.
func (d *tide) commit() tidegate.Position {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.commits = append(d.commits, time.Now())
	return tidegate.At(uint64(len(d.commits)))
}

// ago returns what the primary had that long ago.
func (d *tide) ago(lag time.Duration) tidegate.Position {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(d.commits)
	for n > 0 && time.Since(d.commits[n-1]) < lag {
		n--
	}
	if lag > 0 && d.stopped > 0 {
		n = min(n, d.stopped)
	}
	return tidegate.At(uint64(n))
}

func (d *tide) setLag(lag time.Duration) {
	d.mu.Lock()
	d.lag = lag
	d.mu.Unlock()
}

// shore is one node of a tide.
type shore struct {
	*stub
	tide *tide
}

func (s *shore) Committed(ctx context.Context, _ engine.Snapshot) (tidegate.Position, engine.Transactions, error) {
	o, err := s.Probe(ctx, nil)
	return o.Applied, nil, err
}

func (s *shore) Open(ctx context.Context) (tidegate.Position, engine.Transactions, error) {
	o, err := s.Probe(ctx, nil)
	return o.Applied, nil, err
}

func (s *shore) born() *engine.Observation {
	o, _ := s.Probe(context.Background(), nil)
	o.Sent, o.Received = engine.Now(), engine.Now()
	return &o
}

func (s *shore) Probe(ctx context.Context, pending []uint64) (engine.Observation, error) {
	o, err := s.stub.Probe(ctx, pending)
	s.tide.mu.Lock()
	lag := s.tide.lag
	s.tide.mu.Unlock()
	if o.Role == tidegate.RolePrimary {
		lag = 0
	}
	o.Applied = s.tide.ago(lag)
	o.Bound = o.Applied
	if o.Role == tidegate.RolePrimary {
		o.Ceiling = o.Applied
	}
	return o, err
}

// swimmer is a session that travels as a token.
type swimmer struct {
	t      *testing.T
	core   *engine.Core
	shores []*shore
	token  tidegate.Token
	reads  int
	onRep  int
	waited time.Duration
	most   time.Duration
}

func (s *swimmer) with(do func(ctx context.Context)) {
	session := tidegate.NewSession(s.token)
	do(tidegate.WithSession(s.t.Context(), session))
	s.token = session.Token()
}

func (s *swimmer) write() {
	s.with(func(ctx context.Context) {
		w, err := s.core.BeginWrite(ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		time.Sleep(300 * time.Microsecond)
		s.core.Committed(&w, s.shores[0].born(), s.shores[0].tide.commit(), true)
		s.core.EndWrite(&w)
	})
}

func (s *swimmer) read(class tidegate.Class) {
	s.with(func(ctx context.Context) {
		rd := begin(ctx, s.t, s.core, class)
		born := s.shores[rd.Node()].born()
		if !s.core.Admit(ctx, rd, born) {
			s.t.Fatal("refused")
		}
		time.Sleep(200 * time.Microsecond)
		d := s.core.Decision(rd)
		if class.Need() != tidegate.NeedStrong {
			s.reads++
			s.waited += d.Waited
			s.most = max(s.most, d.Waited)
			if !rd.Primary() {
				s.onRep++
			}
		}
		if rd.Primary() {
			s.core.At(rd, born, s.shores[0].tide.ago(0), true)
		}
		s.core.End(rd)
	})
}

// A lag that is longer than reads may wait must not keep a session on the primary:
// each of its reads there would ask for more than the replicas have by the next.
func TestSlowReplicasKeepNoSessionOnThePrimary(t *testing.T) {
	for _, c := range []struct {
		lag, wait time.Duration
		writes    float64 // 0.03 if zero
		strong    float64
		least     float64 // share of the reads on replicas
	}{
		{lag: 200 * time.Microsecond, least: .97},
		{lag: 10 * time.Millisecond, least: .97},
		{lag: 25 * time.Millisecond, least: .97},
		{lag: 25 * time.Millisecond, strong: .05, least: .97},
		{lag: 25 * time.Millisecond, writes: .2, least: .97},
		{lag: 50 * time.Millisecond, least: .97},
		{lag: 50 * time.Millisecond, strong: .05, least: .97},
		{lag: 50 * time.Millisecond, wait: 80 * time.Millisecond, least: .97},
		{lag: 50 * time.Millisecond, wait: 80 * time.Millisecond, strong: .05, least: .97},
	} {
		t.Run(fmt.Sprintf("lag=%v/wait=%v/writes=%v/strong=%v", c.lag, c.wait, c.writes, c.strong), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				writes := c.writes
				if writes == 0 {
					writes = .03
				}
				sea := &tide{lag: c.lag}
				shores := []*shore{{primaryStub(1, 0), sea}, {replicaStub(2, 0), sea}, {replicaStub(3, 0), sea}}
				sea.commit()
				core := watch(t, engine.Config{Wait: c.wait, ProbeInterval: 100 * time.Millisecond}, shores)
				var all []*swimmer
				var wg sync.WaitGroup
				for i := range 20 {
					s := &swimmer{t: t, core: core, shores: shores}
					all = append(all, s)
					dice := rand.New(rand.NewPCG(1, uint64(i)))
					wg.Go(func() {
						for range 1000 {
							switch p := dice.Float64(); {
							case p < writes:
								s.write()
							case p < writes+c.strong:
								s.read(strong)
							default:
								s.read(tidegate.Causal)
							}
							time.Sleep(time.Duration(dice.Int64N(int64(4 * time.Millisecond))))
						}
					})
				}
				wg.Wait()
				reads, onRep := 0, 0
				var waited, most time.Duration
				for _, s := range all {
					reads, onRep, waited, most = reads+s.reads, onRep+s.onRep, waited+s.waited, max(most, s.most)
				}
				share := float64(onRep) / float64(reads)
				st := core.Stats()
				t.Logf("share %.3f of %d reads, waited %v on average and %v at most, %d predicted of %d fallbacks, %d probes on demand",
					share, reads, waited/time.Duration(reads), most, st.Predicted, st.Fallbacks, st.DemandProbes)
				if share < c.least {
					t.Errorf("replicas answered %.3f of the reads, want at least %.2f", share, c.least)
				}
				limit := c.wait
				if limit == 0 {
					limit = 20 * time.Millisecond
				}
				if most > 5*limit+5*time.Millisecond {
					t.Errorf("a read waited %v", most)
				}
				if c.lag < limit/2 && st.Predicted > uint64(reads/100) {
					t.Errorf("%d reads did not wait for a lag of %v", st.Predicted, c.lag)
				}
			})
		})
	}
}

// A read that waited for longer than its class says in vain is not followed by
// another one: the lag is not what it is taken for.
func TestNoLongWaitAfterOneInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sea := &tide{lag: 40 * time.Millisecond}
		shores := []*shore{{primaryStub(1, 0), sea}, {replicaStub(2, 0), sea}}
		sea.commit()
		core := watch(t, engine.Config{ProbeInterval: 100 * time.Millisecond}, shores)
		s := &swimmer{t: t, core: core, shores: shores}
		long := func() bool {
			s.most = 0
			s.write()
			s.read(tidegate.Causal)
			return s.most > 25*time.Millisecond
		}
		for range 10 {
			long()
			time.Sleep(60 * time.Millisecond)
		}
		if !long() {
			t.Fatalf("a session under a steady lag waited %v", s.most)
		}
		sea.stop()
		if !long() {
			t.Fatalf("the first wait in vain was %v", s.most)
		}
		if long() {
			t.Errorf("and the next one %v", s.most)
		}
	})
}

// When the lag is over, reads wait for replicas again.
func TestPredictionForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sea := &tide{lag: 600 * time.Millisecond}
		shores := []*shore{{primaryStub(1, 0), sea}, {replicaStub(2, 0), sea}}
		sea.commit()
		core := watch(t, engine.Config{ProbeInterval: 100 * time.Millisecond}, shores)
		s := &swimmer{t: t, core: core, shores: shores}
		rounds := func() (onReplica int) {
			for range 20 {
				before := s.onRep
				s.write()
				s.read(tidegate.Causal)
				onReplica += s.onRep - before
				time.Sleep(30 * time.Millisecond)
			}
			return onReplica
		}
		if n := rounds(); n > 0 {
			t.Errorf("%d of 20 reads found a replica that is 600 ms behind", n)
		}
		if st := core.Stats(); st.Predicted < 15 {
			t.Errorf("%d of 20 reads did not wait in vain", st.Predicted)
		}
		sea.setLag(time.Millisecond)
		if n := rounds(); n < 18 {
			t.Errorf("after the lag %d of 20 reads were answered by the replica", n)
		}
	})
}

// watch returns a core over the shores.
func watch(t *testing.T, cfg engine.Config, shores []*shore) *engine.Core {
	t.Helper()
	cfg.Cluster = "main"
	for i, s := range shores {
		cfg.Nodes = append(cfg.Nodes, engine.Node{Name: string(rune('a' + i)), Source: s})
	}
	c, err := engine.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}
