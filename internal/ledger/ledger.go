// Package ledger keeps the books of one session in one cluster: what it must see
// (mark), what of that the primary must have shown (shown), which incarnations
// it read from without knowing yet how far that was (seen), and whether it must
// catch up with everything.
//
// The ledger does not know what a replica is or which one is best. It is told of
// reads and writes, and says, given a table of facts, what a node must cover.
package ledger

import (
	"math"
	"slices"
	"sync"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/mono"
	"github.com/tidegatedb/tidegate/internal/rules"
)

// maxEntries bounds seen in memory: a token's worth of our own and one that
// arrived.
const maxEntries = 2 * tidegate.MaxSeen

// entry is an incarnation that the session read from.
type entry struct {
	id    tidegate.Incarnation
	epoch tidegate.Epoch
	// since is when the last finished read ended, or when a token that names
	// the incarnation arrived. Zero: nothing to be bounded yet.
	since int64
	fly   int32 // reads in flight
	node  int32 // where it was found last: a hint
}

// catchUp is the duty to see all that was committed up to a moment.
type catchUp struct {
	open    bool
	since   int64
	primary tidegate.Incarnation // at its birth; zero not known yet
	pending []uint64
}

// Ledger is one session's books for one cluster. The methods whose comment says
// so must be called between [Ledger.Lock] and [Ledger.Unlock], so that picking a
// node and noting the read are one step; all others lock by themselves.
type Ledger struct {
	cluster string
	nonce   uint64
	birth   func() (tidegate.Epoch, tidegate.Incarnation)

	mu          sync.Mutex
	epoch       tidegate.Epoch // of mark, shown and catch; zero while nothing is known
	mark, shown tidegate.Position
	seen        []entry
	catch       catchUp
	// others are marks of other epochs than ours, kept until a look at the
	// primary sent after they arrived judges them.
	others  []tidegate.Mark
	arrived int64
	// claimed is what tokens say of mark, since the time at which the last of them
	// arrived, until a look at the primary sent later has told whether there is such a
	// position at all.
	claimed      tidegate.Position
	claimedSince int64
	// volatile is the primary's life in which mark was not durable yet, as of volatileSince;
	// zero when it is durable.
	volatile      tidegate.Incarnation
	volatileSince int64
	// verdict is what the last judgement said, until it is asked for; ignores drops what is
	// foreign.
	verdict tidegate.Verdict
	ignores bool
	// onPrimary counts statements in flight on the primary, in its life there; more
	// than one life has no primary that could bound them.
	onPrimary int
	there     tidegate.Incarnation
	// news counts what the session came to know that a report decided before does
	// not cover; see Restart.
	news uint64
	// readSite is where the application has read from a replica last, if that is asked for.
	readSite string
	// patient allows causal reads to wait longer than their class says.
	patient bool
	inline  [tidegate.MaxSeen]entry
}

// New returns the books of a session that goes on from the marks.
func New(cluster string, nonce uint64, marks []tidegate.Mark) *Ledger {
	l := &Ledger{cluster: cluster, nonce: nonce}
	l.seen = l.inline[:0]
	l.Merge(marks)
	return l
}

// Births sets what says where a catch-up is born that comes without a birth: the
// history and the life of the primary that are known now. It must be called
// before the ledger is used.
func (l *Ledger) Births(birth func() (tidegate.Epoch, tidegate.Incarnation)) { l.birth = birth }

// Tied reports whether only the primary's present life is known to have what the session
// must see: the mark was not durable yet, or statements are open there. Locked.
func (l *Ledger) Tied() bool { return (l.volatile != 0 || l.onPrimary > 0) && rules.VolatileLife.On() }

// IgnoreForeign makes the books drop what belongs to another database system, or is ahead
// of the history. It must be called before the ledger is used.
func (l *Ledger) IgnoreForeign() { l.ignores = true }

