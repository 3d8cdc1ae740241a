// Package traffic makes the load: sessions that read and write as users of an
// application with several instances would, at times that do not depend on how
// fast the answers come.
package traffic

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// KeysPerRead is how many rows a read asks for, in one statement and so in one
// snapshot: the session's own and three others.
const KeysPerRead = 4

// LaterReadDelay is the least time between an acknowledged write and the read
// that follows it, for the half of them that does not come at once.
const LaterReadDelay = 5 * time.Millisecond

// MaxWrites is the largest part of the operations that can be writes: each is
// followed by a read of its session.
const MaxWrites = 0.5

// Load describes the load of one run. The same Load always plans the same
// operations, whatever strategy answers them.
type Load struct {
	Sessions  int
	Instances int
	// Rate is the number of reads per second, over all sessions.
	Rate float64
	// Writes is the part of all operations that are writes, 0 to MaxWrites.
	Writes float64
	// WritesEnd is when the writes end, from the start of the run; only reads
	// follow. Zero means not before the run.
	WritesEnd time.Duration
	// Strong is the part of the reads that are strong, 0 to 1.
	Strong float64
	// Relaxed is the part of the free reads (those that do not read a write back) that
	// may be old, each with one of the Budgets, by chance. 0 to 1.
	Relaxed float64
	Budgets []record.Budget
	// ReadDeadline is how long a read may take. Zero means 5 s, as for writes: far above any
	// latency worth reporting.
	ReadDeadline time.Duration
	// Parallel is the part of the free arrivals (those that neither write nor read a
	// write back) whose read the session does not wait for: its next operation begins
	// at the same time. 0 to below 1; zero: the operations follow one another.
	Parallel float64
	// Drops is the part of the operations before which the session's client loses all
	// tokens that it holds, 0 to 1.
	Drops float64
	// Affinity keeps each session on one instance. Else they hop.
	Affinity bool
	// Witness adds a row that no session writes and every read asks for. When
	// something else writes it, sessions see from when on that is visible.
	Witness  bool
	Duration time.Duration
	Seed     uint64
}

// Keys is the number of rows that the load needs: one for each session to
// write, enough for one read, and the witness.
func (l Load) Keys() int {
	if l.Witness {
		return l.ownKeys() + 1
	}
	return l.ownKeys()
}

func (l Load) ownKeys() int { return max(l.Sessions, KeysPerRead) }

// WitnessKey is the key of the witness, behind all others.
func (l Load) WitnessKey() int64 { return int64(l.ownKeys()) }

// Pace says when a step begins.
type Pace uint8

const (
	// Scheduled steps begin at their due time.
	Scheduled Pace = iota
	// AtOnce steps begin when the write before them is acknowledged.
	AtOnce
	// Later steps begin at their due time, but not before LaterReadDelay has
	// passed since the write before them was acknowledged.
	Later
)

// Step is one planned operation of a session.
type Step struct {
	Due      time.Duration // since the start of the run
	Pace     Pace
	Write    bool
	Instance int
	Keys     []int64        // of a read; the session's own comes first
	Strong   bool           // of a read
	Budget   *record.Budget // of a relaxed read
	// Beside says that the session goes on without waiting for this read.
	Beside bool
	// Drop says that the session's client has lost its tokens by now.
	Drop bool
}

// Steps plans the operations of one session. Its arrivals are a Poisson
// process. An arrival that writes is followed, with even chance, by a read at
// once, or by an arrival that reads later: so every write is read back, and
// Rate and Writes are kept exactly on average.
func (l Load) Steps(session int) iter.Seq[Step] {
	// Of the arrivals the part x writes. Half of those bring a second operation
	// (the read at once), so there are 1 + x/2 operations and 1 - x/2 reads for
	// each arrival. The arrival after the other half is not free to write.
	x := l.Writes / (1 - l.Writes/2)
	write := x / (1 - x/2)
	readGap := float64(l.Sessions) / l.Rate * float64(time.Second)
	gap := readGap * (1 - x/2)
	writesEnd := float64(l.Duration)
	if l.WritesEnd > 0 {
		writesEnd = float64(l.WritesEnd)
	}

	return func(yield func(Step) bool) {
		r := rand.New(rand.NewPCG(l.Seed, uint64(session)))
		pace := Scheduled
		beside := time.Duration(-1) // when the read began that this step begins with
		for at := 0.0; ; {
			if at >= writesEnd {
				gap = readGap
			}
			at += r.ExpFloat64() * gap
			if at >= float64(l.Duration) {
				return
			}
			step := Step{Due: time.Duration(at), Pace: pace, Instance: l.instance(r, session)}
			if beside >= 0 {
				step.Due, beside = beside, -1
			}
			step.Drop = l.drop(r)
			if pace == Scheduled && r.Float64() < write && at < writesEnd {
				step.Write = true
				if !yield(step) {
					return
				}
				if r.IntN(2) == 0 {
					pace = Later
					continue
				}
				step = Step{Due: step.Due, Pace: AtOnce, Instance: l.instance(r, session), Drop: l.drop(r)}
			}
			step.Keys = l.keys(r, session)
			step.Strong = l.Strong > 0 && r.Float64() < l.Strong
			if l.Relaxed > 0 && step.Pace == Scheduled && r.Float64() < l.Relaxed {
				step.Budget, step.Strong = &l.Budgets[r.IntN(len(l.Budgets))], false
			}
			if l.Parallel > 0 && step.Pace == Scheduled && r.Float64() < l.Parallel {
				step.Beside, beside = true, step.Due
			}
			if !yield(step) {
				return
			}
			pace = Scheduled
		}
	}
}

// instance chooses where one step goes.
func (l Load) instance(r *rand.Rand, session int) int {
	n := r.IntN(l.Instances)
	if l.Affinity {
		return session % l.Instances
	}
	return n
}

// drop chooses whether the client loses its tokens before one step.
func (l Load) drop(r *rand.Rand) bool { return l.Drops > 0 && r.Float64() < l.Drops }

// keys chooses the rows of one read.
func (l Load) keys(r *rand.Rand, session int) []int64 {
	return l.keysWith(r, session)
}

// keysWith chooses the rows of one read that asks for certain others, at most two.
func (l Load) keysWith(r *rand.Rand, session int, others ...int64) []int64 {
	keys := make([]int64, 1, KeysPerRead)
	keys[0] = int64(session)
	keys = append(keys, others...)
	if l.Witness {
		keys = append(keys, l.WitnessKey())
	}
next:
	for len(keys) < KeysPerRead {
		k := r.Int64N(int64(l.ownKeys()))
		for _, have := range keys {
			if k == have {
				continue next
			}
		}
		keys = append(keys, k)
	}
	return keys
}

func (l Load) String() string {
	s := fmt.Sprintf("%d sessions on %d instances, %.0f reads/s, %.0f %% writes, %s",
		l.Sessions, l.Instances, l.Rate, l.Writes*100, l.Duration)
	if l.Strong > 0 {
		s += fmt.Sprintf(", %.0f %% of the reads strong", l.Strong*100)
	}
	if l.Relaxed > 0 {
		s += fmt.Sprintf(", %.0f %% of the free reads may be old", l.Relaxed*100)
	}
	if l.Drops > 0 {
		s += fmt.Sprintf(", clients lose their tokens before %.0f %% of the operations", l.Drops*100)
	}
	return s
}
