package engine_test

import "fmt"

// counts is what happened in runs of the simulation.
type counts struct {
	reads, replica, unproven, hurried, opportunities, errors, writes, crashes, doubts, changed, promotions int
}

func (c *counts) add(o counts) {
	c.reads += o.reads
	c.replica += o.replica
	c.unproven += o.unproven
	c.hurried += o.hurried
	c.opportunities += o.opportunities
	c.errors += o.errors
	c.writes += o.writes
	c.crashes += o.crashes
	c.doubts += o.doubts
	c.changed += o.changed
	c.promotions += o.promotions
}

// share returns x as a part of the reads.
func (c *counts) share(x int) float64 { return float64(x) / float64(max(1, c.reads)) }

func (c *counts) String() string {
	return fmt.Sprintf("%d reads (%.1f %% of them while a live replica lacked what they needed), %.1f %% by replicas, %.2f %% unproven (%.2f %% for want of time, %.2f %% told of a changed history), "+
		"%d writes, %d of unknown outcome, %d crashes, %d promotions, %d failed reads", c.reads, 100*c.share(c.opportunities), 100*c.share(c.replica),
		100*c.share(c.unproven), 100*c.share(c.hurried), 100*c.share(c.changed), c.writes, c.doubts, c.crashes, c.promotions, c.errors)
}
