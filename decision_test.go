package tidegate_test

import (
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
)

func TestReasonString(t *testing.T) {
	t.Parallel()
	for reason, want := range map[tidegate.Reason]string{
		0:                             "none",
		tidegate.ReasonStayed:         "stayed",
		tidegate.ReasonCovered:        "covered",
		tidegate.ReasonWithinBudget:   "within-budget",
		tidegate.ReasonStrong:         "strong",
		tidegate.ReasonNoSession:      "no-session",
		tidegate.ReasonNoReplica:      "no-replica",
		tidegate.ReasonBehind:         "behind",
		tidegate.ReasonHistoryChanged: "history-changed",
		tidegate.ReasonReplicaFailed:  "replica-failed",
		tidegate.ReasonPredicted:      "predicted",
		tidegate.ReasonRollout:        "rollout",
		tidegate.ReasonShadow:         "shadow",
		tidegate.ReasonStale:          "stale",
		tidegate.ReasonShed:           "shed",
		200:                           "reason-200",
	} {
		if got := reason.String(); got != want {
			t.Errorf("reason %d is %q, want %q", reason, got, want)
		}
	}
	// A reason that is added gets a name of its own, and an entry above.
	if got, want := (tidegate.ReasonShed + 1).String(), "reason-15"; got != want {
		t.Errorf("the reason after the last one is %q, want %q", got, want)
	}
}

func TestDecisionString(t *testing.T) {
	t.Parallel()
	board := tidegate.Relaxed("board", "w", tidegate.Within(time.Minute))
	for _, c := range []struct {
		d    tidegate.Decision
		want string
	}{
		{
			tidegate.Decision{Cluster: "main", Node: "b", Role: tidegate.RoleReplica, Reason: tidegate.ReasonStayed},
			"causal read of main: replica b (stayed)",
		},
		{
			tidegate.Decision{Cluster: "main", Reason: tidegate.ReasonBehind, Required: tidegate.Beyond(7), Observed: tidegate.At(7), Waited: 20 * time.Millisecond},
			"causal read of main: nowhere (behind), required >7, had 7, waited 20ms",
		},
		{
			tidegate.Decision{Cluster: "main", Node: "b", Role: tidegate.RoleReplica, Class: board, Reason: tidegate.ReasonWithinBudget, Staleness: 1500*time.Microsecond + 1, StalenessKnown: true},
			"board (relaxed) read of main: replica b (within-budget), at most 1.5ms old",
		},
		{
			tidegate.Decision{Cluster: "main", Node: "b", Role: tidegate.RoleReplica, Staleness: time.Second},
			"causal read of main: replica b (none)", // not known: not said
		},
		{
			tidegate.Decision{
				Cluster: "main", Node: "a", Role: tidegate.RolePrimary, Reason: tidegate.ReasonReplicaFailed,
				Required: tidegate.At(9), Observed: tidegate.At(12), Waited: time.Millisecond, StalenessKnown: true, Retries: 2, RetryCause: tidegate.RetryRecoveryConflict, Unproven: true,
			},
			"causal read of main: primary a (replica-failed), required 9, had 12, waited 1ms, at most 0s old, after 2 failed (recovery-conflict), UNPROVEN",
		},
		{
			tidegate.Decision{Cluster: "main", Node: "b", Role: tidegate.RoleReplica, Class: board, Reason: tidegate.ReasonStale, Queued: 50 * time.Millisecond, Stale: true},
			"board (relaxed) read of main: replica b (stale), queued 50ms, STALE",
		},
		{
			tidegate.Decision{Cluster: "main", Node: "a", Role: tidegate.RolePrimary, Reason: tidegate.ReasonShadow, ShadowNode: "b", ShadowReason: tidegate.ReasonCovered},
			"causal read of main: primary a (shadow), would have been replica b (covered)",
		},
		{
			tidegate.Decision{Cluster: "main", Node: "a", Role: tidegate.RolePrimary, Reason: tidegate.ReasonShadow, ShadowReason: tidegate.ReasonBehind, Retries: 1, RetryCause: tidegate.RetryPool},
			"causal read of main: primary a (shadow), would have been no replica (behind), after 1 failed (pool)",
		},
	} {
		if got := c.d.String(); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}