// Copy returns books of their own with the same contents, to try out what would
// be decided. Locked.
func (l *Ledger) Copy() *Ledger {
	c := &Ledger{
		cluster: l.cluster, nonce: l.nonce, birth: l.birth, epoch: l.epoch, mark: l.mark, shown: l.shown, catch: l.catch,
		others: slices.Clone(l.others), arrived: l.arrived, claimed: l.claimed, claimedSince: l.claimedSince,
		volatile: l.volatile, volatileSince: l.volatileSince, ignores: l.ignores, news: l.news, onPrimary: l.onPrimary, there: l.there, patient: l.patient,
	}
	c.catch.pending = slices.Clone(l.catch.pending)
	c.seen = append(c.inline[:0], l.seen...)
	return c
}

// Lock begins a decision.
func (l *Ledger) Lock() { l.mu.Lock() }

// Unlock ends a decision.
func (l *Ledger) Unlock() { l.mu.Unlock() }

// SetReadSite remembers where the application has read from a replica.
func (l *Ledger) SetReadSite(site string) {
	l.mu.Lock()
	l.readSite = site
	l.mu.Unlock()
}

// ReadSite returns what SetReadSite was told last.
func (l *Ledger) ReadSite() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.readSite
}

// Nonce returns the session's nonce.
func (l *Ledger) Nonce() uint64 { return l.nonce }

// Mark returns what the session must see. Locked.
func (l *Ledger) Mark() tidegate.Position { return l.mark }

// beyondAll is covered by no position.
var beyondAll = tidegate.Beyond(math.MaxUint64)

// Need returns what a replica must cover: the mark, or what none covers as long as it is
// not known whether the mark became durable. Locked.
func (l *Ledger) Need() tidegate.Position {
	if l.Volatile() {
		return beyondAll
	}
	return l.mark
}

// Volatile reports whether only the primary, in the life in which it handed out the
// mark, is known to have what it stands for. Locked.
func (l *Ledger) Volatile() bool { return l.volatile != 0 && rules.VolatileLife.On() }

// Shown returns what the primary must have shown. Locked.
func (l *Ledger) Shown() tidegate.Position { return l.shown }

// Fresh reports whether the session has neither read nor written yet. Locked.
func (l *Ledger) Fresh() bool { return len(l.seen) == 0 && l.mark.IsZero() && !l.catch.open }

// empty reports whether nothing is required. Locked.
func (l *Ledger) empty() bool { return l.Fresh() && l.shown.IsZero() && len(l.others) == 0 }

// SetPatient says whether the session's next causal reads may wait longer than their
// class says. Locked.
func (l *Ledger) SetPatient(on bool) { l.patient = on }

// Patient reports whether the read that is to be decided may wait longer. Locked.
func (l *Ledger) Patient() bool { return l.patient }

// News returns what [Ledger.Restart] wants to know of the moment at which its report
// was decided. Locked.
func (l *Ledger) News() uint64 { return l.news }

// Merge implements tidegate.Ledger.
func (l *Ledger) Merge(marks []tidegate.Mark) {
	if len(marks) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := mono.Now() // not before the lock: what happens while it is awaited is older
	for _, m := range marks {
		l.merge(m, now)
	}
}

func (l *Ledger) merge(m tidegate.Mark, now int64) {
	l.news++
	if m.CatchUp && m.Primary == 0 && !m.Epoch.Known() && l.birth != nil {
		m.Epoch, m.Primary = l.birth()
	}
	// A mark without an epoch is a duty whose birth nobody knew: it is born where
	// the others of the session are, in whichever order they arrive.
	if m.Epoch.Known() && (l.empty() || !l.epoch.Known()) {
		l.epoch = m.Epoch
	}
	if m.Epoch.Known() && m.Epoch != l.epoch && rules.EpochInMark.On() {
		l.setAside(m, now)
		return
	}
	l.arrived = now
	l.patient = l.patient || m.Patient
	l.mark = l.mark.Join(m.Position)
	l.shown = l.shown.Join(m.Shown)
	if !m.Position.IsZero() {
		l.claimed, l.claimedSince = l.claimed.Join(m.Position), now
	}
	l.unsure(m.Volatile, now)
	for _, id := range m.Seen {
		e := l.entry(id)
		if e == nil {
			e = l.add(entry{id: id, epoch: l.epoch, node: freshness.NoNode})
		}
		e.since = now
	}
	if m.CatchUp || len(m.Pending) > 0 {
		l.owe(now, m.Primary, m.Pending)
	}
}

