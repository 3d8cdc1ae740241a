package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/carrier"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/fault"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/report"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
)

type labCommand struct {
	Scenario      string        `default:"lag-spike" help:"What goes wrong, by its name above."`
	Strategies    names         `placeholder:"NAMES" help:"What to compare, one after another, by the names above; or all: ${strategies}."`
	Carrier       string        `placeholder:"NAME" help:"Send the requests over HTTP, through a balancer to the instances, and carry tidegate's sessions so: ${carriers}."`
	Missing       string        `default:"catch-up" help:"What a known client without a token gets: catch-up, it sees all that is committed by now; or fresh, it is taken for somebody new, and the run shows what that breaks."`
	Instances     int           `default:"2" help:"Application instances; sessions hop between them."`
	Sessions      *int          `help:"Sessions, each a user who writes one row and reads all; 32, or more in scenarios that need them."`
	Rate          *float64      `help:"Reads per second of all sessions together, whatever the answers take; 1000, or less in scenarios that need it."`
	Writes        float64       `default:"0.2" help:"Part of the operations that are writes, 0 to 0.5."`
	Strong        float64       `default:"0" help:"Part of the reads that must have the newest answer, 0 to 1."`
	Replicas      int           `default:"2" help:"Streaming replicas."`
	Duration      time.Duration `default:"20s" help:"How long each strategy serves."`
	Seed          uint64        `default:"1" help:"The same seed makes the same load."`
	Wait          time.Duration `default:"0s" help:"How long tidegate's reads may wait for a replica; 0s is the library's default."`
	ApplyDelay    time.Duration `default:"25ms" help:"How late the replicas apply in slow-standby-apply."`
	PrimarySlots  int           `default:"0" help:"How many statements the primary serves at once, each for --primary-cost; 0 is what the scenario says."`
	PrimaryCost   time.Duration `default:"0s" help:"How long each of them holds its slot; 0s is what the scenario says."`
	ReplicaCost   time.Duration `default:"0s" help:"How long a replica takes for each read; 0s is what the scenario says."`
	FallbackReads int           `default:"0" help:"How many of an instance's reads tidegate lets be on the primary for want of a replica; 0 is the library's default."`
	Pairs         *int          `placeholder:"N" help:"Compare the scenario with another one: N rounds of three runs for each strategy."`
	Beside        string        `placeholder:"NAME" help:"The scenario to compare with, under the load and on the servers of --scenario; with --pairs it is steady if nobody says."`
	JSON          bool          `name:"json" help:"Print one JSON object and nothing else."`
	PGBin         string        `name:"pg-bin" placeholder:"DIR" help:"Folder of PostgreSQL's server programs, if not in TIDEGATE_PG_BIN, PATH or a usual folder."`
	KeepLogs      string        `placeholder:"DIR" help:"Copy the servers' logs to this folder."`
}

// Help is what tidegate lab --help adds.
func (labCommand) Help() string {
	var b strings.Builder
	b.WriteString("Starts a primary with streaming replicas in a temporary folder, lets each strategy\n" +
		"serve the same load while the scenario goes on, checks every answer, and stops the cluster.\n\nScenarios:\n")
	for _, s := range fault.All() {
		fmt.Fprintf(&b, "  %-18s %s\n", s.Name, s.About)
	}
	b.WriteString("\nStrategies:\n")
	for _, s := range strategy.All() {
		fmt.Fprintf(&b, "  %-18s %s\n", s.Name(), s.About())
	}
	b.WriteString("\nOther ways to carry tidegate's sessions; they stay on one instance:\n")
	for _, s := range strategy.Carriers() {
		fmt.Fprintf(&b, "  %-18s %s\n", s.Name(), s.About())
	}
	fmt.Fprintf(&b, "\nWithout --strategies a run compares %s; these scenarios are for others:\n", strings.Join(strategy.Usual(), " and "))
	for _, s := range fault.All() {
		if s.Strategies != nil {
			fmt.Fprintf(&b, "  %-18s %s\n", s.Name, strings.Join(s.Strategies, ", "))
		}
	}
	b.WriteString("\nVariants of tidegate with another limit of what falls back to the primary:\n")
	for _, s := range strategy.Limits() {
		fmt.Fprintf(&b, "  %-18s %s\n", s.Name(), s.About())
	}
	b.WriteString("\nVariants of tidegate that hold bulk jobs back:\n")
	for _, s := range strategy.Throttles() {
		fmt.Fprintf(&b, "  %-18s %s\n", s.Name(), s.About())
	}
	b.WriteString(capacityHelp())
	b.WriteString(pairsHelp)
	b.WriteString("\nCarriers (--carrier):\n")
	for _, c := range carrier.All() {
		fmt.Fprintf(&b, "  %-18s %s\n", c.Name, c.About)
	}
	fmt.Fprintf(&b, "With one, each instance is an HTTP server with its own pools and middleware, and each session an\n"+
		"HTTP client, whose requests overlap and go to the instances in turn. The strategies are then\n"+
		"%s; those without sessions take the same way, and nothing is carried.\n"+
		"lost-token is by header if no carrier is named.\n", strings.Join(strategy.CarriableNames(), ", "))
	b.WriteString("\nExit status: 0 tidegate broke no promise and had no error that the scenario is no reason for;\n" +
		"1 it did; 2 the run says nothing. With --missing fresh tidegate's sessions miss what they knew once\n" +
		"their client has lost its tokens: 0 then means that the run shows it, 2 that it shows nothing, and\n" +
		"1 that a promise was broken for which no lost token is the reason.\n")
	return b.String()
}

