package engine_test

import (
	"fmt"
	"reflect"
	"strings"
)

// counts is what happened in runs of the simulation. Its fields are exported for
// encoding/json: shards report them.
type counts struct {
	Runs int
	// Reads are reads that were routed and checked. Of them:
	Reads, Opportunities, Replica, Unproven, Hurried, Changed int
	// Requests and what happened in them.
	Requests, Nested, Statements, Transactions, Writes, Doubts, Heard int
	// What went wrong for reads and requests.
	Failed, Cancelled, Broken, Late, Dropped, Early int
	// What happened to the cluster.
	Crashes, Restarts, Promotions int
	// What happened to the store, to sessions that it keeps, and to instances.
	Kept, Evicted, StoreFailovers, Ended int
}

func (c *counts) add(o counts) {
	to, from := reflect.ValueOf(c).Elem(), reflect.ValueOf(o)
	for i := range to.NumField() {
		to.Field(i).SetInt(to.Field(i).Int() + from.Field(i).Int())
	}
}

// share returns x as a part of the reads.
func (c *counts) share(x int) float64 { return float64(x) / float64(max(1, c.Reads)) }

func (c *counts) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d runs, %d reads: %.1f %% of them while a live replica lacked what they needed, %.1f %% by replicas, ",
		c.Runs, c.Reads, 100*c.share(c.Opportunities), 100*c.share(c.Replica))
	fmt.Fprintf(&b, "%.2f %% unproven (%.2f %% for want of time, %.2f %% told of a changed history); ", 100*c.share(c.Unproven), 100*c.share(c.Hurried), 100*c.share(c.Changed))
	fmt.Fprintf(&b, "%d requests: %d nested reads, %d more statements on held connections, %d transactions, %d writes, %d of unknown outcome, %d events of others; ",
		c.Requests, c.Nested, c.Statements, c.Transactions, c.Writes, c.Doubts, c.Heard)
	fmt.Fprintf(&b, "%d reads failed, %d contexts cancelled, %d connections broken in use, responses: %d late, %d dropped, %d before their rows' end; ",
		c.Failed, c.Cancelled, c.Broken, c.Late, c.Dropped, c.Early)
	fmt.Fprintf(&b, "%d crashes, %d restarts of the primary, %d promotions", c.Crashes, c.Restarts, c.Promotions)
	if c.Kept > 0 {
		fmt.Fprintf(&b, "; %d responses whose session a store kept, %d instances ended before, %d entries evicted, %d failovers of the store",
			c.Kept, c.Ended, c.Evicted, c.StoreFailovers)
	}
	return b.String()
}
