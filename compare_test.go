package tidegate_test

import (
	"testing"

	"github.com/tidegatedb/tidegate"
)

// Every part of a mark counts, and no order does.
func TestTokenSame(t *testing.T) {
	t.Parallel()
	full := func() []tidegate.Mark {
		return []tidegate.Mark{
			{Cluster: "a", Epoch: tidegate.Epoch{System: 1, Line: 1}, Position: tidegate.At(1), Seen: []tidegate.Incarnation{1, 2}},
			{
				Cluster: "b", Epoch: tidegate.Epoch{System: 1, Line: 1}, Position: tidegate.At(9), Shown: tidegate.At(8),
				Seen: []tidegate.Incarnation{1}, CatchUp: true, Primary: 4, Pending: []uint64{5}, Patient: true,
			},
		}
	}
	same := func(a, b []tidegate.Mark) bool {
		return tidegate.NewToken(a...).Same(tidegate.NewToken(b...))
	}
	if a := full(); !same(full(), a) || !same(nil, nil) || same(a, a[:1]) || same(nil, a) {
		t.Error("a token is not the same as itself, or as a part of it")
	}
	if tidegate.CatchUpToken().Same(tidegate.Token{}) || !tidegate.CatchUpToken().Same(tidegate.CatchUpToken()) {
		t.Error("the duty to catch up with all else does not count")
	}
	turned := full()
	turned[0], turned[1] = turned[1], turned[0]
	turned[1].Seen = []tidegate.Incarnation{2, 1}
	if !same(full(), turned) {
		t.Error("another order counts")
	}
	for name, edit := range map[string]func(m *tidegate.Mark){
		"cluster":      func(m *tidegate.Mark) { m.Cluster = "c" },
		"system":       func(m *tidegate.Mark) { m.Epoch.System++ },
		"line":         func(m *tidegate.Mark) { m.Epoch.Line++ },
		"position":     func(m *tidegate.Mark) { m.Position = tidegate.Beyond(9) },
		"shown":        func(m *tidegate.Mark) { m.Shown = tidegate.At(9) },
		"seen":         func(m *tidegate.Mark) { m.Seen = []tidegate.Incarnation{2} },
		"more seen":    func(m *tidegate.Mark) { m.Seen = append(m.Seen, 2) },
		"catch-up":     func(m *tidegate.Mark) { m.CatchUp, m.Primary = false, 0 },
		"its birth":    func(m *tidegate.Mark) { m.Primary++ },
		"pending":      func(m *tidegate.Mark) { m.Pending = []uint64{6} },
		"more pending": func(m *tidegate.Mark) { m.Pending = append(m.Pending, 6) },
		"patience":     func(m *tidegate.Mark) { m.Patient = false },
	} {
		other := full()
		edit(&other[1])
		if same(full(), other) || same(other, full()) {
			t.Errorf("%s does not count", name)
		}
	}
}

func TestTokenMomentary(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mark tidegate.Mark
		want bool
	}{
		"position": {tidegate.Mark{Position: tidegate.At(1)}, false},
		"shown":    {tidegate.Mark{Shown: tidegate.At(1)}, false},
		"patience": {tidegate.Mark{Patient: true}, false},
		"seen":     {tidegate.Mark{Seen: []tidegate.Incarnation{1}}, true},
		"catch-up": {tidegate.Mark{CatchUp: true}, true},
		"pending":  {tidegate.Mark{Pending: []uint64{1}}, true},
	} {
		c.mark.Cluster = "b"
		if got := tidegate.NewToken(at("a", 1), c.mark).Momentary(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if (tidegate.Token{}).Momentary() || !tidegate.CatchUpToken().Momentary() {
		t.Error("nothing, or the duty to catch up with all else")
	}
}