func labVars() kong.Vars {
	return kong.Vars{
		"strategies": strings.Join(strategy.Names(), ", "),
		"carriers":   strings.Join(carrier.Names(), ", "),
	}
}

func (c *labCommand) config() lab.Config {
	cfg := lab.Config{
		Scenario: c.Scenario, Carrier: c.Carrier, Missing: c.Missing,
		Instances: c.Instances, Sessions: c.sessions(), Rate: c.rate(), Writes: c.Writes,
		Replicas: c.Replicas, Duration: c.Duration, Seed: c.Seed,
		PrimarySlots: c.PrimarySlots, PrimaryCost: c.PrimaryCost, ReplicaCost: c.ReplicaCost, FallbackReads: c.FallbackReads,
		Strong: c.Strong, ApplyDelay: c.ApplyDelay, Wait: c.Wait, PGBin: c.PGBin, KeepLogs: c.KeepLogs,
	}
	cfg.Beside = c.Beside
	if c.Pairs != nil {
		cfg.Pairs, cfg.Beside = *c.Pairs, cmp.Or(c.Beside, fault.Steady)
	}
	cfg.Strategies = c.strategies(cfg.CarrierName() != "")
	return cfg
}

// strategies are the ones that were named, or else those that the scenario is
// for, and with a carrier those of them that it is for as well.
func (c *labCommand) strategies(carried bool) []string {
	switch scenario, err := fault.Find(c.Scenario); {
	case len(c.Strategies) == 1 && c.Strategies[0] == "all" && carried:
		return strategy.CarriableNames()
	case len(c.Strategies) == 1 && c.Strategies[0] == "all":
		return strategy.Names()
	case c.Strategies != nil:
		return c.Strategies
	case err == nil && scenario.Strategies != nil && carried:
		return slices.DeleteFunc(slices.Clone(scenario.Strategies), func(name string) bool {
			return !slices.Contains(strategy.CarriableNames(), name)
		})
	case err == nil && scenario.Strategies != nil:
		return scenario.Strategies
	}
	return strategy.Usual()
}

// Run runs the lab and prints what it found.
func (c *labCommand) Run(std streams) error {
	cfg := c.config()
	if err := cfg.Validate(); err != nil {
		return err
	}
	if cfg.Pairs > 0 {
		return c.runPairs(std, &cfg)
	}
	var result *report.Result
	interrupted, err := attended(std, func(ctx context.Context, progress *report.Progress) (err error) {
		result, err = lab.Run(ctx, cfg, progress)
		return err
	})
	if err != nil && !interrupted {
		return hinted(&cfg, err)
	}
	verdict := report.Judge(result, terms(&cfg, interrupted))
	switch {
	case !c.JSON:
		c.print(std, result, &verdict)
	case !interrupted:
		if err := result.JSON(std.out); err != nil {
			return err
		}
	}
	return c.end(std, &verdict)
}

// end says the verdict where the output does not, and makes it the exit status.
func (c *labCommand) end(std streams, verdict *report.Verdict) error {
	if c.JSON && verdict.Status != exitOK {
		fmt.Fprintln(std.err, verdict.Line)
	}
	if verdict.Status != exitOK {
		return status(verdict.Status)
	}
	return nil
}

func (c *labCommand) print(std streams, result *report.Result, verdict *report.Verdict) {
	if len(result.Strategies) > 0 {
		cfg := c.config()
		fmt.Fprintf(std.out, "Scenario %s on PostgreSQL %s with %d replicas: %v, seed %d.\n",
			result.Scenario, result.ServerVersion, result.Replicas, cfg.Load(), result.Seed)
		if p := cfg.Primary(); p.Cost > 0 {
			fmt.Fprintf(std.out, "The primary serves %v.\n", p)
		}
		if result.Carrier != "" {
			fmt.Fprintf(std.out, "Requests by HTTP through a balancer, sessions carried by %s; a known client without a token: %s.\n",
				result.Carrier, result.Missing)
		}
		result.Table(std.out)
	}
	fmt.Fprintf(std.out, "\n%s\n", verdict.Line)
}

// terms are what the scenario asks of a run.
func terms(cfg *lab.Config, interrupted bool) report.Terms {
	s, _ := fault.Find(cfg.Scenario)
	return termsOf(&s, cfg, interrupted)
}

func termsOf(s *fault.Scenario, cfg *lab.Config, interrupted bool) report.Terms {
	return report.Terms{
		Danger: true, Interrupted: interrupted, Forgets: cfg.Fresh(),
		Opportunities: s.Wanted(cfg.Duration), Errors: s.Errors, Hangs: s.Hangs,
		Sheds: s.Sheds || cfg.PrimarySlots > 0, Conflicts: s.Conflicts,
	}
}

// hinted adds what to do next to an error that does not say it.
func hinted(cfg *lab.Config, err error) error {
	var usage *lab.UsageError
	switch {
	case errors.Is(err, lab.ErrNoServer), errors.As(err, &usage):
		return err
	case cfg.KeepLogs != "":
		return fmt.Errorf("%w\nNext: look at the servers' logs in %s", err, cfg.KeepLogs)
	}
	return fmt.Errorf("%w\nNext: run again with --keep-logs DIR and look at the servers' logs there", err)
}
