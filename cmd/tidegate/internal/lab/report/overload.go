package report

import "github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"

// Overload is what became of reads for which neither a replica nor the primary had
// room.
type Overload struct {
	// StaleMarked counts answers that the strategy declared to be stale.
	StaleMarked int `json:"stale_marked"`
	// ShedUntyped and ShedLate count reads among the Shed whose error did not say by its
	// type what it is and what to do, and those that had it after their deadline.
	ShedUntyped int `json:"shed_untyped"`
	ShedLate    int `json:"shed_late"`
	// LimiterWaitP99us is of the reads that queued for the primary, whatever came of it.
	LimiterWaitP99us int64 `json:"limiter_wait_p99_us"`
}

// shed counts a read that was refused.
func (f *Figures) shed(op *record.Op) {
	if asked(op) {
		return
	}
	f.Shed++
	count(&f.ShedUntyped, !op.Answer.Typed)
	count(&f.ShedLate, op.Latency() > op.Deadline)
}

// asked reports whether a read was refused because its class asks for that where its
// budget cannot be kept.
func asked(op *record.Op) bool {
	return op.Budget != nil && op.Budget.OnBreach == record.Fail && op.Answer.NotFresh
}
