package route

import (
	"math"
	"slices"
	"time"
)

const (
	// A spell begins when reads that fall back hold more than spellFrom slots, on
	// average over averageOver or so, or queue; it ends when they hold fewer than
	// spellTo and none has queued for spellOver. Outside of it work takes what it takes
	// without such reads.
	spellFrom, spellTo = .2, .1
	averageOver        = float64(time.Second)
	spellOver          = int64(2 * time.Second)
	// firstLimit is the part of the most slots that there are when a spell begins: all
	// processes begin at once.
	firstLimit = 8

	// calmWork is how much calm work is remembered, calmEvery how far it is apart at
	// least, so that a moment does not stand for all, and calmEnough how much is
	// something to compare with.
	calmWork   = 128
	calmEvery  = int64(20 * time.Millisecond)
	calmEnough = 16
	// Work is slow that takes a quarter longer than nine of ten calm pieces, and no less
	// than slowSlack longer: nobody notices that.
	slowQuantile = .9
	slowFactor   = 1.25
	slowSlack    = int64(500 * time.Microsecond)

	// A round ends with roundWork pieces or roundSlow slow ones, but not before
	// shortRound; or after longRound with what there is. Until the limit is cut for the
	// first time a quarter of them is enough: whoever finds no room meanwhile is
	// sent away for nothing, if there is some.
	roundWork  = 16
	roundSlow  = 4
	shortRound = int64(50 * time.Millisecond)
	longRound  = int64(500 * time.Millisecond)
	// mostLongest bounds what is made of the longest work, and a longestFades'th of it is
	// forgotten each time that the limit is raised.
	mostLongest  = int64(2 * time.Second)
	longestFades = 4
	// What becomes of the limit after a round: with most of its work slow, with more
	// than one of ten, with fewer; and with fewer as long as it has not been cut in this
	// spell.
	cutDeep, cut, grow, growFirst = .5, .7, 1.3, 2
)

// pressure makes the limit follow the work that belongs on the primary: writes, and reads
// that are not there in a replica's place. What those that are do to it shows in how long
// this process's own work takes there, whatever it is that is scarce: cores, disks or
// locks. It is compared with what it took when hardly a read fell back, by how much of it
// is slow and not by how slow it is, so that a write that waits for a lock, or is long by
// itself, says no more than any other.
//
// The limit is multiplied after each round of work: by less than one when too much of it
// was slow, by more than one when little was and reads queued. A process that has no work
// there has nothing to go by: its limit is raised to the most.
type pressure struct {
	most  float64
	fixed bool

	calm  [calmWork]int64 // a ring of how long calm work took
	known int             // how much it has seen
	took  int64           // when the last one was taken in
	slow  int64           // what takes longer is slow

	average float64 // of the slots in use
	counted int64   // when it was last brought up to date
	spell   bool
	tight   bool  // the limit has been cut in this spell
	scarce  bool  // a read queued in this round
	queued  int64 // when the last one did
	// settled is when the limit was last lowered in this spell, or the spell began: what
	// was sent before says nothing of what it is since.
	settled int64
	// longest is how long the longest work took lately: the limit is not raised again
	// before such work can tell what has come of the last time.
	longest, grown int64
	round          struct {
		began     int64
		work, bad int
		// begun is how much work was sent in it, first when the first of it was.
		begun int
		first int64
	}
}

// look brings the average up to date, and begins or ends a spell or ends a round if it
// is time. The limiter is locked.
func (l *limiter) look(now int64) {
	if l.fixed {
		return
	}
	old := math.Exp(-float64(now-l.counted) / averageOver)
	l.average = l.average*old + float64(l.used)*(1-old)
	l.counted = now
	switch {
	case !l.spell && (l.average > spellFrom || l.queue.Len() > 0):
		l.spell, l.tight, l.settled, l.longest = true, false, now, 0
		l.begin(now)
	case l.spell && l.average < spellTo && l.queue.Len() == 0 && now-l.queued > spellOver:
		l.spell = false
		l.limit = l.first()
	case l.spell && l.ended(now):
		l.adjust(now)
		l.begin(now)
	}
	l.serve(now)
}

