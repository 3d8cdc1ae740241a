package ledger

import (
	"slices"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/mono"
	"github.com/tidegatedb/tidegate/internal/rules"
)

// Status says how far a session's requirements are known.
type Status uint8

const (
	// Settled: the mark says all that a replica must cover.
	Settled Status = iota
	// Open: facts are missing; ask the nodes in Asks and look again.
	Open
	// Changed: what was required belongs to a history, or to a life of the
	// primary, that cannot be judged any more. See [Ledger.Restart].
	Changed
)

// Asks collects what must be asked before a session can go on.
type Asks struct {
	// Nodes is a bit set of node indexes to probe.
	Nodes uint64
	// Pending lists server processes whose fate decides.
	Pending []uint64
}

func (a *Asks) node(i int) {
	if i != freshness.NoNode {
		a.Nodes |= 1 << uint(i)
	}
}

// primary asks for the primary; while none answers, every node might be it.
func (a *Asks) primary(t *freshness.Table) {
	if t.PrimaryObs() != nil {
		a.node(t.Primary)
		return
	}
	a.Nodes |= 1<<uint(len(t.Nodes)) - 1
}

// Stay returns the node that a causal read can use without resolving anything:
// the session has read from exactly one incarnation, the table still shows it,
// it covers the mark, and is not in the bit set exclude. Otherwise it returns
// freshness.NoNode. Locked.
func (l *Ledger) Stay(t *freshness.Table, exclude uint64) int {
	i := l.Home(t)
	if i < 0 || exclude>>uint(i)&1 != 0 {
		return freshness.NoNode
	}
	if n := &t.Nodes[i]; n.Usable && n.Applied.Covers(l.mark) && !l.Volatile() {
		return i
	}
	return freshness.NoNode
}

// Home returns the node that the session has read from, if that is all it has to
// bound: the one that a look at will most likely let it stay. Otherwise it returns
// freshness.NoNode. Locked.
func (l *Ledger) Home(t *freshness.Table) int {
	if len(l.seen) != 1 || l.catch.open || l.onPrimary > 0 || len(l.others) != 0 || l.epoch != t.Epoch {
		return freshness.NoNode
	}
	return l.seen[0].find(t)
}

// find returns the node that was last seen in the entry's incarnation, or
// freshness.NoNode.
func (e *entry) find(t *freshness.Table) int {
	// The hint can be of another list of nodes.
	if i := int(e.node); i >= 0 && i < len(t.Nodes) && t.Nodes[i].Incarnation == e.id {
		return i
	}
	i := t.Incarnation(e.id)
	if i != freshness.NoNode {
		e.node = int32(i)
	}
	return i
}

// Settle turns what the session has seen into positions as far as the table
// allows. Locked.
//
// An incarnation is bounded by an observation of it, or by the primary's durable
// position in the same epoch (replicas receive only that), from a probe sent
// after the last read on it ended; by the smaller if both are there. A hung node
// must not hold its sessions, so either will do.
func (l *Ledger) Settle(t *freshness.Table, asks *Asks) Status {
	if s := l.judge(t, asks); s != Settled {
		return s
	}
	p := t.PrimaryObs()
	if s := l.settleVolatile(t, p, asks); s != Settled {
		return s
	}
	status := l.settleCatchUp(t, p, asks)
	if status == Changed {
		return Changed
	}
	k, against := 0, tidegate.VerdictNone
	for _, e := range l.seen {
		if !rules.SeenKept.On() && e.fly == 0 {
			continue
		}
		if e.since != 0 {
			switch b := l.bound(t, p, &e); {
			case b.known:
				l.mark, l.shown = l.mark.Join(b.pos), l.shown.Join(b.pos)
				e.since = 0
			case b.verdict != tidegate.VerdictNone:
				against = against.Worse(b.verdict)
			default:
				asks.node(b.ask)
				asks.primary(t)
				status = Open
			}
		}
		// A read in flight can still show more than the bound.
		if e.since != 0 || e.fly > 0 {
			l.seen[k] = e
			k++
		}
	}
	l.seen = l.seen[:k]
	if against != tidegate.VerdictNone {
		return l.changed(against)
	}
	return status
}

// changed notes why what was required cannot be had, or be judged.
func (l *Ledger) changed(v tidegate.Verdict) Status {
	l.verdict = v
	return Changed
}

// Verdict returns what the last judgement said and forgets it: VerdictNone when nothing
// had to be judged. After Changed it is never that. Locked.
func (l *Ledger) Verdict() tidegate.Verdict {
	v := l.verdict
	l.verdict = tidegate.VerdictNone
	return v
}

// Doubtful reports whether a token requires something of which no look at the primary
// has shown yet that it can be there. Locked.
func (l *Ledger) Doubtful() bool { return !l.claimed.IsZero() }

