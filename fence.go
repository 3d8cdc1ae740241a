package tidegate

import "fmt"

// Fence says why a node that answers is not used: by what it says of itself, not by how
// old it is or how it answers.
type Fence uint8

// The fences.
const (
	// FenceNone is the zero Fence: the node is not fenced.
	FenceNone Fence = iota
	// FenceDeposed: it says that it is the primary, and another node is on a higher line.
	FenceDeposed
	// FenceConflict: it, or the primary that it follows, is one of two primaries of one
	// line. Nobody can tell which one is right.
	FenceConflict
	// FenceDiverged: it has, or may have, what the cluster's history does not contain: it
	// has to be rewound or made anew.
	FenceDiverged
	// FenceForeign: it belongs to another database system.
	FenceForeign
	// FenceUnknownLine: it cannot tell which line it is on, and there has been more than
	// one.
	FenceUnknownLine
	// FenceNoHistory: the way from its line to the primary's is not known.
	FenceNoHistory
	fences
)

// Fences is the number of fences, with FenceNone.
const Fences = int(fences)

var fenceNames = [fences]string{"none", "deposed", "conflict", "diverged", "foreign", "unknown-line", "no-history"}

// String returns the fence as a word for logs and metrics.
func (f Fence) String() string {
	if f < fences {
		return fenceNames[f]
	}
	return fmt.Sprintf("fence-%d", uint8(f))
}
