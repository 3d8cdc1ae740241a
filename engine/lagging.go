package engine

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// LaggingError says that a bulk job waited as long as it may, and what lag it saw
// last. It wraps [tidegate.ErrLagging], and [tidegate.ErrNoPrimary] when no primary
// was known.
type LaggingError struct {
	// Cluster is the cluster's name.
	Cluster string
	// Node is the replica that decides: the worst of those that have to keep the marks. ""
	// when no primary was known.
	Node string
	// Staleness is how old its state can be at most, when StalenessKnown says so.
	Staleness      time.Duration
	StalenessKnown bool
	// Lag is how far it was behind at the last look, in the engine's unit, when LagKnown
	// says so.
	Lag      uint64
	LagKnown bool
	// Err is why it does not answer, nil when it does.
	Err error
	// Waited is how long the job waited.
	Waited time.Duration
	// NoPrimary tells that no primary was known.
	NoPrimary bool
}

// lagging returns what was seen as an error.
func (th *Throttle) lagging(s *sight, begun int64) *LaggingError {
	return &LaggingError{
		Cluster: th.core.cfg.Cluster, Node: th.core.NodeName(s.node), Staleness: s.staleness, StalenessKnown: s.stalenessKnown,
		Lag: s.lag, LagKnown: s.lagKnown, Err: s.err, Waited: time.Duration(mono.Now() - begun), NoPrimary: s.node == freshness.NoNode,
	}
}

// Error implements error.
func (e *LaggingError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: cluster %s, ", tidegate.ErrLagging, e.Cluster)
	switch {
	case e.NoPrimary:
		b.WriteString("no primary is known, so that no replica's age is")
	case e.Err != nil:
		fmt.Fprintf(&b, "%s does not answer: %v", e.Node, e.Err)
	default:
		fmt.Fprintf(&b, "%s is ", e.Node)
		if e.StalenessKnown {
			fmt.Fprintf(&b, "at most %v old", e.Staleness.Round(time.Millisecond))
		} else {
			b.WriteString("of unknown age")
		}
		if e.LagKnown {
			fmt.Fprintf(&b, " and %d behind", e.Lag)
		}
	}
	fmt.Fprintf(&b, "; waited %v", e.Waited.Round(time.Millisecond))
	return b.String()
}

// Unwrap makes errors.Is see [tidegate.ErrLagging] and, without a primary,
// [tidegate.ErrNoPrimary].
func (e *LaggingError) Unwrap() []error {
	if e.NoPrimary {
		return []error{tidegate.ErrLagging, tidegate.ErrNoPrimary}
	}
	return []error{tidegate.ErrLagging}
}
