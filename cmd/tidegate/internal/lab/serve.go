package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/check"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/report"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/traffic"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/truth"
)

// serve lets one strategy serve the load while the scenario goes on. It returns
// figures as soon as the load has begun, also beside an error.
func (r *runner) serve(ctx context.Context, s strategy.Strategy) (f *report.Figures, err error) {
	load := r.cfg.loadOf(r.scenario)
	_, load.Affinity = s.(strategy.Homebound)
	if err := r.stage.reset(ctx, load.Keys()+warmSessions); err != nil {
		return nil, err
	}
	unset, err := r.stage.configure(ctx, s)
	defer func() { err = errors.Join(err, unset()) }()
	if err != nil {
		return nil, err
	}
	fleet, err := r.open(ctx, s)
	if err != nil {
		return nil, err
	}
	defer fleet.Close()
	r.progress.Say("%s: %s", s.Name(), s.About())
	r.progress.Show("warming up ...")
	warmUp(ctx, fleet, load.Instances, int64(load.Keys()))
	return r.run(ctx, s, load, fleet)
}

// run lets the fleet serve the load and the scenario happen.
func (r *runner) run(ctx context.Context, s strategy.Strategy, load traffic.Load, fleet fleet) (*report.Figures, error) {
	var trouble atomic.Value
	trouble.Store("")
	log, checker := record.NewLog(load.Sessions), check.New(load.Keys())
	primaryBefore, replicasBefore, err := r.stage.cpu()
	if err != nil {
		return nil, err
	}
	conflictsBefore, err := r.stage.conflicts(ctx)
	if err != nil && ctx.Err() == nil { // an interrupted run shows what there is
		return nil, err
	}
	warm, ejected := statsOf(fleet), int(r.ejections.Load())
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
		site := r.stage.site()
		site.ApplyDelay = r.cfg.ApplyDelay
		site.Witness = witness(load, checker)
		site.Instances, site.Replace = load.Instances, r.replacer(s, fleet)
		site.Say = func(what string) { trouble.Store(what) }
		site.Restarted = func() { log.Restarted(time.Since(start)) }
		site.Trouble = func(replicas ...int) func() {
			over := log.Fault(time.Since(start), names(replicas)...)
			return func() { over(time.Since(start)) }
		}
		site.Throttle, site.Batch = r.job.throttle(), r.job.wrote
		faults.Go(func() {
			if faultErr = r.scenario.Inject(run, site, load.Duration); faultErr != nil {
				faultErr = fmt.Errorf("scenario %s: %w", r.scenario.Name, faultErr)
				cancel(faultErr)
			}
		})
	}
	unsent := traffic.Drive(run, load, start, fleet, checker, log)
	primary, replicas, cpuErr := r.stage.cpu()
	cancel(nil)
	time.Sleep(2 * truth.Interval)
	looks := watch.Stop()
	stopTelling()
	faults.Wait()

	check.Ages(log.Sessions())
	f := report.Measure(log)
	f.Ejections = int(r.ejections.Load()) - ejected
	f.Backfill = r.job.figures()
	f.Unsent = unsent
	f.Opportunities = truth.Opportunities(log.Sessions(), looks, load.Keys())
	f.PrimaryCPUs = report.Seconds(primary - primaryBefore)
	f.ReplicaCPUs = report.Seconds(replicas - replicasBefore)
	conflicts := 0
	if ctx.Err() == nil && faultErr == nil { // else a server may be in no state to tell
		conflicts, err = r.stage.conflicts(ctx)
	}
	f.RecoveryConflicts = max(0, conflicts-conflictsBefore) // a crash begins anew
	if r.cfg.CarrierName() != "" {
		f.Carried = report.MeasureCarriage(log, statsOf(fleet).Minus(warm))
	}
	return &f, errors.Join(ctx.Err(), faultErr, cpuErr, err)
}

// witness returns what makes statements that write the witness. The checker
// learns of each version before anybody can see it.
func witness(load traffic.Load, checker *check.Checker) func() string {
	if !load.Witness {
		return nil
	}
	writer := checker.Session(-1, load.WitnessKey())
	version := int64(0)
	return func() string {
		version++
		writer.Writing(version)
		return fmt.Sprintf("update %s set v = %d where k = %d", strategy.Table, version, load.WitnessKey())
	}
}

// names are what answers call the replicas.
func names(replicas []int) (list []string) {
	for _, n := range replicas {
		list = append(list, strategy.ReplicaName(n))
	}
	return list
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
		r.progress.Show(report.RunLine(r.label+name, time.Since(start), r.cfg.Duration, &log.Live, trouble.Load().(string)))
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
