package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// Recovery is how a strategy left replicas in trouble, and came back to them.
type Recovery struct {
	// ReadsCutOff counts reads among the errors that had no answer before their deadline
	// and that nobody could know to be in vain: they began before a replica got into
	// trouble, or within one look after it (see oneLook).
	ReadsCutOff int `json:"reads_cut_off"`
	// Ejections counts how often an instance of tidegate left a replica out.
	Ejections int `json:"ejections"`
	// ReturnMs is how long after the end of a fault the replicas that had it answered
	// nine tenths again of their share of the reads, in a window of 250 ms; of several
	// faults the longest. Their share is what they had before the first fault, and at most
	// what it would be if all replicas had the same: sessions stay where they are, and some
	// replica has more by chance. -1 means not before the end of the run, or the next
	// fault; 0, and left out, that there was no fault with an end.
	ReturnMs int64 `json:"return_ms,omitempty"`
}

const (
	// oneLook is how long a server that hangs can go unnoticed at most: the time to the
	// next look, and that look's own patience, by the library's defaults.
	oneLook = 1100 * time.Millisecond
	// returnWindow and returnShare are what ReturnMs is measured with.
	returnWindow = 250 * time.Millisecond
	returnShare  = 0.9
)

func measureRecovery(log *record.Log) (r Recovery) {
	faults := log.Faults()
	for _, ops := range log.Sessions() {
		for i := range ops {
			count(&r.ReadsCutOff, cutOff(&ops[i], faults))
		}
	}
	r.ReturnMs = returned(log.Sessions(), faults)
	return r
}

// cutOff reports whether a read failed at its deadline because a server got into trouble
// before anybody could know.
func cutOff(op *record.Op, faults []record.Fault) bool {
	return op.Kind == record.Read && errors.Is(op.Err, context.DeadlineExceeded) &&
		slices.ContainsFunc(faults, func(f record.Fault) bool { return op.Start < f.Begin+oneLook && op.End > f.Begin })
}

// returned is [Recovery].ReturnMs.
func returned(histories [][]record.Op, faults []record.Fault) (longest int64) {
	if len(faults) == 0 {
		return 0
	}
	var reads []*record.Op
	end, replicas := time.Duration(0), map[string]bool{}
	for _, ops := range histories {
		for i := range ops {
			if op := &ops[i]; op.Kind == record.Read && op.OK() {
				reads = append(reads, op)
				end = max(end, op.Start)
				if op.Answer.Replica {
					replicas[op.Answer.Node] = true
				}
			}
		}
	}
	for i, f := range faults {
		until := end
		if i+1 < len(faults) {
			until = faults[i+1].Begin
		}
		windows := int((until - f.End) / returnWindow)
		before := min(shareOf(reads, f.Nodes, 0, faults[0].Begin), float64(len(f.Nodes))/float64(len(replicas)))
		if f.End == 0 || windows < 1 || before == 0 {
			continue
		}
		took := int64(-1)
		for w := range windows {
			from := f.End + time.Duration(w)*returnWindow
			if shareOf(reads, f.Nodes, from, from+returnWindow) >= returnShare*before {
				took = (time.Duration(w+1) * returnWindow).Milliseconds()
				break
			}
		}
		if took < 0 {
			return took
		}
		longest = max(longest, took)
	}
	return longest
}

// recoveryNotes say what happened around faults.
func (f *Figures) recoveryNotes(w io.Writer) {
	if n := f.ReadsCutOff; n > 0 {
		fmt.Fprintf(w, "\n%s: %s reads had been sent to a server that stopped answering before anybody could know, and ended at their deadline.\n", f.Name, thousands(n))
	}
	switch {
	case f.ReturnMs < 0:
		fmt.Fprintf(w, "\n%s: replicas that were in trouble did not have their share of the reads again before the end of the run, or the next fault.\n", f.Name)
	case f.ReturnMs > 0:
		fmt.Fprintf(w, "\n%s: replicas that were in trouble had their share of the reads again within %s ms.\n", f.Name, thousands(int(f.ReturnMs)))
	}
}

// shareOf is the nodes' share of the reads that began in a time; 0 of none.
func shareOf(reads []*record.Op, nodes []string, from, to time.Duration) float64 {
	all, theirs := 0, 0
	for _, op := range reads {
		if op.Start >= from && op.Start < to {
			all++
			count(&theirs, slices.Contains(nodes, op.Answer.Node))
		}
	}
	return float64(theirs) / math.Max(1, float64(all))
}
