// Package truth finds out, by connections of the lab's own, what each replica
// really showed while the strategies were at work. It reads rows and nothing
// else, so it holds for every strategy and trusts none.
package truth

import (
	"slices"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// Look is what one replica showed at one moment between Began and Ended, which
// count from the start of the run.
type Look struct {
	Began, Ended time.Duration
	Versions     []int64 // by key; record.Absent where there was no row
}

// horizon is how long after its dispatch a read may be paired with a look.
// Looks are 5 ms apart, so a longer gap means that the replica did not answer
// them: it was not live, and nothing is known about it.
const horizon = 25 * time.Millisecond

// Opportunities counts the reads that could have gone wrong: zero violations
// mean something only beside it. A read that was answered is an opportunity if,
// for at least one replica, the first look that began at or after the read's
// dispatch, and at most 25 ms after it, lacked a row version that the session
// already knew when the read was dispatched: from an acknowledged write of its
// own, from an answer that it had, or from the event that caused the read. So is
// a read that did go wrong: it was such a look itself.
//
// Relaxed reads may be old, and are in no such danger.
//
// So at the moment of that look, a read by this session on that replica would
// have been a violation. A replica that catches up between the dispatch and the
// look is not counted, though the read may have been in danger: with lags of
// less than 5 ms the count is far too low, and it is never too high.
//
// Histories are those of the sessions, in the order in which operations began,
// looks those of each replica in order.
func Opportunities(histories [][]record.Op, looks [][]Look, keys int) (n int) {
	next := make([]int, len(looks))
	for _, ops := range histories {
		clear(next)
		known := knowledge{versions: make([]int64, keys)}
		for i := range ops {
			op := &ops[i]
			if !op.OK() {
				continue
			}
			known.until(op.Start)
			if op.Kind == record.Read && op.Budget == nil && (lacking(op.Start, known.at(op), looks, next) || wrong(op)) {
				n++
			}
			known.pending = append(known.pending, op)
		}
	}
	return n
}

// wrong reports whether an answer showed too little.
func wrong(op *record.Op) bool {
	return op.Broke(record.ReadYourWrites) || op.Broke(record.MonotonicReads) || op.Broke(record.ReadsAfterEvents)
}

// knowledge is what one session knows as time goes on.
type knowledge struct {
	versions []int64      // by key
	pending  []*record.Op // that had not ended the last time
}

// until adds what the operations say that have ended by the moment.
func (k *knowledge) until(moment time.Duration) {
	k.pending = slices.DeleteFunc(k.pending, func(op *record.Op) bool {
		if op.End > moment {
			return false
		}
		if op.Kind == record.Write {
			k.learn(record.Row{Key: op.Key, Version: op.Version})
		}
		for _, row := range op.Answer.Rows {
			k.learn(row)
		}
		return true
	})
}

func (k *knowledge) learn(row record.Row) {
	if row.Key >= 0 && row.Key < int64(len(k.versions)) {
		k.versions[row.Key] = max(k.versions[row.Key], row.Version)
	}
}

// at is what is known for one read: that, and what its event told of.
func (k *knowledge) at(op *record.Op) []int64 {
	if op.Told == nil {
		return k.versions
	}
	told := knowledge{versions: slices.Clone(k.versions)}
	told.learn(*op.Told)
	return told.versions
}

// lacking reports whether a replica's first look from the moment on lacks what
// is known. Moments must not go back between two calls with the same next.
func lacking(moment time.Duration, known []int64, looks [][]Look, next []int) bool {
	found := false
	for r, list := range looks {
		for next[r] < len(list) && list[next[r]].Began < moment {
			next[r]++
		}
		if next[r] == len(list) || list[next[r]].Began > moment+horizon {
			continue
		}
		for key, version := range list[next[r]].Versions {
			if version < known[key] {
				found = true
				break
			}
		}
	}
	return found
}
