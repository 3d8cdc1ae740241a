package httpgate

import (
	"slices"

	"github.com/tidegatedb/tidegate"
)

// onlySeen reports whether all that a token requires comes from reads on replicas that
// have not been bounded yet. What has a position may come from a write.
func onlySeen(t tidegate.Token) bool {
	return !t.CatchesUp() && !slices.ContainsFunc(t.Marks(), func(m tidegate.Mark) bool {
		return !m.Position.IsZero() || !m.Shown.IsZero() || m.CatchUp || len(m.Pending) > 0
	})
}
