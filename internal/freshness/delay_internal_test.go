package freshness

import (
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
)

const ms = int64(time.Millisecond)

func TestMoments(t *testing.T) {
	t.Parallel()
	var m moments
	if got := m.when(first, tidegate.At(5), 70); got != 70 {
		t.Errorf("nothing is known, and position 5 is there since %d", got)
	}
	m.note(first, tidegate.At(10), 10*ms)
	m.note(first, tidegate.At(10), 20*ms)       // nothing new
	m.note(first, tidegate.At(12), 10*ms+ms/2)  // too close to tell more
	m.note(first, tidegate.At(20), 30*ms)       //
	m.note(first, tidegate.At(30), 40*ms)       //
	m.note(first, tidegate.At(25), 50*ms)       // a commit that was captured late
	m.note(second, tidegate.Position{}, 60*ms)  // another history forgets the first
	m.note(first, tidegate.Position{}, 60*ms)   //
	m.note(first, tidegate.At(100), 100*ms)     //
	m.note(first, tidegate.At(200), 200*ms)     //
	m.note(first, tidegate.Beyond(300), 300*ms) //
	for _, c := range []struct {
		pos  tidegate.Position
		want int64
	}{
		{tidegate.At(1), 100 * ms}, {tidegate.At(100), 100 * ms}, {tidegate.Beyond(100), 200 * ms}, {tidegate.At(150), 200 * ms},
		{tidegate.Beyond(200), 300 * ms}, {tidegate.At(301), 999 * ms},
	} {
		if got := m.when(first, c.pos, 999*ms); got != c.want {
			t.Errorf("%v is there since %d ms, want %d", c.pos, got/ms, c.want/ms)
		}
	}
	if got := m.when(second, tidegate.At(1), 999); got != 999 {
		t.Errorf("of another history: since %d", got)
	}
	for _, c := range []struct {
		applied     tidegate.Position
		least, most int64
	}{
		{tidegate.At(50), 900 * ms, 941 * ms}, // the zero position was noted at 60 ms
		{tidegate.At(100), 800 * ms, 901 * ms},
		{tidegate.At(199), 800 * ms, 901 * ms},
		{tidegate.At(200), 700 * ms, 801 * ms},
		{tidegate.At(301), 0, 701 * ms},
	} {
		least, most := m.bounds(first, &Observation{Applied: c.applied, Sent: 1000 * ms, Received: 1001 * ms})
		if least != c.least || most != c.most {
			t.Errorf("%v: from %d to %d ms, want %d to %d", c.applied, least/ms, most/ms, c.least/ms, c.most/ms)
		}
	}
	if least, most := m.bounds(second, &Observation{Applied: tidegate.At(5)}); least != 0 || most != -1 {
		t.Errorf("of another history: %d to %d", least, most)
	}
}

func TestMomentsKeepTheNewest(t *testing.T) {
	t.Parallel()
	var m moments
	for i := range uint64(3 * maxMoments) {
		m.note(first, tidegate.At(i+1), int64(i+1)*2*ms)
	}
	oldest := int64(2*maxMoments+1) * 2 * ms
	if got := m.when(first, tidegate.At(1), 0); got != oldest {
		t.Errorf("the oldest that is left is of %d ms, want %d", got/ms, oldest/ms)
	}
	if got := m.when(first, tidegate.At(3*maxMoments), 0); got != 3*maxMoments*2*ms {
		t.Errorf("the newest is of %d ms", got/ms)
	}
}

func TestEstimate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what                      string
		before, least, most, want int64
	}{
		{"nothing is known", 40, 0, -1, 40},
		{"it lies within", 40, 30, 50, 40},
		{"it is less", 40, 0, 10, 10},
		{"it is less, and more than something", 40, 5, 10, 10},
		{"it is more, nobody knows how much", 40, 100, -1, 125},
		{"it is more, but not much", 40, 100, 110, 110},
		{"it is more by far", 40, 100, 500, 125},
	} {
		if got := estimate(c.before, c.least, c.most); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}
