package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tidegatedb/tidegate"
)

// Explanation says for each node why a read of a class may or may not go there
// now. It is a snapshot: nothing is dispatched, asked or awaited.
type Explanation struct {
	Cluster string
	Class   tidegate.Class
	// Required is what the context's session must see.
	Required tidegate.Position
	// Nodes has one verdict for each node.
	Nodes []Verdict
}

// Verdict is one node's part of an [Explanation].
type Verdict struct {
	Node     string
	Role     tidegate.Role
	Eligible bool
	// Why is a sentence for people.
	Why string
	// Applied is the position the node was last seen to have.
	Applied tidegate.Position
	// ProbeAge is how long ago the newest probe was sent, negative when there was
	// none.
	ProbeAge time.Duration
	// Staleness is how old the node's state can be at most, when Known says so.
	Staleness      time.Duration
	StalenessKnown bool
	// Flying is the number of reads in flight on it.
	Flying int64
}

// Explain says where a read of the class could go now for the context's session. One
// that is kept in a store is loaded; if the context ends before, what is said is of
// what is known of it.
func (c *Core) Explain(ctx context.Context, class tidegate.Class) Explanation {
	e := Explanation{Cluster: c.cfg.Cluster, Class: class}
	s := tidegate.SessionFrom(ctx)
	if s != nil {
		_ = s.Load(ctx)
	}
	required, verdicts := c.router.Explain(c.ledger(s), class)
	e.Required = required
	for i, v := range verdicts {
		name := c.NodeName(i)
		if name == "" {
			continue
		}
		e.Nodes = append(e.Nodes, Verdict{
			Node: name, Role: v.Role, Eligible: v.Eligible, Why: v.Why, Applied: v.Applied,
			ProbeAge: v.ProbeAge, Staleness: v.Staleness, StalenessKnown: v.StalenessKnown, Flying: v.Flying,
		})
	}
	return e
}

// String formats the explanation, one line for each node.
func (e Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s read of %s, required %v\n", e.Class, e.Cluster, e.Required)
	for _, v := range e.Nodes {
		mark := "-"
		if v.Eligible {
			mark = "+"
		}
		fmt.Fprintf(&b, "%s %-12s %-8s %s\n", mark, v.Node, v.Role, v.Why)
	}
	return b.String()
}

// Stats returns counters since the start.
func (c *Core) Stats() Stats {
	s := c.router.Stats()
	st := Stats{
		Waits: s.Waits.Load(), Fallbacks: s.Fallbacks.Load(), Unproven: s.Unproven.Load(),
		Sessionless: s.Sessionless.Load(), Refused: s.Refused.Load(), HistoryChanged: s.Changed.Load(), SessionlessWrites: c.sessionlessWrites.Load(), Suspects: c.suspects.Load(),
		Predicted: s.Predicted.Load(), Shadowed: s.Shadowed.Load(), ShadowReplica: s.ShadowReplica.Load(),
		Queued: s.Queued.Load(), Shed: s.Shed.Load(), Stale: s.Stale.Load(),
	}
	for i := range st.Verdicts {
		st.Verdicts[i] = s.Verdicts[i].Load()
	}
	for i := range st.Retries {
		st.Retries[i] = s.Retries[i].Load()
	}
	for i := range MaxNodes {
		t, d := c.watcher.Counts(i)
		st.Probes += t
		st.DemandProbes += d
	}
	past := c.members.past()
	st.Probes += past[0]
	st.DemandProbes += past[1]
	return st
}

// Stats counts what happened since the start.
type Stats struct {
	// Waits counts reads that waited for a fact.
	Waits uint64
	// Fallbacks counts causal and relaxed reads that went to the primary.
	Fallbacks uint64
	// Unproven counts reads that were answered without proof.
	Unproven uint64
	// Sessionless counts causal reads without a session.
	Sessionless uint64
	// SessionlessWrites counts writes without a session.
	SessionlessWrites uint64
	// Refused counts reads that failed with a NotFreshError.
	Refused uint64
	// HistoryChanged counts reports that what a session must see is not a part of the
	// history, or that nobody can say. Verdicts counts what was judged, by what had become of
	// it: the reports by their reason, and what had survived, or was dropped as foreign, and
	// so was not reported.
	HistoryChanged uint64
	Verdicts       Verdicts
	// Predicted counts causal reads that went to the primary at once because every
	// replica was expected to need longer than they may wait. They are Fallbacks too.
	Predicted uint64
	// Queued counts reads that waited for room on the primary. Shed counts those that got
	// none, and reads of classes with ShedFirst that were not to have any: they failed with
	// an OverloadedError, or are among Stale.
	Queued, Shed uint64
	// Stale counts relaxed reads that were answered beyond their budget, as their class
	// allows.
	Stale uint64
	// Retries counts attempts of reads that failed before the first row, so that the read
	// began again, by their cause.
	Retries Retries
	// Suspects counts writes whose session had read from a replica before, with
	// Config.Suspects.
	Suspects uint64
	// Shadowed counts the reads under tidegate.RolloutShadow, ShadowReplica those of
	// them that a replica would have answered.
	Shadowed, ShadowReplica uint64
	// Probes and DemandProbes count probes of all nodes, by the clock and asked for.
	Probes, DemandProbes uint64
}

// Verdicts counts by [tidegate.Verdict].
type Verdicts [tidegate.Verdicts]uint64

// Retries counts retries by their [tidegate.RetryCause].
type Retries [tidegate.RetryCauses]uint64

// Total returns the sum of all causes.
func (r Retries) Total() (n uint64) {
	for _, c := range r {
		n += c
	}
	return n
}
