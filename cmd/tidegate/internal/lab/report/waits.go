package report

import (
	"sort"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// unpromptedWaits is the most waits of one session within one of the spans that
// the restarts divide the run into, of reads that the session did nothing to make
// wait.
//
// A wait is prompted if the session has tried to write, or has read from the
// primary, whose position it must not go back behind, since its last answer from
// a replica on the same instance: that instance has yet to learn that a replica
// has come so far. So it is if its client has lost its tokens, has brought an
// event, or had another request in flight. Relaxed reads wait for an age and not for
// their session, and do not count. What is left is the cluster's doing, or the
// strategy's own, as when it moves a session away from a crowded replica.
func unpromptedWaits(histories [][]record.Op, restarts []time.Duration) (most int) {
	for _, ops := range histories {
		waits := make([]int, len(restarts)+1)
		asked := -1              // the last operation that is a reason to wait
		settled := map[int]int{} // by instance, the last answer from a replica
		for i := range ops {
			op := &ops[i]
			last, known := settled[op.Instance]
			prompted := asked >= 0 && (!known || last < asked) || op.Overlaps
			if op.Dropped > 0 || op.Told != nil {
				prompted, asked = true, i
			}
			if op.Kind == record.Read && op.Budget == nil && op.Answer.Waited && !prompted {
				span := sort.Search(len(restarts), func(n int) bool { return restarts[n] > op.Start })
				waits[span]++
				most = max(most, waits[span])
			}
			// A read that failed may have been on the primary.
			// One that overlaps another says nothing of what the other asks for.
			// One that may be old says nothing of what its replica has, and may have shown
			// what others lack.
			if op.Kind == record.Write || !op.Answer.Replica || op.Budget != nil {
				asked = i
			} else if !op.Overlaps {
				settled[op.Instance] = i
			}
		}
	}
	return most
}
