package httpgate

import (
	"testing"

	"github.com/tidegatedb/tidegate"
)

// Every part of a mark counts, and no order does.
func TestSame(t *testing.T) {
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
	same := func(a, b []tidegate.Mark) bool { return history{marks: a}.same(history{marks: b}) }
	if a := full(); !same(full(), a) || !same(nil, nil) || same(a, a[:1]) || same(nil, a) {
		t.Error("a token is not the same as itself, or as a part of it")
	}
	if (history{}).same(history{rest: true}) {
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
		"catch-up":     func(m *tidegate.Mark) { m.CatchUp = false },
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

func TestMomentaryAndOnlySeen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mark                tidegate.Mark
		momentary, onlySeen bool
	}{
		"nothing":  {tidegate.Mark{}, false, true},
		"position": {tidegate.Mark{Position: tidegate.At(1)}, false, false},
		"beyond 0": {tidegate.Mark{Position: tidegate.Beyond(0)}, false, false},
		"shown":    {tidegate.Mark{Shown: tidegate.At(1)}, false, false},
		"seen":     {tidegate.Mark{Seen: []tidegate.Incarnation{1}}, true, true},
		"catch-up": {tidegate.Mark{CatchUp: true}, true, false},
		"pending":  {tidegate.Mark{Pending: []uint64{1}}, true, false},
		"patience": {tidegate.Mark{Patient: true}, false, true},
	} {
		for _, marks := range [][]tidegate.Mark{{c.mark}, {{}, c.mark}} {
			if got := (history{marks: marks}).momentary(); got != c.momentary {
				t.Errorf("%s: momentary is %v", name, got)
			}
			if got := (history{marks: marks}).onlySeen(); got != c.onlySeen {
				t.Errorf("%s: onlySeen is %v", name, got)
			}
		}
	}
	if h := (history{rest: true}); !h.momentary() || h.onlySeen() {
		t.Error("the duty to catch up with all else does not count")
	}
}
