// Package lab compares ways of routing reads on a real PostgreSQL cluster. A run
// starts a primary with streaming replicas, lets each strategy serve the same
// load while a scenario goes on, and judges every answer.
//
// Each room has one part of that:
//
//	traffic    the sessions and when they read and write
//	carrier    how their history travels, if by HTTP
//	strategy   what is compared
//	fault      what goes wrong meanwhile
//	record     what happened, operation by operation
//	check      which answers broke a promise
//	truth      which reads were in danger at all
//	report     figures, table, JSON, verdict
//
// This package puts them together: [Run] is one run, from the cluster's start
// to the figures.
package lab

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/fault"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/traffic"
)

// Config says what to run. Every field must be set, but for those that say what
// their zero value means; the command's flags have the defaults.
type Config struct {
	Scenario   string
	Strategies []string // by name, in the order in which they run

	Instances int
	Sessions  int
	Rate      float64 // reads per second, all sessions together
	Writes    float64 // part of the operations, 0 to 0.5
	Replicas  int
	Duration  time.Duration // of each strategy
	Seed      uint64
	// Strong is the part of the reads that are strong, 0 to 1.
	Strong float64
	// ApplyDelay is how late replicas apply in the scenario that makes them late.
	ApplyDelay time.Duration
	// Wait is how long a causal read of tidegate may wait; 0: its default.
	Wait time.Duration
	// PrimarySlots and PrimaryCost are what the primary can do for the application: see
	// [fault.Capacity]. Zero, both of them: what the scenario says.
	PrimarySlots int
	PrimaryCost  time.Duration
	// ReplicaCost is how long a replica takes for a read of the application. Zero: what the
	// scenario says.
	ReplicaCost time.Duration
	// FallbackReads bounds tidegate's reads that are on the primary for want of a replica,
	// of each instance; 0: its default.
	FallbackReads int
	// Beside names the scenario that runs are compared with, in Pairs rounds: see
	// [RunPairs]. Empty, with no Pairs: one run, compared with nothing.
	Beside string
	Pairs  int
	// Carrier is how sessions travel by HTTP, by name. Empty means not at all, or by
	// header in a scenario that needs clients.
	Carrier string
	// Missing is what a known client without a token gets: "catch-up", or "fresh".
	// Empty means catch-up.
	Missing string
	// PGBin is the folder of the server programs; empty: where they usually are.
	PGBin string
	// KeepLogs is a folder to copy the servers' logs to; empty: none.
	KeepLogs string
}

// UsageError says which flag is wrong and what to write instead.
type UsageError struct {
	Flag, Problem, Next string
}

func (e *UsageError) Error() string {
	return fmt.Sprintf("--%s: %s\nNext: %s", e.Flag, e.Problem, e.Next)
}

// Limits of the flags. They keep a typing error from starting a thousand
// processes; the cluster itself takes no more than maxReplicas.
const (
	maxInstances = 16
	maxSessions  = 1000
	maxRate      = 100_000
	maxReplicas  = 8
	maxDuration  = time.Hour
	maxDelay     = time.Minute
	maxSlots     = 1000
	maxCost      = time.Second
	maxFallbacks = 10_000
	maxPairs     = 100
)

