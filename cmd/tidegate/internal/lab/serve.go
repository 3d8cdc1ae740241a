package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/report"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/traffic"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/truth"
)

// serve lets one strategy serve the load while the scenario goes on. It returns
// figures as soon as the load has begun, also beside an error.
func (r *runner) serve(ctx context.Context, s strategy.Strategy) (*report.Figures, error) {
	load, nodes := r.cfg.Load(), r.stage.nodes()
	if err := r.stage.reset(ctx, load.Keys()+warmSessions); err != nil {
		return nil, err
	}
	instances, err := r.open(ctx, s, nodes)
	defer func() {
		for _, i := range instances {
			i.Close()
		}
	}()
	if err != nil {
		return nil, err
	}
	r.progress.Say("%s: %s", s.Name(), s.About())
	r.progress.Show("warming up ...")
	warmUp(ctx, instances, int64(load.Keys()))

	var trouble atomic.Value
	trouble.Store("")
	log := record.NewLog(load.Sessions)
	primaryBefore, replicasBefore, err := r.stage.cpu()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	// The looks go on for a moment after the load, so that the last reads have
	// one after them.
	watch := truth.Start(ctx, start, r.replicas(), "select k, v from "+strategy.Table, load.Keys())
	stopTelling := r.tell(s.Name(), start, log, &trouble)

	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var faults sync.WaitGroup
	var faultErr error
	if r.scenario.Inject != nil {
		faults.Go(func() {
			site := r.stage.site(func(what string) { trouble.Store(what) })
			if faultErr = r.scenario.Inject(run, site, load.Duration); faultErr != nil {
				faultErr = fmt.Errorf("scenario %s: %w", r.scenario.Name, faultErr)
				cancel(faultErr)
			}
		})
	}
	unsent := traffic.Drive(run, load, start, instances, log)
	primary, replicas, cpuErr := r.stage.cpu()
	cancel(nil)
	time.Sleep(2 * truth.Interval)
	looks := watch.Stop()
	stopTelling()
	faults.Wait()

	f := report.Measure(log)
	f.Unsent = unsent
	f.Opportunities = truth.Opportunities(log.Sessions(), looks, load.Keys())
	f.PrimaryCPUs = report.Seconds(primary - primaryBefore)
	f.ReplicaCPUs = report.Seconds(replicas - replicasBefore)
	return &f, errors.Join(ctx.Err(), faultErr, cpuErr)
}

// open starts the application instances.
func (r *runner) open(ctx context.Context, s strategy.Strategy, nodes strategy.Nodes) (open []strategy.Instance, err error) {
	cfg := strategy.Config{PoolSize: int32(r.cfg.poolSize()), Wait: r.cfg.Wait}
	for i := range r.cfg.Instances {
		instance, err := s.Open(ctx, i, nodes, cfg)
		if err != nil {
			return open, fmt.Errorf("open instance %d: %w", i, err)
		}
		open = append(open, instance)
	}
	return open, nil
}

// replicas are the addresses for the lab's own looks.
func (r *runner) replicas() (dsns []string) {
	for _, s := range r.stage.Replicas() {
		dsns = append(dsns, s.DSN("", ""))
	}
	return dsns
}

// tell shows each second how the run goes, until the returned function is
// called, which leaves the last state on the screen.
func (r *runner) tell(name string, start time.Time, log *record.Log, trouble *atomic.Value) (stop func()) {
	show := func() {
		r.progress.Show(report.RunLine(name, time.Since(start), r.cfg.Duration, &log.Live, trouble.Load().(string)))
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				show()
			case <-done:
				trouble.Store("")
				show()
				r.progress.Keep()
				return
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}
