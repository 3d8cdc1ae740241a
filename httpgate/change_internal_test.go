package httpgate

import (
	"testing"

	"github.com/tidegatedb/tidegate"
)

func TestOnlySeen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mark tidegate.Mark
		want bool
	}{
		"position": {tidegate.Mark{Position: tidegate.At(1)}, false},
		"beyond 0": {tidegate.Mark{Position: tidegate.Beyond(0)}, false},
		"shown":    {tidegate.Mark{Shown: tidegate.At(1)}, false},
		"seen":     {tidegate.Mark{Seen: []tidegate.Incarnation{1}}, true},
		"catch-up": {tidegate.Mark{CatchUp: true}, false},
		"pending":  {tidegate.Mark{Pending: []uint64{1}}, false},
		"patience": {tidegate.Mark{Patient: true}, true},
	} {
		c.mark.Cluster = "b"
		if got := onlySeen(tidegate.NewToken(tidegate.Mark{Cluster: "a", Seen: []tidegate.Incarnation{2}}, c.mark)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !onlySeen(tidegate.Token{}) || onlySeen(tidegate.CatchUpToken()) {
		t.Error("nothing, or the duty to catch up with all else")
	}
}