// setAside keeps a mark of another epoch until it can be judged.
func (l *Ledger) setAside(m tidegate.Mark, now int64) {
	l.arrived = now
	t := tidegate.NewToken(append(l.others, m)...)
	l.others = t.Marks()
}

// entry returns the entry of the incarnation, or nil.
func (l *Ledger) entry(id tidegate.Incarnation) *entry {
	for i := range l.seen {
		if l.seen[i].id == id {
			return &l.seen[i]
		}
	}
	return nil
}

// add appends an entry. When there are too many, those without reads in flight
// become a catch-up: all they can have shown was committed by now. One of another
// history is set aside, to be judged: it may have shown what is lost.
func (l *Ledger) add(e entry) *entry {
	if len(l.seen) >= maxEntries {
		for _, o := range l.seen {
			if o.fly == 0 && o.since != 0 && o.epoch != l.epoch {
				l.setAside(tidegate.Mark{Cluster: l.cluster, Epoch: o.epoch, CatchUp: true}, mono.Now())
			}
		}
		l.seen = slices.DeleteFunc(l.seen, func(o entry) bool { return o.fly == 0 })
		l.owe(mono.Now(), 0, nil)
	}
	if !rules.SeenIsASet.On() {
		l.seen = slices.DeleteFunc(l.seen, func(o entry) bool { return o.fly == 0 })
	}
	l.seen = append(l.seen, e)
	return &l.seen[len(l.seen)-1]
}

// owe makes the session catch up with all that is committed by now.
func (l *Ledger) owe(now int64, primary tidegate.Incarnation, pending []uint64) {
	c := &l.catch
	if !c.open {
		*c = catchUp{open: true, since: now, primary: primary, pending: slices.Clone(pending)}
		return
	}
	c.since = now
	c.primary = tidegate.JoinBirth(c.primary, primary)
	for _, p := range pending {
		if !slices.Contains(c.pending, p) {
			c.pending = append(c.pending, p)
		}
	}
}

// CatchUp implements tidegate.Ledger.
func (l *Ledger) CatchUp() { l.Merge([]tidegate.Mark{{Cluster: l.cluster, CatchUp: true}}) }

// Owe makes the session catch up with all that is committed by now: the outcome
// of a write is not known, or the position of a read on the primary was lost.
// primary is the incarnation that it happened on, zero when not known; pending
// lists server processes whose transaction may still commit.
func (l *Ledger) Owe(primary tidegate.Incarnation, pending []uint64) {
	l.mu.Lock()
	l.owe(mono.Now(), primary, pending)
	l.mu.Unlock()
}

// Reached joins a position of the primary to the mark: of the session's own
// commit, or of a read on the primary. It was durable there.
func (l *Ledger) Reached(epoch tidegate.Epoch, pos tidegate.Position) {
	l.ReachedVolatile(epoch, pos, 0)
}

// ReachedVolatile is Reached for a position that the primary has handed out in a life of
// its before it was durable; zero for one that was.
func (l *Ledger) ReachedVolatile(epoch tidegate.Epoch, pos tidegate.Position, life tidegate.Incarnation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if epoch.Line < l.epoch.Line {
		l.news++ // of a history that the session may have been told is over
	}
	now := mono.Now()
	if epoch != l.epoch && rules.EpochInMark.On() {
		if !l.empty() && l.epoch.Known() {
			// What was required before belongs to another history.
			for _, m := range l.marks() {
				l.setAside(m, now)
			}
			l.mark, l.shown, l.claimed, l.catch, l.volatile = tidegate.Position{}, tidegate.Position{}, tidegate.Position{}, catchUp{}, 0
			l.dropIdle()
		}
		l.epoch, l.arrived = epoch, now
	}
	l.mark = l.mark.Join(pos)
	l.unsure(life, now)
}