// settleCatchUp joins the primary's position once a probe sent after the duty
// arose shows the primary of its birth, and every transaction that may still
// commit has ended.
func (l *Ledger) settleCatchUp(t *freshness.Table, p *freshness.Observation, asks *Asks) Status {
	c := &l.catch
	if !c.open {
		return Settled
	}
	if p == nil || p.Sent <= c.since {
		asks.primary(t)
		asks.Pending = append(asks.Pending, c.pending...)
		return Open
	}
	if c.primary == 0 {
		c.primary = p.Incarnation
	}
	if c.primary != p.Incarnation && rules.CatchUpBirth.On() {
		return l.changed(tidegate.VerdictUnknown)
	}
	for _, id := range c.pending {
		if !p.Settled(id) {
			asks.primary(t)
			asks.Pending = append(asks.Pending, c.pending...)
			return Open
		}
	}
	l.mark, l.shown = l.mark.Join(p.Ceiling), l.shown.Join(p.Ceiling)
	if !p.Applied.Covers(p.Ceiling) {
		l.unsure(p.Incarnation, p.Sent)
	}
	*c = catchUp{}
	return Settled
}

// limit is an upper bound of what the session can have seen on an incarnation, if known;
// else what speaks against there being one, else the node to ask.
type limit struct {
	pos     tidegate.Position
	known   bool
	verdict tidegate.Verdict
	ask     int
}

// bound returns the limit of an entry.
func (l *Ledger) bound(t *freshness.Table, p *freshness.Observation, e *entry) (b limit) {
	after := func(o *freshness.Observation) bool {
		return o != nil && (o.Sent > e.since || !rules.BoundProbeAfterRead.On())
	}
	i := e.find(t)
	if i == freshness.NoNode && !rules.IncarnationInSeen.On() && e.node >= 0 {
		i = int(e.node)
	}
	b.ask = i
	// The later look's history is what the bound belongs to: a replica can follow
	// its primary to a new line and goes back in none.
	if i != freshness.NoNode && after(t.Nodes[i].Obs) {
		b.pos = t.Nodes[i].Obs.Bound
		v := tidegate.VerdictSurvived
		if t.Nodes[i].Epoch != t.Epoch && rules.SeenVerdict.On() {
			v = t.Judge(t.Nodes[i].Epoch, b.pos)
		}
		if b.known = v == tidegate.VerdictSurvived; !b.known {
			b.verdict = v
		}
	}
	same := p != nil && (e.epoch == t.Epoch || e.epoch.Same(t.Epoch))
	switch {
	case same && after(p) && b.known:
		b.pos = b.pos.Meet(p.Bound)
	case same && after(p):
		b.pos, b.known = p.Bound, true
	case same && b.known && t.Nodes[i].Obs.Loose:
		b.known = false // the primary can tell better, and nothing else may be in reach
	}
	switch {
	case b.known || e.epoch.Same(t.Epoch) || !after(p):
		// This process can be the one that learns late of a history.
		b.verdict = tidegate.VerdictNone
	case b.verdict == tidegate.VerdictNone && (i == freshness.NoNode || t.Nodes[i].Err != nil):
		// Only a look at that life could have told what it had shown of its history.
		b.verdict = tidegate.VerdictUnknown
	}
	return b
}

// Restart makes the session go on from the position after now of the primary with
// that epoch and life: the session has been told that what it required before can
// not be judged. news is [Ledger.News] from when that was decided; what it has come to
// know since then, by a token that arrived or a read of the old history that ended,
// was not part of the report: then nothing changes, and the report is made again.
// Times would not do: a read's end is dated before its lock.
func (l *Ledger) Restart(epoch tidegate.Epoch, primary tidegate.Incarnation, news uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.news != news {
		return
	}
	l.mark, l.shown, l.claimed, l.others, l.volatile = tidegate.Position{}, tidegate.Position{}, tidegate.Position{}, nil, 0
	l.dropIdle()
	for i := range l.seen {
		l.seen[i].since = 0
	}
	now := mono.Now()
	l.epoch, l.arrived = epoch, now
	l.catch = catchUp{open: true, since: now, primary: primary, pending: l.catch.pending}
}

// Dispatch notes that a read of the session begins on the incarnation, from the
// table's epoch. Locked.
func (l *Ledger) Dispatch(t *freshness.Table, node int, id tidegate.Incarnation) {
	if e := l.entry(id); e != nil {
		e.fly++
		e.node = int32(node)
		return
	}
	if len(l.seen) == 0 && l.empty() {
		l.epoch = t.Epoch
	}
	l.add(entry{id: id, epoch: t.Nodes[node].Epoch, fly: 1, node: int32(node)})
}

// Again notes that one more read of the session begins where it stays: on what
// [Ledger.Stay] returned. Locked since then.
func (l *Ledger) Again() { l.seen[0].fly++ }

// Done notes that a read ended: its last row has been delivered.
func (l *Ledger) Done(id tidegate.Incarnation, now int64) {
	l.mu.Lock()
	if e := l.entry(id); e != nil {
		e.fly--
		if e.epoch.System != l.epoch.System || e.epoch.Line <= l.epoch.Line {
			l.news++
		}
		// Parallel reads do not note their ends in order.
		e.since = max(e.since, now)
	}
	l.mu.Unlock()
}

// Undo takes back a dispatch whose read was never sent.
func (l *Ledger) Undo(id tidegate.Incarnation) {
	l.mu.Lock()
	l.undo(id)
	l.mu.Unlock()
}

func (l *Ledger) undo(id tidegate.Incarnation) {
	for i := range l.seen {
		e := &l.seen[i]
		if e.id != id {
			continue
		}
		if e.fly--; e.fly == 0 && e.since == 0 {
			l.seen = slices.Delete(l.seen, i, i+1)
		}
		return
	}
}
