package lab

import (
	"context"
	"fmt"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/carrier"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/traffic"
)

// fleet is the running application: a traffic.Fleet, whose instances are called,
// or a carrier.Fleet, whose instances are behind HTTP.
type fleet interface {
	traffic.Backend
	// Replace puts a new instance in the place of one, lets the old one end what it
	// has and closes it.
	Replace(ctx context.Context, number int, with strategy.Instance) error
	Close()
}

// open starts the application.
func (r *runner) open(ctx context.Context, s strategy.Strategy) (fleet, error) {
	r.job = &job{}
	var instances []strategy.Instance
	for i := range r.cfg.Instances {
		instance, err := r.openOne(ctx, s, i)
		if err != nil {
			for _, open := range instances {
				open.Close()
			}
			return nil, err
		}
		instances = append(instances, instance)
	}
	r.job.held, _ = instances[0].(strategy.Throttling)
	if r.cfg.CarrierName() == "" {
		return traffic.NewFleet(instances...), nil
	}
	cfg, err := r.carried(s)
	if err != nil {
		return nil, err
	}
	return carrier.Open(ctx, cfg, instances...)
}

// carried is how the strategy's sessions travel.
func (r *runner) carried(s strategy.Strategy) (cfg carrier.FleetConfig, err error) {
	cfg = carrier.FleetConfig{Sessions: r.cfg.Sessions, Seed: r.cfg.Seed, Carried: isCarried(s)}
	cfg.Cluster, cfg.Missing = strategy.Cluster, r.cfg.policy()
	if cfg.Keyring, err = strategy.Keyring(); err != nil {
		return cfg, err
	}
	cfg.Carrier, err = carrier.Find(r.cfg.CarrierName())
	return cfg, err
}

func isCarried(s strategy.Strategy) bool {
	c, ok := s.(strategy.Carriable)
	return ok && c.Carried()
}

func (r *runner) openOne(ctx context.Context, s strategy.Strategy, number int) (strategy.Instance, error) {
	cfg := strategy.Config{
		PoolSize: int32(r.cfg.poolSize()), ConnLifetime: r.scenario.ConnLifetime, Wait: r.cfg.Wait,
		FallbackReads: int32(r.cfg.FallbackReads), Ejected: func() { r.ejections.Add(1) },
		Carried: r.cfg.CarrierName() != "" && isCarried(s),
	}
	instance, err := s.Open(ctx, number, r.stage.nodes(), cfg)
	if err != nil {
		return nil, fmt.Errorf("open instance %d: %w", number, err)
	}
	return instance, nil
}

// replacer returns what replaces an instance by a new one.
func (r *runner) replacer(s strategy.Strategy, fleet fleet) func(context.Context, int) error {
	return func(ctx context.Context, number int) error {
		next, err := r.openOne(ctx, s, number)
		if err != nil {
			return err
		}
		return fleet.Replace(ctx, number, next)
	}
}

// statsOf is what a carrier's gates have counted; nothing without a carrier.
func statsOf(f fleet) carrier.Stats {
	if c, ok := f.(*carrier.Fleet); ok {
		return c.Stats()
	}
	return carrier.Stats{}
}
