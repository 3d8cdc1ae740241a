package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// writeStall is the longest time in which a write was waiting for its
// acknowledgement and none was acknowledged. Time in which nobody wrote does not
// count, and a write that failed in the end was waiting until then.
func writeStall(histories [][]record.Op) (longest time.Duration) {
	var writes []record.Op
	for _, ops := range histories {
		for i := range ops {
			if ops[i].Kind == record.Write {
				writes = append(writes, ops[i])
			}
		}
	}
	slices.SortFunc(writes, func(a, b record.Op) int { return cmp.Compare(a.End, b.End) })
	// begun is by write the earliest start among those that end with it or later.
	begun := make([]time.Duration, len(writes))
	for i := len(writes) - 1; i >= 0; i-- {
		begun[i] = writes[i].Start
		if i+1 < len(writes) {
			begun[i] = min(begun[i], begun[i+1])
		}
	}
	acked, next := time.Duration(0), 0 // the last acknowledgement, and the first write that ends after it
	for i := range writes {
		if writes[i].Err == nil || i == len(writes)-1 {
			longest = max(longest, writes[i].End-max(acked, begun[next]))
			acked, next = writes[i].End, i+1
		}
	}
	return longest
}
