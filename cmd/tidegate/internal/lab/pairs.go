package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/fault"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/report"
)

// RunPairs compares the scenario with another one, strategy by strategy: each of the
// rounds runs the scenario, the other one and the other one once more, all with the
// servers and the load of the scenario. The run in the middle is what both others are
// divided by, so that the second ratio is of what does not differ: it shows what the
// machine does by itself. Every other round goes the other way round, so that a machine
// that becomes slower favours neither.
//
// Rounds have seeds of their own, one after the other; the three runs of a round have
// the same. Errors are those of [Run], and so is what comes with them.
func RunPairs(ctx context.Context, cfg Config, progress *report.Progress) (paired *report.Paired, err error) {
	other, err := fault.Find(cfg.Beside)
	if err != nil {
		return nil, err
	}
	r, err := newRunner(cfg, progress)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.leave()) }()
	scenario, beside := r.scenario, other.Under(r.scenario)
	progress.Say("beside %s: %s", beside.Name, beside.About)
	paired = &report.Paired{Scenario: scenario.Name, Beside: beside.Name, Pairs: cfg.Pairs}
	defer func() { paired.Compare() }()
	for _, name := range cfg.Strategies {
		for round := 1; round <= cfg.Pairs; round++ {
			r.cfg.Seed = cfg.Seed + uint64(round-1)
			for _, part := range report.Order(round) {
				r.scenario = beside
				if part == report.PartScenario {
					r.scenario = scenario
				}
				r.label = fmt.Sprintf("round %d of %d, %s, ", round, cfg.Pairs, r.scenario.Name)
				run := report.PairedRun{Round: round, Part: part, Result: *r.result()}
				err := r.add(ctx, &run.Result, name)
				if len(run.Strategies) > 0 {
					paired.Runs = append(paired.Runs, run)
				}
				if err != nil {
					return paired, fmt.Errorf("round %d, %s: %w", round, r.scenario.Name, err)
				}
			}
		}
	}
	return paired, nil
}

// validatePairs returns a *[UsageError] for what cannot be compared.
func (c *Config) validatePairs() error {
	bad := func(flag, next, problem string, args ...any) error {
		return &UsageError{flag, fmt.Sprintf(problem, args...), next}
	}
	if c.Beside == "" && c.Pairs == 0 {
		return nil
	}
	if c.Pairs < 1 || c.Pairs > maxPairs {
		return bad("pairs", "give a number of rounds, or leave out --pairs and --beside", "%d is not from 1 to %d", c.Pairs, maxPairs)
	}
	var portable []string
	for _, s := range fault.All() {
		if s.Portable() && (s.Name != c.Scenario || s.Name == fault.Steady) {
			portable = append(portable, s.Name)
		}
	}
	choose := "choose one of " + strings.Join(portable, ", ")
	switch other, err := fault.Find(c.Beside); {
	case err != nil:
		return bad("beside", choose, "%v", err)
	case !other.Portable():
		return bad("beside", choose, "%s needs servers or a load of its own, and would not be compared with the same", c.Beside)
	case c.Beside == c.Scenario && c.Scenario != fault.Steady:
		return bad("beside", choose, "%s would be compared with itself", c.Beside)
	}
	return nil
}
