package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/bench"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/bench/figure"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/report"
)

type benchCommand struct {
	Figures names  `placeholder:"NAMES" help:"Measure only these figures; all without it."`
	Pairs   int    `default:"10000" help:"Interleaved pairs of each run of a comparison. No verdict rests on fewer than 10000."`
	Runs    int    `default:"5" help:"Runs of each comparison; their median counts. No verdict rests on fewer than 5."`
	Quick   bool   `help:"See in a minute whether everything runs; no verdict rests on it."`
	JSON    bool   `name:"json" help:"Print one JSON object and nothing else."`
	PGBin   string `name:"pg-bin" placeholder:"DIR" help:"Folder of PostgreSQL's server programs, if not in TIDEGATE_PG_BIN, PATH or a usual folder."`
}

// Help is what tidegate bench --help adds.
func (benchCommand) Help() string {
	var b strings.Builder
	b.WriteString("Starts a primary with two streaming replicas in a temporary folder, measures what routing costs\n" +
		"on them, and stops them. Costs are compared pair by pair on the same connection, beside a control:\n" +
		"the direct way against itself. Where that is not 1, within a hundredth, the figure says nothing.\n\nFigures:\n")
	for _, f := range bench.About() {
		fmt.Fprintf(&b, "  %-23s %s\n", f[0], f[1])
	}
	b.WriteString("\nExit status: 0 no figure missed its target (see the verdicts for what is inconclusive);\n" +
		"1 a figure did; 2 something could not be measured.\n")
	return b.String()
}

func (c *benchCommand) config() bench.Config {
	cfg := bench.Config{Figures: c.Figures, Pairs: c.Pairs, Runs: c.Runs, Quick: c.Quick, PGBin: c.PGBin}
	if cfg.Figures == nil {
		cfg.Figures = bench.Names()
	}
	return cfg
}

// Run measures and prints the figures.
func (c *benchCommand) Run(std streams) error {
	cfg := c.config()
	if err := cfg.Validate(); err != nil {
		return err
	}
	var result *figure.Result
	interrupted, err := attended(std, func(ctx context.Context, progress *report.Progress) (err error) {
		result, err = bench.Measure(ctx, cfg, progress)
		return err
	})
	if err != nil && !interrupted {
		return err
	}
	if interrupted {
		fmt.Fprintln(std.err, "interrupted: the figures are not complete")
	}
	if c.JSON {
		if err := result.JSON(std.out); err != nil {
			return err
		}
	} else {
		result.Table(std.out)
		fmt.Fprintf(std.out, "\n%s\n", result.Line())
	}
	switch {
	case err != nil || result.With(figure.Broken) > 0:
		return status(exitUsage)
	case result.With(figure.Failed) > 0:
		return status(exitFailed)
	}
	return nil
}
