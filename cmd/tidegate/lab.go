package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/fault"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/report"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
)

type labCommand struct {
	Scenario   string        `default:"lag-spike" help:"What goes wrong: ${scenarios}."`
	Strategies []string      `default:"${strategies}" sep:"," placeholder:"NAMES" help:"What to compare, one after another: ${strategies}."`
	Instances  int           `default:"2" help:"Application instances; sessions hop between them."`
	Sessions   int           `default:"32" help:"Sessions, each a user who writes one row and reads all."`
	Rate       float64       `default:"1000" help:"Reads per second of all sessions together, whatever the answers take."`
	Writes     float64       `default:"0.2" help:"Part of the operations that are writes, 0 to 0.5."`
	Replicas   int           `default:"2" help:"Streaming replicas."`
	Duration   time.Duration `default:"20s" help:"How long each strategy serves."`
	Seed       uint64        `default:"1" help:"The same seed makes the same load."`
	Wait       time.Duration `default:"0s" help:"How long tidegate's reads may wait for a replica; 0s is the library's default."`
	JSON       bool          `name:"json" help:"Print one JSON object and nothing else."`
	PGBin      string        `name:"pg-bin" placeholder:"DIR" help:"Folder of PostgreSQL's server programs, if not in TIDEGATE_PG_BIN, PATH or a usual folder."`
	KeepLogs   string        `placeholder:"DIR" help:"Copy the servers' logs to this folder."`
}

// Help is what tidegate lab --help adds.
func (labCommand) Help() string {
	var b strings.Builder
	b.WriteString("Starts a primary with streaming replicas in a temporary folder, lets each strategy\n" +
		"serve the same load while the scenario goes on, checks every answer, and stops the cluster.\n\nScenarios:\n")
	for _, s := range fault.All() {
		fmt.Fprintf(&b, "  %-14s %s\n", s.Name, s.About)
	}
	b.WriteString("\nStrategies:\n")
	for _, s := range strategy.All() {
		fmt.Fprintf(&b, "  %-14s %s\n", s.Name(), s.About())
	}
	b.WriteString("\nExit status: 0 tidegate has no violation; 1 it has; 2 the run says nothing.\n")
	return b.String()
}

func labVars() kong.Vars {
	return kong.Vars{
		"scenarios":  strings.Join(fault.Names(), ", "),
		"strategies": strings.Join(strategy.Names(), ","),
	}
}

func (c *labCommand) config() lab.Config {
	return lab.Config{
		Scenario: c.Scenario, Strategies: c.Strategies,
		Instances: c.Instances, Sessions: c.Sessions, Rate: c.Rate, Writes: c.Writes,
		Replicas: c.Replicas, Duration: c.Duration, Seed: c.Seed,
		Wait: c.Wait, PGBin: c.PGBin, KeepLogs: c.KeepLogs,
	}
}

// Run runs the lab and prints what it found.
func (c *labCommand) Run(std streams) error {
	cfg := c.config()
	if err := cfg.Validate(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// A second signal ends the program at once. The next run then removes what
	// this one leaves behind.
	context.AfterFunc(ctx, stop)

	progress := report.NewProgress(std.err)
	result, err := lab.Run(ctx, cfg, progress)
	progress.Clear()
	interrupted := ctx.Err() != nil
	if err != nil && !interrupted {
		return hinted(err)
	}
	verdict := report.Judge(result, wanted(&cfg), interrupted)
	switch {
	case !c.JSON:
		c.print(std, result, &verdict)
	case !interrupted:
		if err := result.JSON(std.out); err != nil {
			return err
		}
	}
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
		result.Table(std.out)
	}
	fmt.Fprintf(std.out, "\n%s\n", verdict.Line)
}

// wanted is how many reads must be in danger for the run to say anything.
func wanted(cfg *lab.Config) int {
	scenario, err := fault.Find(cfg.Scenario)
	if err != nil {
		return 0
	}
	return scenario.Wanted(cfg.Duration)
}

// hinted adds what to do next to an error that does not say it.
func hinted(err error) error {
	if errors.Is(err, lab.ErrNoServer) {
		return err
	}
	return fmt.Errorf("%w\nNext: run again with --keep-logs DIR and look at the servers' logs there", err)
}
