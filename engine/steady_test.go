package engine_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// pace is how a session goes on under a steady load: so many reads, then a pause.
type pace struct {
	reads  int
	pause  time.Duration // on average
	during time.Duration
}

// Under a steady lag the sessions' causal reads stay on replicas, whether they come close
// together or as web pages make them, and the looks that it takes are within each node's
// budget, although the lag is longer than a read may wait and others write all the time.
func TestSteadyLagLeavesThePrimaryAlone(t *testing.T) {
	const (
		sessions = 12
		every    = time.Second // a session writes
		rate     = 250
		burst    = 8
	)
	paces := map[string]pace{"reads 2ms apart": {1, 2 * time.Millisecond, 5 * time.Second}, "three reads every 300ms": {3, 300 * time.Millisecond, 20 * time.Second}}
	for _, lag := range []time.Duration{25 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond} {
		for name, pace := range paces {
			t.Run(fmt.Sprintf("lag=%v/%s", lag, name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					sea := &tide{lag: lag}
					shores := []*shore{{primaryStub(1, 0), sea}, {replicaStub(2, 0), sea}, {replicaStub(3, 0), sea}}
					sea.commit()
					core := watch(t, engine.Config{DemandRate: rate, DemandBurst: burst}, shores)
					began := time.Now()
					var all [sessions]*swimmer
					var wg sync.WaitGroup
					for i := range all {
						s := &swimmer{t: t, core: core, shores: shores}
						all[i] = s
						dice := rand.New(rand.NewPCG(1, uint64(i)))
						wg.Go(func() {
							time.Sleep(time.Duration(dice.Int64N(int64(pace.pause)))) // they are not in step
							for time.Since(began) < pace.during {
								for range pace.reads {
									if dice.Int64N(int64(every)) < int64(pace.pause)/int64(pace.reads) {
										s.write()
									}
									s.read(tidegate.Causal)
								}
								time.Sleep(pace.pause/2 + time.Duration(dice.Int64N(int64(pace.pause))))
							}
						})
					}
					wg.Wait()
					took := time.Since(began)
					reads, onRep := 0, 0
					var waited time.Duration
					for _, s := range all {
						reads, onRep, waited = reads+s.reads, onRep+s.onRep, waited+s.waited
					}
					share, st := float64(onRep)/float64(reads), core.Stats()
					t.Logf("share %.3f of %d reads, waited %v on average, %d predicted of %d fallbacks",
						share, reads, waited/time.Duration(reads), st.Predicted, st.Fallbacks)
					if share < .95 {
						t.Errorf("replicas answered %.3f of the reads", share)
					}
					if fell := uint64(reads - onRep); st.Fallbacks != fell {
						t.Errorf("%d fallbacks were counted, want %d", st.Fallbacks, fell)
					}
					for _, n := range core.Status().Nodes {
						if most := uint64(rate*took.Seconds()) + burst + 1; n.DemandProbes > most {
							t.Errorf("%d looks at %s were asked for, want at most %d", n.DemandProbes, n.Node, most)
						}
					}
				})
			})
		}
	}
}
