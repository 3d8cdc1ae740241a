package route

import (
	"math"
	"reflect"
	"sync"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// floor is what a replica must have for any read of this process, whatever its class and
// its session. It never changes; nil is no floor.
type floor struct {
	epoch tidegate.Epoch
	mark  tidegate.Position
	// open tells that it is not known yet how much more it is: no replica will do.
	open bool
	// doubtful tells that it is more than the primary has been seen to have.
	doubtful bool
}

// beyondAll is covered by no position.
var beyondAll = tidegate.Beyond(math.MaxUint64)

// in returns what a replica of the table must cover.
func (f *floor) in(t *freshness.Table) tidegate.Position {
	if f == nil { // short enough to be inlined
		return tidegate.Position{}
	}
	return f.within(t)
}

func (f *floor) within(t *freshness.Table) tidegate.Position {
	if f.open || f.epoch != t.Epoch {
		return beyondAll // until it has been judged in this history
	}
	return f.mark
}

// floors are the books of the floor. What is asked for is judged as a session's mark is,
// each by itself, so that one that is dropped takes no other with it.
type floors struct {
	mu    sync.Mutex
	parts []*ledger.Ledger
}

// FloorNews says what has become of the floor.
type FloorNews struct {
	// Raised tells that replicas must have more from now on, Dropped that something that
	// was asked for belongs to another history and is not asked for any more.
	Raised, Dropped bool
	// Epoch and Mark are what is asked for now; the zero Mark is nothing.
	Epoch tidegate.Epoch
	Mark  tidegate.Position
}

// Floor returns what a replica must have for any read, as far as it is known.
func (r *Router) Floor() tidegate.Position {
	if f := r.floor.Load(); f != nil {
		return f.mark
	}
	return tidegate.Position{}
}

// RaiseFloor makes what the books ask for a part of the floor, from the next decision on.
// Nobody else uses the books from then on.
func (r *Router) RaiseFloor(l *ledger.Ledger) FloorNews {
	s := &r.floors
	s.mu.Lock()
	defer s.mu.Unlock()
	marks := l.Marks()
	for _, p := range s.parts {
		if reflect.DeepEqual(p.Marks(), marks) {
			return FloorNews{}
		}
	}
	s.parts = append(s.parts, l)
	return r.settleFloor()
}

// FloorUnsure reports whether the floor may be another one by the newest table.
func (r *Router) FloorUnsure() bool {
	f := r.floor.Load()
	return f != nil && (f.open || f.doubtful || f.epoch != r.facts.Table().Epoch)
}

// JudgeFloor looks at the floor again, after the table has changed.
func (r *Router) JudgeFloor() FloorNews {
	r.floors.mu.Lock()
	defer r.floors.mu.Unlock()
	return r.settleFloor()
}

// settleFloor derives the floor from its parts by the newest table, and asks for the
// looks that are missing. r.floors is locked.
func (r *Router) settleFloor() FloorNews {
	s, t := &r.floors, r.facts.Table()
	var asks ledger.Asks
	next := floor{epoch: t.Epoch}
	news := FloorNews{Epoch: t.Epoch}
	var sure *ledger.Ledger // all that is settled and no more in doubt
	var kept []*ledger.Ledger
	for _, l := range s.parts {
		l.Lock()
		status, mark, doubtful := l.Settle(t, &asks), l.Mark(), l.Doubtful()
		covered := status == ledger.Settled && (mark.IsZero() || sure != nil && sure.Mark().Covers(mark))
		l.Unlock()
		switch {
		case status == ledger.Changed:
			news.Dropped = true
			continue
		case covered:
			continue
		case status == ledger.Open:
			next.open = true
			kept = append(kept, l)
			continue
		}
		next.mark = next.mark.Join(mark)
		switch {
		case doubtful:
			next.doubtful = true
			kept = append(kept, l)
		case sure == nil:
			sure = l
			kept = append(kept, l)
		default:
			sure.Reached(t.Epoch, mark)
		}
	}
	s.parts = kept
	if next.open || next.doubtful {
		r.askForFloor(t, &asks)
	}
	before := r.floor.Load()
	if len(kept) == 0 {
		r.floor.Store(nil)
	} else {
		r.floor.Store(&next)
	}
	news.Mark = next.mark
	news.Raised = !next.mark.IsZero() && (before == nil || before.epoch != next.epoch || !before.mark.Covers(next.mark))
	return news
}

// askForFloor asks for the looks that judging the floor takes.
func (r *Router) askForFloor(t *freshness.Table, asks *ledger.Asks) {
	if len(asks.Pending) > 0 {
		r.facts.WantSettled(asks.Pending)
	}
	now := mono.Now()
	for i := range t.Nodes {
		if asks.Nodes>>uint(i)&1 != 0 || i == t.Primary {
			r.facts.Demand(i, now)
		}
	}
}
