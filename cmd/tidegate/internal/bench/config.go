// Package bench measures what Tidegate costs, on a real primary with two
// streaming replicas that it starts and stops itself.
//
// Each room has one part of that:
//
//	pairs    two ways of doing one thing, side by side, beside a control
//	figure   what a measurement found, its target, its verdict, the report
//
// This package has the measurements and puts them together: [Measure] is one
// run of all of them.
package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Config says what to measure. Every field but PGBin must be set; the command's
// flags have the defaults.
type Config struct {
	// Figures are the names of what to measure.
	Figures []string
	// Pairs is the number of interleaved pairs of each run of a comparison.
	Pairs int
	// Runs is the number of runs of each comparison; their median counts.
	Runs int
	// Quick measures next to nothing, to see that everything runs: no verdict
	// rests on it.
	Quick bool
	// PGBin is the folder of the server programs; empty: where they usually are.
	PGBin string
}

// The length of a comparison that a verdict can rest on.
const (
	EnoughPairs = 10_000
	EnoughRuns  = 5
)

const (
	maxPairs = 1_000_000
	maxRuns  = 100
)

// UsageError says which flag is wrong and what to write instead.
type UsageError struct {
	Flag, Problem, Next string
}

func (e *UsageError) Error() string {
	return fmt.Sprintf("--%s: %s\nNext: %s", e.Flag, e.Problem, e.Next)
}

// Validate returns a *[UsageError] for the first field that makes no sense.
func (c *Config) Validate() error {
	for i, name := range c.Figures {
		if !slices.Contains(Names(), name) {
			return &UsageError{"figures", fmt.Sprintf("there is no figure %q", name), "choose from " + strings.Join(Names(), ",")}
		}
		if slices.Contains(c.Figures[:i], name) {
			return &UsageError{"figures", name + " is named twice", "name each one once"}
		}
	}
	switch {
	case len(c.Figures) == 0:
		return &UsageError{"figures", "there is none to measure", "choose from " + strings.Join(Names(), ",")}
	case c.Pairs < 2 || c.Pairs > maxPairs:
		return &UsageError{"pairs", fmt.Sprintf("%d is not from 2 to %d", c.Pairs, maxPairs), fmt.Sprintf("the default is %d, and no verdict rests on fewer", EnoughPairs)}
	case c.Runs < 1 || c.Runs > maxRuns:
		return &UsageError{"runs", fmt.Sprintf("%d is not from 1 to %d", c.Runs, maxRuns), fmt.Sprintf("the default is %d, and no verdict rests on fewer", EnoughRuns)}
	}
	return nil
}

// normal returns what is usual, or the quick version of it.
func normal[T any](c *Config, usual, quick T) T {
	if c.Quick {
		return quick
	}
	return usual
}

func (c *Config) pairs() int { return normal(c, c.Pairs, min(c.Pairs, 60)) }

func (c *Config) runs() int { return normal(c, c.Runs, min(c.Runs, 2)) }

// tooFew says why no verdict can rest on comparisons of this length, or nothing.
func (c *Config) tooFew(pairs int) string {
	switch {
	case c.Quick:
		return "measured quickly, which proves nothing"
	case pairs < EnoughPairs:
		return fmt.Sprintf("%d pairs are too few for a verdict", pairs)
	case c.Runs < EnoughRuns:
		return fmt.Sprintf("%d runs are too few for a verdict", c.Runs)
	}
	return ""
}

// settleTime bounds the wait until replicas have what a session needs and it
// reads there.
const settleTime = 10 * time.Second
