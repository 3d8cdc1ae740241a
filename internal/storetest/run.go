package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
)

// Subject is an empty store, and what the suite does to it.
type Subject struct {
	// Store is looked at.
	Store tidegate.Store
	// Pass makes that much time pass for the store.
	Pass func(ctx context.Context, d time.Duration) error
	// Lose makes the store lose a key's entry, as an eviction does.
	Lose func(ctx context.Context, key string) error
}

// Run runs each case in a subtest. run gets an empty store ready and calls look with
// it, once, perhaps in a bubble of testing/synctest.
func Run(t *testing.T, run func(t *testing.T, look func(t *testing.T, s Subject))) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			looked := false
			run(t, func(t *testing.T, s Subject) {
				looked = true
				for _, problem := range c.problems(t.Context(), s) {
					t.Error(problem)
				}
			})
			if !looked {
				t.Error("nothing was looked at")
			}
		})
	}
}

// Failing returns the names of the cases that find something wrong with a store. It is
// to show that the suite does.
func Failing(ctx context.Context, open func() Subject) []string {
	var names []string
	for _, c := range cases {
		if len(c.problems(ctx, open())) > 0 {
			names = append(names, c.name)
		}
	}
	return names
}

// A testCase looks at one thing.
type testCase struct {
	name string
	look func(*desk)
}

func (c testCase) problems(ctx context.Context, s Subject) []string {
	d := &desk{ctx: ctx, Subject: s, ttl: s.Store.TTL()}
	c.look(d)
	return d.problems
}

var cases = []testCase{
	{"NewEntry", newEntry},
	{"SaveMakesWhole", saveMakesWhole},
	{"ForeignBirth", foreignBirth},
	{"LostBetweenLoadAndSave", lostBetweenLoadAndSave},
	{"SavesAddUp", savesAddUp},
	{"ForgetsWhatIsNamed", forgetsWhatIsNamed},
	{"SavesInAnyOrder", savesInAnyOrder},
	{"SavesAtOnce", savesAtOnce},
	{"TokensComeBackAsTheyWere", tokensComeBack},
	{"Overflow", overflow},
	{"RoomAtTheLimit", roomAtTheLimit},
	{"KeysDoNotMix", keysDoNotMix},
	{"Marker", marker},
	{"MarkersOfOthers", markersOfOthers},
	{"MarkerEnds", markerEnds},
	{"LoadsKeepAlive", loadsKeepAlive},
	{"SavesKeepAlive", savesKeepAlive},
	{"EntryEnds", entryEnds},
	{"AsTheReference", asTheReference},
}
