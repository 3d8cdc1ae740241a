package route

import "sync/atomic"

// tally counts a node's reads, those in flight and all, in one word: it is what reads of
// different sessions write to, so there is to be one of it, and once for each read. The
// zero tally has counted nothing.
type tally struct {
	// The lowest tallyBits are the reads in flight; what is above counts all, and comes
	// round.
	atomic.Int64
}

const (
	tallyBits = 24
	flying    = 1<<tallyBits - 1
)

// enter counts a read and returns how many there have been.
func (t *tally) enter() uint64 { return uint64(t.Add(1<<tallyBits+1)) >> tallyBits }

// leave ends one.
func (t *tally) leave() { t.Add(-1) }

// Load returns how many are in flight.
func (t *tally) Load() int64 { return t.Int64.Load() & flying }

// all returns how many there have been, modulo 2 to the 40.
func (t *tally) all() uint64 { return uint64(t.Int64.Load()) >> tallyBits }

// since returns how many there have been since all returned that.
func (t *tally) since(all uint64) uint64 { return (t.all() - all) & (1<<(64-tallyBits) - 1) }
