package tidegate

import (
	"fmt"
	"strings"
	"time"
)

// Reason says why a read went where it went.
type Reason uint8

// The reasons of a decision.
const (
	// ReasonNone is the zero Reason: nothing was decided.
	ReasonNone Reason = iota
	// ReasonStayed: the replica that the session read from still covers its mark.
	ReasonStayed
	// ReasonCovered: the replica covers the session's mark.
	ReasonCovered
	// ReasonWithinBudget: the replica's staleness is proven to be within the class's budget.
	ReasonWithinBudget
	// ReasonStrong: the class asks for the primary.
	ReasonStrong
	// ReasonNoSession: there is no session in the context, so nothing can be proven for it.
	ReasonNoSession
	// ReasonNoReplica: no usable replica is known.
	ReasonNoReplica
	// ReasonBehind: no replica qualified within the wait.
	ReasonBehind
	// ReasonHistoryChanged: what the session must see is not a part of the cluster's
	// history, or nobody can say; Decision.Verdict tells. The answer is not
	// proven, and the session goes on from the primary's position after it.
	ReasonHistoryChanged
	// ReasonReplicaFailed: replicas failed before the first row.
	ReasonReplicaFailed
	// ReasonPredicted: the replicas are expected to need longer than the read may
	// wait, so it did not wait.
	ReasonPredicted
	// ReasonRollout: the [Rollout] keeps the session's reads on the primary.
	ReasonRollout
	// ReasonShadow: the [Rollout] asks only where the read would have gone; see
	// Decision.ShadowNode.
	ReasonShadow
	// ReasonStale: no replica keeps the class's budget, and the class takes what there is.
	ReasonStale
	// ReasonShed: no replica qualified, and the primary had no room for one more read in
	// a replica's place.
	ReasonShed
)

var reasonNames = [...]string{
	"none", "stayed", "covered", "within-budget", "strong", "no-session", "no-replica", "behind", "history-changed", "replica-failed",
	"predicted", "rollout", "shadow", "stale", "shed",
}

// String returns the reason as a word for logs and metrics.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason-%d", uint8(r))
}

// Decision says where one read went and why. Every read has one; a read whose node
// failed before the first row has one for each attempt, and one that was refused
// names no node.
type Decision struct {
	// Cluster and Node name where the read went; Node is "" when it went nowhere.
	Cluster, Node string
	// Role is the node's role.
	Role Role
	// Class is what the read asked for.
	Class Class
	// Reason says why the read went there.
	Reason Reason
	// Waited is the time spent waiting for proof, zero when nothing was awaited.
	Waited time.Duration
	// Required is the position that the session's mark asked for.
	Required Position
	// Observed is the position that the node was known to have: the proof.
	Observed Position
	// Staleness is how old the answer can be at most, when Known says so.
	Staleness      time.Duration
	StalenessKnown bool
	// Unproven tells that the answer could not be proven to be as new as the
	// class asks. It was given by the primary and is counted.
	Unproven bool
	// Stale tells that the answer may be older than the class's budget, as the class
	// allows; see [ServeStale] and [StaleWhenShed].
	Stale bool
	// Verdict says what has become of what the session must see, with ReasonHistoryChanged,
	// or where a read was refused for it.
	Verdict Verdict
	// Queued is the time spent waiting for room on the primary.
	Queued time.Duration
	// Retries counts the attempts before this one; RetryCause says why the last of them
	// failed, RetryNone when there was none.
	Retries    int
	RetryCause RetryCause
	// ShadowNode and ShadowReason say, with [ReasonShadow], to which replica the
	// read would have gone without a wait, and why. "" stands for none of them: the
	// read would have waited, or gone to the primary.
	ShadowNode   string
	ShadowReason Reason
}

// String explains the decision in one line.
func (d Decision) String() string {
	var b strings.Builder
	where := "nowhere"
	if d.Node != "" {
		where = d.Role.String() + " " + d.Node
	}
	fmt.Fprintf(&b, "%s read of %s: %s (%s)", d.Class, d.Cluster, where, d.Reason)
	if d.Verdict != VerdictNone {
		fmt.Fprintf(&b, ", what it must see is %s", d.Verdict)
	}
	if !d.Required.IsZero() {
		fmt.Fprintf(&b, ", required %v, had %v", d.Required, d.Observed)
	}
	if d.Waited > 0 {
		fmt.Fprintf(&b, ", waited %v", d.Waited.Round(time.Microsecond))
	}
	if d.Queued > 0 {
		fmt.Fprintf(&b, ", queued %v", d.Queued.Round(time.Microsecond))
	}
	if d.StalenessKnown {
		fmt.Fprintf(&b, ", at most %v old", d.Staleness.Round(time.Microsecond))
	}
	if d.Reason == ReasonShadow {
		would := "no replica"
		if d.ShadowNode != "" {
			would = "replica " + d.ShadowNode
		}
		fmt.Fprintf(&b, ", would have been %s (%s)", would, d.ShadowReason)
	}
	if d.Retries > 0 {
		fmt.Fprintf(&b, ", after %d failed (%s)", d.Retries, d.RetryCause)
	}
	if d.Stale {
		b.WriteString(", STALE")
	}
	if d.Unproven {
		b.WriteString(", UNPROVEN")
	}
	return b.String()
}
