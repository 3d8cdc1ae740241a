package check

import (
	"slices"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// Ages judges how old answers are, by the writes of all sessions and when they were
// acknowledged, and adds what it finds to the reads. It is for histories that are
// complete, in which nobody else writes what the sessions write.
//
//   - budget: an answer to a relaxed read has version(k) >= acked(k, d), unless it is
//     marked stale;
//   - proven age: an answer whose strategy says how old it is at most has
//     version(k) >= acked(k, age), marked or not;
//
// with acked(k, d) the newest version of row k whose write was acknowledged longer than d before
// the read was handed to the strategy. All times are of one clock, the lab's own. A write
// is visible on the primary before it is acknowledged, and a read begins after it was
// handed over: both make the check weaker by that much, and never wrong.
func Ages(histories [][]record.Op) {
	acked := acknowledgements{}
	for _, ops := range histories {
		for i := range ops {
			if op := &ops[i]; op.Kind == record.Write && op.OK() {
				acked[op.Key] = append(acked[op.Key], ack{op.End, op.Version})
			}
		}
	}
	for _, list := range acked {
		// A version is sent when the one before has ended, so both rise.
		slices.SortFunc(list, func(a, b ack) int { return int(a.version - b.version) })
	}
	for _, ops := range histories {
		for i := range ops {
			op := &ops[i]
			if op.Kind != record.Read || !op.OK() {
				continue
			}
			if op.Budget != nil && !op.Answer.MarkedStale {
				acked.judge(op, record.WithinBudget, op.Budget.Within)
			}
			if op.Answer.Bounded {
				acked.judge(op, record.WithinBound, op.Answer.Bound)
			}
		}
	}
}

// ack is an acknowledgement, and what was acknowledged.
type ack struct {
	at      time.Duration
	version int64
}

// acknowledgements are those of each key, in order.
type acknowledgements map[int64][]ack

// by is the newest version of a key that was acknowledged before the moment.
func (a acknowledgements) by(key int64, moment time.Duration) int64 {
	list := a[key]
	n, _ := slices.BinarySearchFunc(list, moment, func(k ack, m time.Duration) int {
		if k.at < m {
			return -1
		}
		return 1
	})
	if n == 0 {
		return 0
	}
	return list[n-1].version
}

// judge adds what an answer lacks that may be so old.
func (a acknowledgements) judge(op *record.Op, p record.Promise, age time.Duration) {
	for _, row := range op.Answer.Rows {
		if knew := a.by(row.Key, op.Start-age); row.Version < knew {
			op.Violations = append(op.Violations, record.Violation{Promise: p, Session: op.Session, Key: row.Key, Knew: knew, Got: row.Version})
		}
	}
}
