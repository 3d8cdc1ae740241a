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
	var ordinary, later, now, writes, late []time.Duration
	afterWrite, afterWriteReplica := 0, 0
	for _, ops := range log.Sessions() {
		for i := range ops {
			op := &ops[i]
			late = append(late, op.Start-op.Due)
			switch {
			case op.Answer.Shed:
				f.Shed++
				continue
			case op.Err != nil:
				f.Errors++
				continue
			case op.Kind == record.Write:
				f.Writes++
				writes = append(writes, op.Latency())
				continue
			}
			f.Reads++
			count(&f.StaleReads, op.Broke(record.ReadYourWrites))
			count(&f.BackwardsReads, op.Broke(record.MonotonicReads))
			count(&f.UnrealReads, op.Broke(record.RealRows))
			count(&f.UnprovenReads, op.Answer.Unproven)
			count(&f.ReplicaReads, op.Answer.Replica)
			count(&f.Fallbacks, op.Answer.Fallback)
			count(&f.Waits, op.Answer.Waited)
			switch {
			case !op.AfterWrite:
				ordinary = append(ordinary, op.Latency())
			case op.AtOnce:
				now = append(now, op.Latency())
			case op.SinceWrite >= traffic.LaterReadDelay:
				later = append(later, op.Latency())
			}
			if op.AfterWrite {
				afterWrite++
				count(&afterWriteReplica, op.Answer.Replica)
			}
		}
	}
	f.ReplicaShare = share(f.ReplicaReads, f.Reads)
	f.ReadAfterWriteReplicaShare = share(afterWriteReplica, afterWrite)
	f.ReadAfterWriteP50us = percentile(later, 0.5)
	f.ReadAfterWriteNowP50us = percentile(now, 0.5)
	f.ReadP50us = percentile(ordinary, 0.5)
	f.ReadP99us = percentile(ordinary, 0.99)
	f.WriteP50us = percentile(writes, 0.5)
	f.LateP99us = percentile(late, 0.99)
	if op := log.FirstError(); op != nil {
		f.FirstError = fmt.Sprintf("%s of session %d at %.3f s: %v", op.Kind, op.Session, op.Start.Seconds(), op.Err)
	}
	if op := log.FirstViolation(); op != nil {
		f.FirstViolation = fmt.Sprintf("%v, %s, on instance %d from %s at %.3f s",
			op.Violations[0], since(op), op.Instance, op.Answer.Node, op.Start.Seconds())
	}
	return f
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