// Validate returns a *[UsageError] for the first field that makes no sense.
func (c *Config) Validate() error {
	bad := func(flag, next, problem string, args ...any) error {
		return &UsageError{flag, fmt.Sprintf(problem, args...), next}
	}
	if _, err := fault.Find(c.Scenario); err != nil {
		return bad("scenario", "choose one of "+strings.Join(fault.Names(), ", "), "%v", err)
	}
	if len(c.Strategies) == 0 {
		return bad("strategies", "choose from "+strings.Join(strategy.Names(), ","), "there is none to run")
	}
	for i, name := range c.Strategies {
		if _, err := strategy.Find(name); err != nil {
			return bad("strategies", "choose from "+strings.Join(strategy.Names(), ",")+", with commas between them", "%v", err)
		}
		if slices.Contains(c.Strategies[:i], name) {
			return bad("strategies", "name each one once", "%s is named twice", name)
		}
	}
	if err := c.validateCarrier(); err != nil {
		return err
	}
	if err := c.validatePairs(); err != nil {
		return err
	}
	switch {
	case c.Instances < 1 || c.Instances > maxInstances:
		return bad("instances", "the default is 2", "%d is not from 1 to %d", c.Instances, maxInstances)
	case c.Sessions < 1 || c.Sessions > maxSessions:
		return bad("sessions", "the default is 32", "%d is not from 1 to %d", c.Sessions, maxSessions)
	case !(c.Rate > 0 && c.Rate <= maxRate): // also refuses NaN
		return bad("rate", "the default is 1000 reads/s", "%v is not above 0 and up to %d", c.Rate, maxRate)
	case !(c.Writes >= 0 && c.Writes <= traffic.MaxWrites):
		return bad("writes", "the default is 0.2, a fifth of the operations", "%v is not from 0 to %v: every write is followed by a read", c.Writes, traffic.MaxWrites)
	case c.Replicas < 1 || c.Replicas > maxReplicas:
		return bad("replicas", "the default is 2", "%d is not from 1 to %d", c.Replicas, maxReplicas)
	case c.Duration < time.Second || c.Duration > maxDuration:
		return bad("duration", "the default is 20s, for each strategy", "%v is not from 1s to %v", c.Duration, maxDuration)
	case !(c.Strong >= 0 && c.Strong <= 1):
		return bad("strong", "leave it out for none", "%v is not from 0 to 1", c.Strong)
	case c.ApplyDelay < time.Millisecond || c.ApplyDelay > maxDelay:
		return bad("apply-delay", "the default is 25ms", "%v is not from 1ms to %v", c.ApplyDelay, maxDelay)
	case (c.PrimarySlots == 0) != (c.PrimaryCost == 0):
		return bad("primary-slots", "give --primary-slots and --primary-cost, or leave both out", "there are %d of %v, and one without the other is no capacity", c.PrimarySlots, c.PrimaryCost)
	case c.PrimarySlots < 0 || c.PrimarySlots > maxSlots:
		return bad("primary-slots", "leave it out for what the scenario says", "%d is not from 1 to %d", c.PrimarySlots, maxSlots)
	case c.PrimaryCost < 0 || c.PrimaryCost > maxCost:
		return bad("primary-cost", "leave it out for what the scenario says", "%v is not above 0s and up to %v", c.PrimaryCost, maxCost)
	case c.ReplicaCost < 0 || c.ReplicaCost > maxCost:
		return bad("replica-cost", "leave it out for what the scenario says", "%v is not above 0s and up to %v", c.ReplicaCost, maxCost)
	case c.metered() && c.scenario().Migrates:
		return bad("scenario", "leave out --primary-slots, --primary-cost and --replica-cost", "%s changes the table, so that statements on it can have no cost", c.Scenario)
	case c.FallbackReads < 0 || c.FallbackReads > maxFallbacks:
		return bad("fallback-reads", "leave it out for the library's default", "%d is not from 1 to %d", c.FallbackReads, maxFallbacks)
	case c.Wait < 0 || c.Wait > time.Minute:
		return bad("wait", "leave it out for the library's default", "%v is not from 0s to 1m", c.Wait)
	}
	return nil
}

// scenario is the one that is named, or one in which nothing happens.
func (c *Config) scenario() fault.Scenario {
	s, _ := fault.Find(c.Scenario)
	return s
}

// Primary is what the primary can do for the application: what the flags say, or else
// the scenario.
func (c *Config) Primary() fault.Capacity {
	if c.PrimarySlots > 0 {
		return fault.Capacity{Slots: c.PrimarySlots, Cost: c.PrimaryCost}
	}
	return c.scenario().Primary
}

// replica is what each replica can do.
func (c *Config) replica() fault.Capacity {
	if c.ReplicaCost > 0 {
		return fault.Capacity{Cost: c.ReplicaCost}
	}
	return c.scenario().Replicas
}

// metered reports whether statements of the application have a cost.
func (c *Config) metered() bool { return c.Primary().Cost > 0 || c.replica().Cost > 0 }

// Load is the load that the flags and the scenario describe.
func (c *Config) Load() traffic.Load { return c.loadOf(c.scenario()) }

// loadOf is the load that the flags and a scenario describe.
func (c *Config) loadOf(s fault.Scenario) traffic.Load {
	load := traffic.Load{
		Sessions: c.Sessions, Instances: c.Instances, Rate: c.Rate,
		Writes: c.Writes, Strong: c.Strong, Duration: c.Duration, Seed: c.Seed,
		WritesEnd: time.Duration(s.WritesEnd * float64(c.Duration)),
		Witness:   s.Witness, Drops: s.Drops,
		Relaxed: s.Relaxed, Budgets: s.Budgets, ReadDeadline: s.ReadDeadline,
	}
	if c.CarrierName() != "" {
		load.Parallel = parallel
	}
	return load
}

// poolSize is the most connections of one pool: enough for every session to be
// served by one node of one instance, up to what an application would allow.
func (c *Config) poolSize() int { return min(c.Sessions, 16) }

// maxConnections is what one server has to accept: each strategy may hold two
// pools of each instance there and a few connections to look at it, and so may
// the lab. An instance that is replaced runs beside its successor for a while.
func (c *Config) maxConnections() int {
	return (c.Instances+1)*(2*c.poolSize()+8) + 20
}
