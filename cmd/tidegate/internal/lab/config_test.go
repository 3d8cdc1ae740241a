package lab_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/fault"
)

func usual() lab.Config {
	return lab.Config{
		Scenario: "steady", Strategies: []string{"round-robin"}, Instances: 2, Sessions: 32,
		Rate: 1000, Writes: 0.2, Replicas: 2, Duration: 20 * time.Second, Seed: 1, ApplyDelay: 25 * time.Millisecond,
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	if cfg := usual(); cfg.Validate() != nil {
		t.Fatalf("the usual configuration: %v", cfg.Validate())
	}
	for name, c := range map[string]struct {
		flag   string
		change func(*lab.Config)
	}{
		"unknown scenario":  {"scenario", func(c *lab.Config) { c.Scenario = "flood" }},
		"no scenario":       {"scenario", func(c *lab.Config) { c.Scenario = "" }},
		"unknown strategy":  {"strategies", func(c *lab.Config) { c.Strategies = []string{"round-robin", "x"} }},
		"no strategy":       {"strategies", func(c *lab.Config) { c.Strategies = nil }},
		"a strategy twice":  {"strategies", func(c *lab.Config) { c.Strategies = []string{"round-robin", "round-robin"} }},
		"no instance":       {"instances", func(c *lab.Config) { c.Instances = 0 }},
		"many instances":    {"instances", func(c *lab.Config) { c.Instances = 1000 }},
		"no session":        {"sessions", func(c *lab.Config) { c.Sessions = 0 }},
		"many sessions":     {"sessions", func(c *lab.Config) { c.Sessions = 1 << 20 }},
		"no rate":           {"rate", func(c *lab.Config) { c.Rate = 0 }},
		"negative rate":     {"rate", func(c *lab.Config) { c.Rate = -1 }},
		"endless rate":      {"rate", func(c *lab.Config) { c.Rate = math.Inf(1) }},
		"rate of nothing":   {"rate", func(c *lab.Config) { c.Rate = math.NaN() }},
		"negative writes":   {"writes", func(c *lab.Config) { c.Writes = -0.1 }},
		"writes only":       {"writes", func(c *lab.Config) { c.Writes = 1 }},
		"writes of nothing": {"writes", func(c *lab.Config) { c.Writes = math.NaN() }},
		"no replica":        {"replicas", func(c *lab.Config) { c.Replicas = 0 }},
		"many replicas":     {"replicas", func(c *lab.Config) { c.Replicas = 9 }},
		"no time":           {"duration", func(c *lab.Config) { c.Duration = 0 }},
		"a day":             {"duration", func(c *lab.Config) { c.Duration = 24 * time.Hour }},
		"negative strong":   {"strong", func(c *lab.Config) { c.Strong = -0.1 }},
		"more than all":     {"strong", func(c *lab.Config) { c.Strong = 1.1 }},
		"strong of nothing": {"strong", func(c *lab.Config) { c.Strong = math.NaN() }},
		"no apply delay":    {"apply-delay", func(c *lab.Config) { c.ApplyDelay = 0 }},
		"long apply delay":  {"apply-delay", func(c *lab.Config) { c.ApplyDelay = time.Hour }},
		"negative wait":     {"wait", func(c *lab.Config) { c.Wait = -time.Second }},
		"slots for nothing": {"primary-slots", func(c *lab.Config) { c.PrimarySlots = 2 }},
		"cost of nothing":   {"primary-slots", func(c *lab.Config) { c.PrimaryCost = time.Millisecond }},
		"negative slots":    {"primary-slots", func(c *lab.Config) { c.PrimarySlots, c.PrimaryCost = -1, time.Millisecond }},
		"negative cost":     {"primary-cost", func(c *lab.Config) { c.PrimarySlots, c.PrimaryCost = 1, -1 }},
		"negative reads":    {"replica-cost", func(c *lab.Config) { c.ReplicaCost = -1 }},
		"migrated replicas": {"scenario", func(c *lab.Config) { c.Scenario, c.ReplicaCost = "ddl", 1 }},
		"a view in the way": {"scenario", func(c *lab.Config) { c.Scenario, c.PrimarySlots, c.PrimaryCost = "ddl", 1, time.Millisecond }},
		"negative limit":    {"fallback-reads", func(c *lab.Config) { c.FallbackReads = -1 }},
		"pairs of nothing":  {"pairs", func(c *lab.Config) { c.Beside = "steady" }},
		"endless pairs":     {"pairs", func(c *lab.Config) { c.Beside, c.Pairs = "steady", 101 }},
		"negative pairs":    {"pairs", func(c *lab.Config) { c.Beside, c.Pairs = "steady", -1 }},
		"beside unknown":    {"beside", func(c *lab.Config) { c.Beside, c.Pairs = "flood", 2 }},
		"beside itself":     {"beside", func(c *lab.Config) { c.Scenario, c.Beside, c.Pairs = "all-lag", "all-lag", 2 }},
		"beside churn":      {"beside", func(c *lab.Config) { c.Scenario, c.Beside, c.Pairs = "churn", "churn", 2 }},
		"beside another's":  {"beside", func(c *lab.Config) { c.Beside, c.Pairs = "stampede", 2 }},
		"unknown carrier":   {"carrier", func(c *lab.Config) { c.Carrier = "pigeon" }},
		"unknown policy":    {"missing", func(c *lab.Config) { c.Carrier, c.Missing = "header", "stale" }},
		"policy of nothing": {"missing", func(c *lab.Config) { c.Missing = "fresh" }},
		"one instance":      {"instances", func(c *lab.Config) { c.Carrier, c.Instances = "cookie", 1 }},
		"implied instance":  {"instances", func(c *lab.Config) { c.Scenario, c.Instances = "lost-token", 1 }},
		"nobody to tell":    {"sessions", func(c *lab.Config) { c.Carrier, c.Sessions = "event", 1 }},
		"not carriable":     {"strategies", func(c *lab.Config) { c.Carrier, c.Strategies = "header", []string{"tidegate", "sticky"} }},
		"ours in memory":    {"strategies", func(c *lab.Config) { c.Scenario, c.Strategies = "lost-token", []string{"tidegate-memory"} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := usual()
			c.change(&cfg)
			var usage *lab.UsageError
			if err := cfg.Validate(); !errors.As(err, &usage) {
				t.Fatalf("got %v", err)
			}
			if usage.Flag != c.flag || usage.Problem == "" || usage.Next == "" {
				t.Errorf("got %+v, want flag %s", usage, c.flag)
			}
		})
	}
}

// Any scenario can be compared with a steady one, that one too.
func TestValidatePairs(t *testing.T) {
	t.Parallel()
	for _, s := range fault.All() {
		cfg := usual()
		cfg.Scenario, cfg.Beside, cfg.Pairs = s.Name, fault.Steady, 3
		if err := cfg.Validate(); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}

// A carrier makes requests overlap, and a scenario that needs clients has one.
func TestCarriersShapeTheLoad(t *testing.T) {
	t.Parallel()
	cfg := usual()
	if l := cfg.Load(); cfg.CarrierName() != "" || l.Parallel != 0 || l.Drops != 0 {
		t.Errorf("without a carrier: %q, %+v", cfg.CarrierName(), l)
	}
	cfg.Carrier = "event"
	if l := cfg.Load(); cfg.CarrierName() != "event" || l.Parallel == 0 || l.Drops != 0 {
		t.Errorf("events: %q, %+v", cfg.CarrierName(), l)
	}
	cfg.Scenario = "lost-token"
	if l := cfg.Load(); cfg.CarrierName() != "event" || l.Parallel == 0 || l.Drops == 0 {
		t.Errorf("events that are lost: %q, %+v", cfg.CarrierName(), l)
	}
	cfg.Carrier, cfg.Missing, cfg.Instances = "", "fresh", 2
	if cfg.CarrierName() != "header" || cfg.Validate() != nil || !cfg.Fresh() {
		t.Errorf("lost-token: %q, %v", cfg.CarrierName(), cfg.Validate())
	}
}

// What a scenario says of the load is part of it.
func TestScenariosShapeTheLoad(t *testing.T) {
	t.Parallel()
	cfg := usual()
	cfg.Strong = 0.25
	if l := cfg.Load(); l.WritesEnd != 0 || l.Witness || l.Strong != 0.25 {
		t.Errorf("steady: %+v", l)
	}
	cfg.Scenario = "idle"
	if l := cfg.Load(); l.WritesEnd != cfg.Duration/5 {
		t.Errorf("idle: the writes end at %v", l.WritesEnd)
	}
	cfg.Scenario = "budget"
	if l := cfg.Load(); l.Relaxed == 0 || len(l.Budgets) != 12 || l.ReadDeadline == 0 || cfg.Primary().Slots == 0 {
		t.Errorf("budget: %+v on a primary for %v", l, cfg.Primary())
	}
	cfg.PrimarySlots, cfg.PrimaryCost = 7, time.Millisecond
	if p := cfg.Primary(); p.Slots != 7 || p.Cost != time.Millisecond {
		t.Errorf("the flags are for nothing: %v", p)
	}
	cfg.Scenario = "ddl"
	if l := cfg.Load(); !l.Witness {
		t.Error("ddl: there is no witness")
	}
}