// first is the limit outside of a spell, and until there is something to compare with.
// Without any work there will be nothing.
func (p *pressure) first() float64 {
	if p.known == 0 && p.round.begun == 0 {
		return p.most
	}
	return max(1, p.most/firstLimit)
}

func (p *pressure) begin(now int64) {
	p.scarce = false
	p.round.began, p.round.work, p.round.bad, p.round.begun, p.round.first = now, 0, 0, 0, 0
}

// ended reports whether the round has. Work that was sent in it is waited for, until it is
// known to be slow.
func (p *pressure) ended(now int64) bool {
	r := &p.round
	age, enough := now-r.began, roundWork
	if !p.tight {
		enough /= 4
	}
	return (r.work >= enough || r.bad >= roundSlow) && age >= shortRound ||
		(r.work > 0 || r.begun == 0 || now-r.first > p.slow) && age >= longRound
}

// adjust is the end of a round. The limiter is locked.
func (l *limiter) adjust(now int64) {
	r := &l.round
	if r.work == 0 { // whatever was sent has not been answered, and is slow by now
		r.work, r.bad = r.begun, r.begun
	}
	switch {
	case l.known < calmEnough && r.work > 0:
		l.limit = l.first()
	case r.bad*2 > r.work:
		l.limit, l.tight, l.settled = l.limit*cutDeep, true, now
	case r.bad*10 > r.work && (l.tight || r.bad > 1):
		l.limit, l.tight, l.settled = l.limit*cut, true, now
	case !l.scarce:
		// More than were asked for would be tried unawares.
	case now-max(l.settled, l.grown) < l.longest:
	case l.tight:
		l.raise(grow, now)
	default:
		l.raise(growFirst, now)
	}
	l.limit = min(max(l.limit, leastLimit), l.most)
}

func (l *limiter) raise(times float64, now int64) {
	l.limit, l.grown = l.limit*times, now
	l.longest -= l.longest / longestFades
}

// begins notes that work is on its way.
func (l *limiter) begins(now int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.look(now); l.round.begun == 0 {
		l.round.first = now
	}
	l.round.begun++
}

// unbegins takes back that work has begun.
func (l *limiter) unbegins() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.round.begun > 0 {
		l.round.begun--
	}
}

// ends takes in that the primary has answered work that was sent at began.
func (l *limiter) ends(began, now int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fixed {
		return
	}
	l.look(now)
	// At the least limit it is not the reads that make work slow: this is what is calm
	// today. A process that is new has to take it as it is.
	alone := l.used == 0 && l.left < began
	if !l.spell && alone || l.spell && (l.limit <= leastLimit || l.known < calmEnough) {
		l.learn(now-began, now)
	}
	if l.spell && began >= l.settled {
		l.round.work++
		l.longest = max(l.longest, min(now-began, mostLongest))
		if now-began > l.slow {
			l.round.bad++
		}
		l.look(now)
	}
}

// learn takes calm work in.
func (l *limiter) learn(took, now int64) {
	if l.known > 0 && now-l.took < calmEvery {
		return
	}
	l.calm[l.known%calmWork] = took
	l.known++
	l.took = now
	if !l.spell {
		l.limit = l.first()
	}
	// Sorted for each of the first ones, then four times for each turn of the ring.
	if l.known < calmWork || l.known%(calmWork/4) == 0 {
		sorted := slices.Clone(l.calm[:min(l.known, calmWork)])
		slices.Sort(sorted)
		q := sorted[int(float64(len(sorted)-1)*slowQuantile)]
		l.slow = q + max(int64(float64(q)*(slowFactor-1)), slowSlack)
	}
}
