// Package report turns the records of a run into figures, a table, a line of
// JSON and a verdict.
package report

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
)

// Result is what a run of the lab found out. The names and the order of its
// fields are what --json prints, and other tools read them.
type Result struct {
	Engine        string  `json:"engine"`
	ServerVersion string  `json:"server_version"`
	Scenario      string  `json:"scenario"`
	Seed          uint64  `json:"seed"`
	DurationS     float64 `json:"duration_s"` // of each strategy
	Instances     int     `json:"instances"`
	Replicas      int     `json:"replicas"`
	// Carrier is how sessions travelled by HTTP, Missing what a known client without
	// a token got. Empty, and left out of --json, without HTTP.
	Carrier string `json:"carrier,omitempty"`
	Missing string `json:"missing,omitempty"`
	// PrimarySlots statements of the application, reads and writes, were served by the
	// primary at one time, each for PrimaryCostMs. Zero, and left out, without such a
	// limit.
	PrimarySlots  int       `json:"primary_slots,omitempty"`
	PrimaryCostMs float64   `json:"primary_cost_ms,omitempty"`
	Strategies    []Figures `json:"strategies"`
}

// Figures are the counts, times and costs of one strategy. Latencies are in
// microseconds and count from the moment that the strategy got the operation.
// Shares and latencies of nothing are 0.
type Figures struct {
	Name string `json:"name"`
	// Writes were acknowledged, Reads answered and checked.
	Writes int `json:"writes"`
	Reads  int `json:"reads"`
	// Opportunities are the reads in danger: see truth.Opportunities.
	Opportunities int `json:"opportunities"`
	// StaleReads lack an acknowledged write of their own session, BackwardsReads
	// show a row older than their session had seen it.
	StaleReads     int `json:"stale_reads"`
	BackwardsReads int `json:"backwards_reads"`
	// UnprovenReads were marked by the strategy itself.
	UnprovenReads int `json:"unproven_reads"`

	ReplicaReads int     `json:"replica_reads"`
	ReplicaShare float64 `json:"replica_share"` // of Reads
	// The reads after a write are each session's first read after its own write.
	ReadAfterWriteReplicaShare float64 `json:"read_after_write_replica_share"`
	ReadAfterWriteP50us        int64   `json:"read_after_write_p50_us"`     // 5 ms or more after it
	ReadAfterWriteNowP50us     int64   `json:"read_after_write_now_p50_us"` // at once

	Fallbacks int `json:"fallbacks"` // the primary answered, no replica could
	Waits     int `json:"waits"`     // the read was held until a node caught up
	// Shed counts reads that were refused: to protect the primary, or because nothing
	// could be proven. Those of a class that asks to be refused are not among them.
	Shed   int `json:"shed"`
	Errors int `json:"errors"` // of reads and writes, without the shed ones

	// The other latencies are of all other reads but the strong ones, and of the
	// writes.
	ReadP50us  int64 `json:"read_p50_us"`
	ReadP99us  int64 `json:"read_p99_us"`
	WriteP50us int64 `json:"write_p50_us"`

	// CPU time of the servers while the load ran; all replicas together.
	PrimaryCPUs float64 `json:"primary_cpu_s"`
	ReplicaCPUs float64 `json:"replica_cpu_s"`

	// ReadErrorsBeforeRow and ReadErrorsAfterRow split the reads among the errors
	// by whether a row had been delivered; WriteErrors are the rest.
	ReadErrorsBeforeRow int `json:"read_errors_before_row"`
	ReadErrorsAfterRow  int `json:"read_errors_after_row"`
	WriteErrors         int `json:"write_errors"`

	WriteP99us int64 `json:"write_p99_us"`
	// WriteStallUs is the longest time in which writes were waiting and none was
	// acknowledged.
	WriteStallUs int64 `json:"write_stall_us"`

	// PrimaryReadsBy and UnprovenBy count the reads that the primary answered, and
	// those that were marked unproven, by the strategy's reason.
	PrimaryReadsBy Reasons `json:"primary_reads_by_reason"`
	UnprovenBy     Reasons `json:"unproven_reads_by_reason"`

	// UnpromptedWaitsMax is the most waits of one session from one restart of a
	// server to the next that the session did nothing to cause. Without a restart
	// the whole run counts. The first request of a session that is known and has no
	// token yet catches up, and a wait of that counts here.
	UnpromptedWaitsMax int `json:"unprompted_waits_max"`

	// StrongReads asked for the newest answer; CausalReplicaShare is the replicas'
	// share of all others.
	StrongReads        int     `json:"strong_reads"`
	CausalReplicaShare float64 `json:"causal_replica_share"`

	// Carried is there if the requests went over HTTP.
	Carried *Carriage `json:"carried,omitempty"`

	ReadP95us  int64 `json:"read_p95_us"`
	WriteP95us int64 `json:"write_p95_us"`

	Overload

	// BudgetBreaches are answers to relaxed reads, not marked stale, that are older than
	// their budget; BoundBreaches are answers older than their strategy said. Both are
	// judged by the lab's own clock: see check.Ages.
	BudgetBreaches int `json:"budget_breaches"`
	BoundBreaches  int `json:"bound_breaches"`
	// RecoveryConflicts counts queries that replicas canceled because they were in the way of
	// what had to be replayed, whoever ran them.
	RecoveryConflicts int `json:"recovery_conflicts"`
	// RetriedReads were answered after a node had failed before the first row.
	RetriedReads int `json:"retried_reads"`
	Recovery
	// Backfill is there if a bulk job ran; its fields are among these.
	*Backfill

	// Classes are there if reads were relaxed, one for each budget.
	Classes []Class `json:"classes,omitempty"`

	// What follows is for people, not for --json.

	// Held says that the strategy holds writes back until replicas have them: few
	// reads in danger are then its own doing.
	Held bool `json:"-"`
	// UnrealReads hold rows that cannot be: the lab or a server is broken.
	UnrealReads int `json:"-"`
	// LateP99us is how late operations began, Unsent how many never did because
	// the sessions had too many ahead of them.
	LateP99us int64 `json:"-"`
	Unsent    int   `json:"-"`
	// FirstError and FirstViolation are the earliest of their kind, or empty.
	FirstError     string `json:"-"`
	FirstViolation string `json:"-"`
}

// Reasons counts reads by the word for their reason. Nil has none.
type Reasons map[string]int

// add counts one more. A strategy without a word for it has "none".
func (r *Reasons) add(reason string) {
	if *r == nil {
		*r = Reasons{}
	}
	if reason == "" {
		reason = "none"
	}
	(*r)[reason]++
}

// String lists the reasons, the commonest first.
func (r Reasons) String() string {
	words := slices.SortedFunc(maps.Keys(r), func(a, b string) int {
		return cmp.Or(cmp.Compare(r[b], r[a]), cmp.Compare(a, b))
	})
	for i, w := range words {
		words[i] = thousands(r[w]) + " " + w
	}
	return strings.Join(words, ", ")
}

// MarshalJSON implements json.Marshaler: no reasons are an empty object.
func (r Reasons) MarshalJSON() ([]byte, error) {
	if r == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(map[string]int(r))
}

// JSON writes the result as one object on one line.
func (r *Result) JSON(w io.Writer) error {
	return json.NewEncoder(w).Encode(r)
}
