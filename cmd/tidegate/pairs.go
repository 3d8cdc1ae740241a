package main

import (
	"context"
	"fmt"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/fault"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/report"
)

// pairsHelp says how a scenario is compared with another one.
const pairsHelp = "\nWhat a scenario costs (--pairs N, --beside NAME): each round runs the scenario, a steady run under the\n" +
	"same load and with the same capacity, and that one once more as a control; every other round the other\n" +
	"way round. The ratios of write and read p95 and p99 are medians of the rounds, with their spread, beside\n" +
	"those of the control, which differ from 1 only by what the machine does. It takes 3 x N x --duration\n" +
	"for each strategy, and a broken promise in any run decides the exit status.\n"

// runPairs compares the scenario with another one and prints what it found.
func (c *labCommand) runPairs(std streams, cfg *lab.Config) error {
	var paired *report.Paired
	interrupted, err := attended(std, func(ctx context.Context, progress *report.Progress) (err error) {
		paired, err = lab.RunPairs(ctx, *cfg, progress)
		return err
	})
	if err != nil && (!interrupted || paired == nil) {
		return hinted(cfg, err)
	}
	scenario, _ := fault.Find(cfg.Scenario)
	beside, _ := fault.Find(cfg.Beside)
	beside = beside.Under(scenario)
	terms := termsOf(&beside, cfg, interrupted)
	terms.Forgets = false // no client loses its tokens there
	verdict := report.JudgePairs(paired, termsOf(&scenario, cfg, interrupted), terms)
	switch {
	case !c.JSON:
		fmt.Fprintf(std.out, "Scenario %s beside %s, %d rounds: %v.\n", paired.Scenario, paired.Beside, paired.Pairs, cfg.Load())
		if p := cfg.Primary(); p.Cost > 0 {
			fmt.Fprintf(std.out, "The primary serves %v.\n", p)
		}
		paired.Table(std.out)
		fmt.Fprintf(std.out, "\n%s\n", verdict.Line)
	case !interrupted:
		if err := paired.JSON(std.out); err != nil {
			return err
		}
	}
	return c.end(std, &verdict)
}
