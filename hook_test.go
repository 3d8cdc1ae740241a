package tidegate_test

import (
	"testing"

	"github.com/tidegatedb/tidegate"
)

func TestChangeKindString(t *testing.T) {
	t.Parallel()
	for kind, want := range map[tidegate.ChangeKind]string{
		0:                          "none",
		tidegate.NodeAdded:         "node-added",
		tidegate.NodeRemoved:       "node-removed",
		tidegate.NodeFound:         "node-found",
		tidegate.NodeFailing:       "node-failing",
		tidegate.NodeAnswering:     "node-answering",
		tidegate.RoleChanged:       "role-changed",
		tidegate.NodeRestarted:     "node-restarted",
		tidegate.HistoryChanged:    "history-changed",
		tidegate.PrimariesConflict: "primaries-conflict",
		tidegate.ConflictOver:      "conflict-over",
		tidegate.RolloutChanged:    "rollout-changed",
		tidegate.NodeEjected:       "node-ejected",
		tidegate.NodeReturned:      "node-returned",
		tidegate.FloorRaised:       "floor-raised",
		tidegate.FloorDropped:      "floor-dropped",
		tidegate.FallbacksHigh:     "fallbacks-high",
		tidegate.FallbacksNormal:   "fallbacks-normal",
		tidegate.NodeSlow:          "node-slow",
		tidegate.NodeQuick:         "node-quick",
		tidegate.NodeFenced:        "node-fenced",
		tidegate.NodeUnfenced:      "node-unfenced",
		200:                        "change-200",
	} {
		if got := kind.String(); got != want {
			t.Errorf("kind %d is %q, want %q", kind, got, want)
		}
	}
	// A kind that is added gets a name of its own, and an entry above.
	if got, want := (tidegate.NodeUnfenced + 1).String(), "change-22"; got != want {
		t.Errorf("the kind after the last one is %q, want %q", got, want)
	}
}
