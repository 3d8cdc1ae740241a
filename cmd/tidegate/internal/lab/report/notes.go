package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// lateEnough is how late the load may begin without a remark: less is what
// timers and a busy machine take.
const lateEnough = 50_000

// unproven explains the reasons of reads that were marked unproven.
var unproven = map[string]string{
	"behind":          "no replica had it, and the primary was not proven in time to show what the session had seen on one",
	"predicted":       "no replica was expected to have it in time, and the primary was not proven in time to show what the session had seen on one",
	"no-replica":      "no replica was in reach, and so nobody who could prove that the primary shows what the session had seen on one",
	"replica-failed":  "replicas failed, and the primary was not proven in time to show what the session had seen on one",
	"strong":          "the primary was not proven in time to show what the session had seen on a replica",
	"history-changed": "what the session had to see belongs to a history that is gone",
}

// notes says in sentences what a reader must know besides the tables.
func (f *Figures) notes(w io.Writer) {
	if f.LateP99us > lateEnough || f.Unsent > 0 && f.Unsent > (f.Reads+f.Writes)/100 {
		fmt.Fprintf(w, "\n%s could not keep up: 1 %% of the operations began more than %d ms late and %s never began; latencies hide that.\n",
			f.Name, f.LateP99us/1000, thousands(f.Unsent))
	}
	if f.Reads > f.ReplicaReads && f.ReplicaReads > 0 {
		fmt.Fprintf(w, "\n%s's reads on the primary, by reason: %v.\n", f.Name, f.PrimaryReadsBy)
	}
	if f.StrongReads > 0 {
		fmt.Fprintf(w, "\n%s: %s strong reads; of all others replicas answered %.1f %%.\n", f.Name, thousands(f.StrongReads), 100*f.CausalReplicaShare)
	}
	if f.UnpromptedWaitsMax > 0 {
		fmt.Fprintf(w, "\n%s let no session wait more than %s between two restarts without a write or a read on the primary before.\n", f.Name, often(f.UnpromptedWaitsMax))
	}
	f.carriageNotes(w)
	f.recoveryNotes(w)
	f.backfillNote(w)
	f.unprovenNotes(w)
	if f.Errors > 0 {
		fmt.Fprintf(w, "\n%s's errors: %s reads before their first row, %s reads after it, %s writes.\n",
			f.Name, thousands(f.ReadErrorsBeforeRow), thousands(f.ReadErrorsAfterRow), thousands(f.WriteErrors))
	}
	if f.FirstError != "" {
		fmt.Fprintf(w, "%s's first error: %s\n", f.Name, f.FirstError)
	}
}

// carriageNotes tells of tokens and events that did not arrive: a client that keeps
// the rules and a lab that is fast enough have none.
func (f *Figures) carriageNotes(w io.Writer) {
	if f.Carried == nil {
		return
	}
	if n := f.Carried.Late; n > 0 {
		fmt.Fprintf(w, "\n%s: %s responses were too early for what their session came to require.\n", f.Name, thousands(int(n)))
	}
	if n := f.Carried.Undelivered; n > 0 {
		fmt.Fprintf(w, "\n%s: %s events were lost, because their sessions had too many to read for.\n", f.Name, thousands(int(n)))
	}
}

func (f *Figures) unprovenNotes(w io.Writer) {
	if len(f.UnprovenBy) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s's unproven reads, by reason: %v.\n", f.Name, f.UnprovenBy)
	for _, reason := range slices.Sorted(maps.Keys(f.UnprovenBy)) {
		if why := unproven[reason]; why != "" {
			fmt.Fprintf(w, "  %s: %s.\n", reason, why)
		}
	}
}

// often writes a number of times.
func often(n int) string {
	if n == 1 {
		return "once"
	}
	return thousands(n) + " times"
}
