package report

import (
	"fmt"
	"io"
)

// Backfill is what a bulk job did beside the load.
type Backfill struct {
	// Rows were written in so many Batches, within Seconds from the first to the last.
	Rows    int     `json:"backfill_rows"`
	Batches int     `json:"backfill_batches"`
	Seconds float64 `json:"backfill_s"`
	// ThrottleWaits counts the batches that had to wait for replicas, ThrottleWaitS is
	// for how long in all. Zero without a throttle.
	ThrottleWaits int     `json:"throttle_waits"`
	ThrottleWaitS float64 `json:"throttle_wait_s"`
}

// backfillNote says how the job fared.
func (f *Figures) backfillNote(w io.Writer) {
	if b := f.Backfill; b != nil {
		fmt.Fprintf(w, "\n%s: the bulk job wrote %s rows in %s batches and %.1f s; %s of them waited for replicas, for %.1f s.\n",
			f.Name, thousands(b.Rows), thousands(b.Batches), b.Seconds, thousands(b.ThrottleWaits), b.ThrottleWaitS)
	}
}
