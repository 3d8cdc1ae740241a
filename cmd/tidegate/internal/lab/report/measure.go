package report

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/traffic"
)

// Measure counts what a log holds. The caller adds what the log does not know:
// name, opportunities, unsent operations and CPU times.
func Measure(log *record.Log) Figures {
	var f Figures
	var t times
	for _, ops := range log.Sessions() {
		for i := range ops {
			op := &ops[i]
			t.late = append(t.late, op.Start-op.Due)
			if op.Answer.Queued > 0 {
				t.queued = append(t.queued, op.Answer.Queued)
			}
			switch {
			case op.Answer.Shed:
				f.shed(op)
			case op.Err != nil:
				f.failed(op)
			case op.Kind == record.Write:
				f.Writes++
				t.writes = append(t.writes, op.Latency())
			default:
				f.read(op)
				t.read(op)
			}
		}
	}
	f.ReplicaShare = share(f.ReplicaReads, f.Reads)
	f.CausalReplicaShare = share(f.ReplicaReads, f.Reads-f.StrongReads)
	f.ReadAfterWriteReplicaShare = share(t.afterWriteReplica, t.afterWrite)
	f.ReadAfterWriteP50us = percentile(t.later, 0.5)
	f.ReadAfterWriteNowP50us = percentile(t.now, 0.5)
	f.ReadP50us = percentile(t.ordinary, 0.5)
	f.ReadP99us = percentile(t.ordinary, 0.99)
	f.ReadP95us = percentile(t.ordinary, 0.95)
	f.WriteP95us = percentile(t.writes, 0.95)
	f.LimiterWaitP99us = percentile(t.queued, 0.99)
	f.Recovery = measureRecovery(log)
	f.Classes = measureClasses(log.Sessions())
	f.WriteP50us = percentile(t.writes, 0.5)
	f.WriteP99us = percentile(t.writes, 0.99)
	f.LateP99us = percentile(t.late, 0.99)
	f.WriteStallUs = writeStall(log.Sessions()).Microseconds()
	f.UnpromptedWaitsMax = unpromptedWaits(log.Sessions(), log.Restarts())
	if op := log.FirstError(); op != nil {
		f.FirstError = fmt.Sprintf("%s of session %d at %.3f s: %v", op.Kind, op.Session, op.Start.Seconds(), op.Err)
	}
	if op := log.FirstViolation(); op != nil {
		f.FirstViolation = fmt.Sprintf("%v, %s, on instance %d from %s at %.3f s",
			op.Violations[0], since(op), op.Instance, op.Answer.Node, op.Start.Seconds())
	}
	return f
}

// failed counts an operation that ended in an error.
func (f *Figures) failed(op *record.Op) {
	f.Errors++
	switch {
	case op.Kind == record.Write:
		f.WriteErrors++
	case op.Answer.Begun:
		f.ReadErrorsAfterRow++
	default:
		f.ReadErrorsBeforeRow++
	}
}

// read counts an answer.
func (f *Figures) read(op *record.Op) {
	f.Reads++
	a := &op.Answer
	count(&f.StaleReads, op.Broke(record.ReadYourWrites))
	count(&f.BackwardsReads, op.Broke(record.MonotonicReads))
	count(&f.UnrealReads, op.Broke(record.RealRows))
	count(&f.BudgetBreaches, op.Broke(record.WithinBudget))
	count(&f.BoundBreaches, op.Broke(record.WithinBound))
	count(&f.StrongReads, op.Strong)
	count(&f.ReplicaReads, a.Replica)
	count(&f.Fallbacks, a.Fallback)
	count(&f.Waits, a.Waited)
	count(&f.UnprovenReads, a.Unproven)
	count(&f.StaleMarked, a.MarkedStale)
	count(&f.RetriedReads, a.Retries > 0)
	if a.Unproven {
		f.UnprovenBy.add(a.Reason)
	}
	if !a.Replica {
		f.PrimaryReadsBy.add(a.Reason)
	}
}

// times are the latencies of a run, sorted into those that are compared.
type times struct {
	ordinary, later, now, writes, late, queued []time.Duration
	afterWrite, afterWriteReplica              int
}

func (t *times) read(op *record.Op) {
	if op.Strong || op.Budget != nil {
		return
	}
	switch {
	case !op.AfterWrite:
		t.ordinary = append(t.ordinary, op.Latency())
	case op.AtOnce:
		t.now = append(t.now, op.Latency())
	case op.SinceWrite >= traffic.LaterReadDelay:
		t.later = append(t.later, op.Latency())
	}
	if op.AfterWrite {
		t.afterWrite++
		count(&t.afterWriteReplica, op.Answer.Replica)
	}
}

func since(op *record.Op) string {
	if op.AfterWrite {
		return fmt.Sprintf("%d µs after its write", op.SinceWrite.Microseconds())
	}
	return "not right after a write"
}

func count(n *int, yes bool) {
	if yes {
		*n++
	}
}

// share is part of whole, to four digits.
func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return round(float64(part)/float64(whole), 4)
}

func round(x float64, digits int) float64 {
	p := math.Pow10(digits)
	return math.Round(x*p) / p
}

// Seconds is a duration in seconds, to three digits.
func Seconds(d time.Duration) float64 { return round(d.Seconds(), 3) }

// Millis is a duration in milliseconds, to three digits.
func Millis(d time.Duration) float64 { return round(d.Seconds()*1000, 3) }

// percentile is the smallest of the values that at least the part p of them does
// not exceed (nearest rank), in microseconds. It sorts the values.
func percentile(values []time.Duration, p float64) int64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	rank := int(math.Ceil(p * float64(len(values))))
	return values[max(rank, 1)-1].Microseconds()
}
