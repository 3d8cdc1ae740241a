package freshness

import (
	"math/rand/v2"
	"testing"

	"github.com/tidegatedb/tidegate"
)

func TestSamples(t *testing.T) {
	t.Parallel()
	at, beyond := tidegate.At, tidegate.Beyond
	for _, c := range []struct {
		name    string
		looks   []sample
		applied tidegate.Position
		want    int64
	}{
		{"never looked", nil, at(9), 0},
		{"behind every look", []sample{{at(10), 1}}, at(9), 0},
		{"exactly there", []sample{{at(10), 1}}, at(10), 1},
		{"ahead of a look that is old by now", []sample{{at(10), 1}}, at(99), 1},
		{"between two", []sample{{at(10), 1}, {at(20), 2}}, at(19), 1},
		{"at the newer", []sample{{at(10), 1}, {at(20), 2}}, at(20), 2},
		{"an idle primary stays fresh", []sample{{at(10), 1}, {at(10), 2}, {at(10), 3}}, at(10), 3},
		{"behind an idle primary", []sample{{at(10), 1}, {at(20), 2}, {at(20), 3}}, at(10), 1},
		{"beyond a position is not at it", []sample{{beyond(10), 1}}, at(10), 0},
		{"beyond a position is at the next", []sample{{beyond(10), 1}}, at(11), 1},
		{"a look that was sent earlier", []sample{{at(20), 2}, {at(10), 1}}, at(10), 0},
		{"the same, sent earlier", []sample{{at(10), 5}, {at(10), 3}}, at(10), 5},
		{"more, sent earlier", []sample{{at(10), 5}, {at(20), 3}}, at(20), 5},
		{"the primary went back", []sample{{at(20), 1}, {at(10), 2}}, at(10), 0},
		{"the primary went back, and this one had more", []sample{{at(20), 1}, {at(10), 2}}, at(20), 2},
	} {
		var s samples
		for _, l := range c.looks {
			s.add(l.pos, l.sent)
		}
		if got := s.current(c.applied); got != c.want {
			t.Errorf("%s: current at %d, want %d", c.name, got, c.want)
		}
	}
	var s samples
	s.add(at(1), 1)
	s.follow(nil, tidegate.Epoch{})
	if got := s.current(at(9)); got != 0 {
		t.Errorf("after a reset: %d", got)
	}
}

// A replica may look older than it is, never newer, however much was thinned
// out; and one that is not far behind looks exactly as old as it is.
func TestSamplesAgainstTheWholeHistory(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		smooth := seed%4 != 0 // else positions can go back
		var s samples
		var all []sample
		at, sent := uint64(1), int64(0)
		for range 3000 {
			sent += 1 + r.Int64N(5)
			switch r.IntN(10) {
			case 0, 1, 2: // idle
			case 3:
				if !smooth { // a crash that lost asynchronous commits
					at -= r.Uint64N(min(at, 5))
				}
			default:
				at += r.Uint64N(7)
			}
			pos := tidegate.At(at)
			if !smooth && r.IntN(5) == 0 {
				pos = tidegate.Beyond(at)
			}
			s.add(pos, sent)
			all = append(all, sample{pos, sent})

			if len(s.s) > maxSamples {
				t.Fatalf("seed %d: %d samples kept, at most %d", seed, len(s.s), maxSamples)
			}
			lag := r.Uint64N(at + 2)
			if r.IntN(2) == 0 {
				lag = r.Uint64N(min(at, 100) + 1)
			}
			applied := tidegate.At(at + 1 - lag)
			exact, behind := int64(0), 0
			for i := len(all) - 1; i >= 0 && exact == 0; i-- {
				if applied.Covers(all[i].pos) {
					exact, behind = all[i].sent, len(all)-1-i
				}
			}
			got := s.current(applied)
			if got > exact {
				t.Fatalf("seed %d: a replica at %v looks current at %d, it is at %d", seed, applied, got, exact)
			}
			if got == 0 && exact != 0 && smooth {
				t.Fatalf("seed %d: how old a replica at %v is was forgotten", seed, applied)
			}
			if behind < maxSamples/4 && smooth && got != exact {
				t.Fatalf("seed %d: a replica %d looks behind looks current at %d, it is at %d", seed, behind, got, exact)
			}
		}
	}
}
