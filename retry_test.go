package tidegate_test

import (
	"testing"

	"github.com/tidegatedb/tidegate"
)

func TestRetryCauseString(t *testing.T) {
	t.Parallel()
	names := map[tidegate.RetryCause]string{
		0:                              "none",
		tidegate.RetryConnection:       "connection",
		tidegate.RetryShutdown:         "shutdown",
		tidegate.RetryPool:             "pool",
		tidegate.RetryRecoveryConflict: "recovery-conflict",
		tidegate.RetryNotReplayed:      "not-replayed",
		tidegate.RetryUnsupported:      "unsupported",
		tidegate.RetryStalePlan:        "stale-plan",
		tidegate.RetryRole:             "role",
		tidegate.RetryUnproven:         "unproven",
	}
	for cause, want := range names {
		if got := cause.String(); got != want {
			t.Errorf("cause %d is %q, want %q", cause, got, want)
		}
	}
	// A cause that is added gets a name of its own, and an entry above.
	if len(names) != tidegate.RetryCauses {
		t.Errorf("%d names of %d causes", len(names), tidegate.RetryCauses)
	}
	if got, want := tidegate.RetryCause(tidegate.RetryCauses).String(), "retry-cause-10"; got != want {
		t.Errorf("the cause after the last one is %q, want %q", got, want)
	}
}
