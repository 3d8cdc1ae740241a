package lab

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/carrier"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/fault"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/report"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
)

// Run is one run of the lab: it starts the cluster, lets the strategies serve
// one after another, stops the cluster and returns the figures. When ctx ends
// early, the result holds what there was until then and the error is that of
// ctx. The configuration must be valid; a folder for logs that cannot be used is a
// *[UsageError].
func Run(ctx context.Context, cfg Config, progress *report.Progress) (result *report.Result, err error) {
	r, err := newRunner(cfg, progress)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.leave()) }()
	result = r.result()
	for _, name := range cfg.Strategies {
		if err := r.add(ctx, result, name); err != nil {
			return result, err
		}
	}
	return result, nil
}

// newRunner says what is about to run. The configuration must be valid.
func newRunner(cfg Config, progress *report.Progress) (*runner, error) {
	scenario, err := fault.Find(cfg.Scenario)
	if err != nil {
		return nil, err
	}
	if err := cfg.logsFolder(); err != nil {
		return nil, err
	}
	progress.Say("scenario %s: %s", scenario.Name, scenario.About)
	progress.Say("load: %v", cfg.Load())
	if p := cfg.Primary(); p.Cost > 0 {
		progress.Say("the primary serves %v", p)
	}
	if by, err := carrier.Find(cfg.CarrierName()); err == nil {
		progress.Say("carrier %s: %s", by.Name, by.About)
	}
	return &runner{cfg: cfg, scenario: scenario, progress: progress}, nil
}

// result is what a run begins with.
func (r *runner) result() *report.Result {
	cfg := &r.cfg
	result := &report.Result{
		Engine:    "postgresql",
		Scenario:  r.scenario.Name,
		Seed:      cfg.Seed,
		DurationS: report.Seconds(cfg.Duration),
		Instances: cfg.Instances,
		Replicas:  cfg.Replicas,
		Carrier:   cfg.CarrierName(),
	}
	if p := cfg.Primary(); p.Cost > 0 {
		result.PrimarySlots, result.PrimaryCostMs = p.Slots, report.Millis(p.Cost)
	}
	if result.Carrier != "" {
		result.Missing = cfg.policy().String()
	}
	return result
}

// add lets one strategy serve and adds its figures to the result.
func (r *runner) add(ctx context.Context, result *report.Result, name string) error {
	s, err := strategy.Find(name)
	if err != nil {
		return err
	}
	if err := r.enter(ctx); err != nil {
		return err
	}
	result.ServerVersion = r.stage.Install.Version
	figures, err := r.serve(ctx, s)
	if figures != nil {
		figures.Name = name
		_, figures.Held = s.(strategy.Configurer)
		result.Strategies = append(result.Strategies, *figures)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// runner holds the cluster that is up now.
type runner struct {
	cfg      Config
	scenario fault.Scenario
	progress *report.Progress
	label    string // what the line of progress says before the strategy

	stage     *stage
	clusters  int
	job       *job         // beside the strategy that serves now
	ejections atomic.Int64 // of all strategies so far
}

// enter makes sure that there is a cluster for the next strategy.
func (r *runner) enter(ctx context.Context) error {
	if r.stage != nil && !r.scenario.Fresh {
		return nil
	}
	if err := r.leave(); err != nil {
		return err
	}
	r.progress.Show(fmt.Sprintf("starting a primary and %d replicas ...", r.cfg.Replicas))
	began := time.Now()
	stage, err := raise(ctx, &r.cfg, r.scenario)
	if err != nil {
		return err
	}
	r.stage = stage
	r.clusters++
	r.progress.Say("%v: a primary and %d replicas in %.1f s", stage.Install, r.cfg.Replicas, time.Since(began).Seconds())
	return nil
}

// leave stops the cluster, if there is one.
func (r *runner) leave() error {
	if r.stage == nil {
		return nil
	}
	prefix := ""
	if r.scenario.Fresh {
		prefix = fmt.Sprintf("cluster%d-", r.clusters)
	}
	err := errors.Join(r.stage.keepLogs(&r.cfg, prefix), r.stage.Stop())
	r.stage = nil
	return err
}
