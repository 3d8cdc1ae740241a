// Package rules lets tests switch off one correctness rule at a time, to show
// that the simulation notices. Nothing but tests may call [Break]; a test of
// package deps asserts it.
package rules

// Rule names a rule of the routing that can be left out.
type Rule uint8

// The rules. Each has its reason where it is applied.
const (
	// ConnOlderThanProbe: an observation says nothing about a connection that
	// may belong to another incarnation.
	ConnOlderThanProbe Rule = iota
	// BoundProbeAfterRead: a read is bounded only by a probe sent after it ended.
	BoundProbeAfterRead
	// IncarnationInSeen: an observation of another life of the same node bounds nothing.
	IncarnationInSeen
	// SeenIsASet: parallel reads leave several incarnations behind.
	SeenIsASet
	// SeenKept: what was read from is remembered until it is bounded.
	SeenKept
	// EveryClassLeavesSeen: strong and relaxed reads are remembered too.
	EveryClassLeavesSeen
	// PrimaryReadBoundsItself: a read on the primary joins its position to the mark.
	PrimaryReadBoundsItself
	// PrimaryMustHaveShown: a primary can be older than its replica.
	PrimaryMustHaveShown
	// CatchUpBirth: a catch-up is settled only by the primary life it was born under.
	CatchUpBirth
	// EpochInMark: positions of different histories are not compared.
	EpochInMark
	// OpenCounts: what a statement has shown counts while it is still open.
	OpenCounts
	// ForkVerdict: a history contains the ones before it only up to where it left them.
	ForkVerdict
	// ForkInEpoch: two lines of one number that began at different positions are two.
	ForkInEpoch
	// OriginInEpoch: two lines of one number that began with the promotion of different servers are two.
	OriginInEpoch
	// FenceDiverged: a replica that may have what the history lacks is not used.
	FenceDiverged
	// HigherLineWins: a primary is none when any node is on a higher line.
	HigherLineWins
	// SeenVerdict: what was seen on a history is judged as what was written on it is.
	SeenVerdict
	// VolatileLife: what was not durable when it was handed out is judged by the primary's life.
	VolatileLife
	count
)

var names = [count]string{
	"conn-older-than-probe", "bound-probe-after-read", "incarnation-in-seen", "seen-is-a-set", "seen-kept", "every-class-leaves-seen",
	"primary-read-bounds-itself", "primary-must-have-shown", "catch-up-birth", "epoch-in-mark", "open-counts",
	"fork-verdict", "fork-in-epoch", "origin-in-epoch", "fence-diverged", "higher-line-wins", "seen-verdict", "volatile-life",
}

// String returns the rule's name.
func (r Rule) String() string { return names[r] }

// All returns all rules.
func All() []Rule {
	var all []Rule
	for r := range count {
		all = append(all, r)
	}
	return all
}

var off [count]bool

// On reports whether the rule is in force. It always is outside tests.
func (r Rule) On() bool { return !off[r] }

// Break switches the rule off for the rest of the test. Tests that do so must
// not run in parallel with others.
func Break(t interface{ Cleanup(func()) }, r Rule) {
	off[r] = true
	t.Cleanup(func() { off[r] = false })
}