// unsure notes that the mark was not durable in that life of the primary; zero is none.
func (l *Ledger) unsure(life tidegate.Incarnation, now int64) {
	if life != 0 {
		l.volatile, l.volatileSince = tidegate.JoinBirth(l.volatile, life), now
	}
}

// Enter notes that a statement of the session begins on the primary in that life.
// Until Leave, nobody knows how much of the primary it has shown.
func (l *Ledger) Enter(primary tidegate.Incarnation) {
	l.mu.Lock()
	if l.onPrimary == 0 {
		l.there = primary
	} else {
		l.there = tidegate.JoinBirth(l.there, primary)
	}
	l.onPrimary++
	l.mu.Unlock()
}

// Leave notes that a statement on the primary is over and its position is known,
// or owed.
func (l *Ledger) Leave() {
	l.mu.Lock()
	l.onPrimary--
	l.mu.Unlock()
}

// Busy reports whether statements of the session are in flight. Locked.
func (l *Ledger) Busy() bool {
	if l.onPrimary > 0 {
		return true
	}
	for i := range l.seen {
		if l.seen[i].fly > 0 {
			return true
		}
	}
	return false
}

// Flying returns how many reads of the session are in flight on replicas. Locked.
func (l *Ledger) Flying() (n int32) {
	for i := range l.seen {
		n += l.seen[i].fly
	}
	return n
}

// Touch makes the read that is to be decided see what statements in flight have
// shown by now: rows count from when they are delivered, and the application can
// read on while others are open. on is the life of the primary that the read goes
// to, which needs nothing of those there; zero is for a read that may go elsewhere.
// Locked.
func (l *Ledger) Touch(on tidegate.Incarnation) {
	if !rules.OpenCounts.On() {
		return
	}
	now := mono.Now()
	for i := range l.seen {
		if l.seen[i].fly > 0 {
			l.seen[i].since = now
		}
	}
	if l.onPrimary > 0 && (on == 0 || on != l.there) {
		l.owe(now, l.there, nil)
	}
}

// dropIdle forgets all entries but those with reads in flight.
func (l *Ledger) dropIdle() {
	l.seen = slices.DeleteFunc(l.seen, func(e entry) bool { return e.fly == 0 })
}

// Marks implements tidegate.Ledger.
func (l *Ledger) Marks() []tidegate.Mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.marks()
}

func (l *Ledger) marks() []tidegate.Mark {
	m := tidegate.Mark{
		Cluster: l.cluster, Epoch: l.epoch, Position: l.mark, Shown: l.shown,
		CatchUp: l.catch.open, Primary: l.catch.primary, Pending: slices.Clone(l.catch.pending), Patient: l.patient,
		Volatile: l.volatile,
	}
	if l.onPrimary > 0 {
		m.CatchUp, m.Primary = true, tidegate.JoinBirth(m.Primary, l.there)
	}
	all := make([]tidegate.Mark, 0, 1+len(l.others))
	if !l.empty() || l.onPrimary > 0 {
		for _, e := range l.seen {
			if e.epoch == l.epoch {
				m.Seen = append(m.Seen, e.id)
			}
		}
		all = append(all, m)
		for _, e := range l.seen {
			if e.epoch != l.epoch {
				all = append(all, tidegate.Mark{Cluster: l.cluster, Epoch: e.epoch, Seen: []tidegate.Incarnation{e.id}})
			}
		}
	}
	if len(all)+len(l.others) <= 1 {
		return append(all, l.others...)
	}
	return tidegate.NewToken(append(all, l.others...)...).Marks()
}

var _ tidegate.Ledger = (*Ledger)(nil)
