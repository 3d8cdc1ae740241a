package freshness

import (
	"slices"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/rules"
)

// Branch is a line that the cluster's history has gone along, and where it left it.
type Branch struct {
	Epoch tidegate.Epoch
	// End is the last position of the line that the history contains.
	End tidegate.Position
}

// Lineage is how a history came about.
type Lineage struct {
	// Branches are the lines before the present one, oldest first.
	Branches []Branch
	// Complete tells that they begin with the system's first line.
	Complete bool
}

// extended returns the lineage of a line that left b where b ends.
func (l Lineage) extended(b Branch) Lineage {
	return Lineage{append(slices.Clone(l.Branches), b), l.Complete}
}

// fork returns where the last of the branches ends, zero if there is none.
func (l *Lineage) fork() uint64 {
	if n := len(l.Branches); n > 0 {
		return l.Branches[n-1].End.Number()
	}
	return 0
}

// branch returns the branch with the epoch's line, nil if there is none.
func (l *Lineage) branch(line uint64) *Branch {
	for i := range l.Branches {
		if l.Branches[i].Epoch.Line == line {
			return &l.Branches[i]
		}
	}
	return nil
}

// Life is the primary's in one of its lives: what it was seen to have made durable.
type Life struct {
	Incarnation tidegate.Incarnation
	Durable     tidegate.Position
}

// maxLives is the number of lives that a table remembers, the newest first.
const maxLives = 4

// Judge says what has become of a position of an epoch in the table's history:
// VerdictSurvived, VerdictLost, VerdictUnknown or VerdictForeign.
//
// The history contains an ancestor up to where it left it: what was beyond is lost. A
// strict position of just that number can be either side of it.
func (t *Table) Judge(e tidegate.Epoch, pos tidegate.Position) tidegate.Verdict {
	switch {
	case !e.Known() || !t.Epoch.Known():
		return tidegate.VerdictUnknown
	case e == t.Epoch || sameEpoch(e, t.Epoch):
		return tidegate.VerdictSurvived
	case e.System != t.Epoch.System:
		return tidegate.VerdictForeign
	}
	b := t.Lineage.branch(e.Line)
	switch {
	case b != nil && sameEpoch(b.Epoch, e):
		switch {
		case b.End.Covers(pos) || !rules.ForkVerdict.On():
			return tidegate.VerdictSurvived
		case pos.Number() == b.End.Number():
			return tidegate.VerdictUnknown
		}
		return tidegate.VerdictLost
	case b != nil || e.Line == t.Epoch.Line || e.Line < t.Epoch.Line && t.Lineage.Complete:
		// A branch that is none of this history's: what it has beyond its fork is not here.
		return tidegate.VerdictLost
	}
	return tidegate.VerdictUnknown // nobody says how that line and this one are related
}

// sameEpoch is Epoch.Same, less what tests leave out.
func sameEpoch(a, b tidegate.Epoch) bool {
	if !rules.ForkInEpoch.On() {
		a.Fork, b.Fork = 0, 0
	}
	if !rules.OriginInEpoch.On() {
		a.Origin, b.Origin = 0, 0
	}
	return a.Same(b)
}

// Durable reports whether the primary was seen to have made the position durable in that
// life of its: what it stands for is there then, as long as the history is.
func (t *Table) Durable(life tidegate.Incarnation, pos tidegate.Position) bool {
	for i := range t.Lives {
		if t.Lives[i].Incarnation == life && life != 0 {
			return t.Lives[i].Durable.Covers(pos)
		}
	}
	return false
}

// lived notes what the primary says in its present life.
func (t *Table) lived(o *Observation) {
	for i := range t.Lives {
		if t.Lives[i].Incarnation == o.Incarnation {
			t.Lives[i].Durable = t.Lives[i].Durable.Join(o.Applied)
			return
		}
	}
	copy(t.Lives[1:], t.Lives[:maxLives-1])
	t.Lives[0] = Life{o.Incarnation, o.Applied}
}

// line names a line whatever its branch, and claimKey the one that a server says it writes.
type (
	line     struct{ system, line uint64 }
	claimKey struct {
		line
		server uint64
	}
)

func lineOf(e tidegate.Epoch) line { return line{e.System, e.Line} }

// claimed is what this process knows of how a server came to be a primary of its line.
type claimed struct {
	lineage Lineage
	// told tells that there is a lineage: the server told it, as from, or this process saw
	// the promotion.
	told bool
	from *Lineage
	// origin is the life in which the server was promoted to the line, zero if not known.
	origin uint64
}

// dispute is what there is about the number of a line: the epoch that has it, two server
// lives that claimed it at one time, since when, and whether both still did later, or
// there is another epoch that has it: then nobody knows whose replicas are whose.
type dispute struct {
	epoch  tidegate.Epoch
	rivals [2]uint64
	since  int64
	proven bool
	// twins tells that where they began does not tell them apart.
	twins bool
}

// histories remembers which histories were in sight and how they are related, over all
// tables of a watcher.
type histories struct {
	// first and more: a replica that cannot tell its line is trusted while there was
	// never a choice.
	first    tidegate.Epoch
	more     bool
	claims   map[claimKey]*claimed
	disputes map[line]*dispute
}

// of returns what is known of a primary's claim, to be added to.
func (h *histories) of(o *Observation) *claimed {
	c := claimKey{lineOf(o.Epoch), o.Server}
	k := h.claims[c]
	if k == nil {
		if h.claims == nil {
			h.claims = map[claimKey]*claimed{}
		}
		k = &claimed{}
		if o.Epoch.Line == 1 {
			k.told, k.lineage.Complete = true, true // nothing was before
		}
		h.claims[c] = k
	}
	return k
}

func (h *histories) see(e tidegate.Epoch) {
	e.Fork, e.Origin = 0, 0
	switch {
	case !e.Known():
	case !h.first.Known():
		h.first = e
	case h.first != e:
		h.more = true
	}
}

// learn takes in what a new observation of a node, of which before is what was known,
// says of how lines are related.
func (h *histories) learn(t *Table, before *Node, o *Observation) {
	if o.Role != tidegate.RolePrimary || !o.Epoch.Known() {
		return
	}
	k := h.of(o)
	was := before.Epoch
	// Who saw the server as a replica in this life knows what it was promoted from, if
	// no line fits in between: a promotion takes a number above all that the server has
	// come to know.
	seen := before.Obs != nil && before.Obs.Role == tidegate.RoleReplica && before.Obs.Incarnation == o.Incarnation &&
		was.Known() && was.System == o.Epoch.System && was.Line+1 == o.Epoch.Line && !o.Replayed.IsZero()
	switch {
	case o.Lineage != nil && o.Lineage != k.from:
		k.lineage, k.told, k.from = t.named(*o.Lineage), true, o.Lineage
	case !k.told && seen:
		k.lineage, k.told = t.upTo(was).extended(Branch{was, o.Replayed}), true
	}
	// Replay ended at the fork in the life in which a server was promoted, and in none
	// of its later ones.
	if k.told && !o.Replayed.IsZero() && o.Replayed.Number() == k.lineage.fork() {
		k.origin = o.Started
	}
	h.record(h.full(o))
	for _, b := range k.lineage.Branches {
		h.record(b.Epoch)
	}
}

// record notes that there is a line. Of two that have one number nobody knows which
// replicas are whose.
func (h *histories) record(e tidegate.Epoch) {
	d := h.disputeOf(e)
	switch {
	case !d.epoch.Known():
		d.epoch = e
	case !sameEpoch(d.epoch, e):
		d.proven = true
		d.twins = d.twins || d.epoch.Fork == e.Fork
	default:
		d.epoch.Fork, d.epoch.Origin = max(d.epoch.Fork, e.Fork), max(d.epoch.Origin, e.Origin)
	}
}

// upTo returns how an epoch came about, as far as the table knows.
func (t *Table) upTo(e tidegate.Epoch) Lineage {
	if e == t.Epoch {
		return t.Lineage
	}
	for i, b := range t.Lineage.Branches {
		if b.Epoch == e {
			return Lineage{t.Lineage.Branches[:i], t.Lineage.Complete}
		}
	}
	return Lineage{Complete: e.Line == 1}
}

// named adds to branches what the table knows of their lines.
func (t *Table) named(l Lineage) Lineage {
	l.Branches = slices.Clone(l.Branches)
	for i := range l.Branches {
		e := &l.Branches[i].Epoch
		if i > 0 {
			e.Fork = l.Branches[i-1].End.Number()
		}
		if b := t.Lineage.branch(e.Line); b != nil && b.Epoch.Same(*e) {
			e.Origin = b.Epoch.Origin
		} else if t.Epoch.Same(*e) {
			e.Origin = t.Epoch.Origin
		}
	}
	return l
}

// full returns a primary's epoch, with its fork and its origin where they are known.
func (h *histories) full(o *Observation) tidegate.Epoch {
	k, e := h.of(o), o.Epoch
	e.Fork, e.Origin = k.lineage.fork(), k.origin
	return e
}

// dispute notes that two servers claim one line. One look can be older than the other, and
// of the life before: only when both were seen to claim it again is it so.
func (h *histories) dispute(a, b *Observation) {
	if a.Started == b.Started || a.Server == b.Server {
		return
	}
	d := h.disputeOf(a.Epoch)
	if pair := [2]uint64{min(a.Started, b.Started), max(a.Started, b.Started)}; d.rivals != pair {
		d.rivals, d.since = pair, max(a.Received, b.Received)
		return
	}
	if min(a.Sent, b.Sent) > d.since {
		d.proven, d.twins = true, true
	}
}

// disputeOf returns what there is about a line, to be added to.
func (h *histories) disputeOf(e tidegate.Epoch) *dispute {
	d := h.disputes[lineOf(e)]
	if d == nil {
		if h.disputes == nil {
			h.disputes = map[line]*dispute{}
		}
		d = &dispute{}
		h.disputes[lineOf(e)] = d
	}
	return d
}

// disputed reports whether nobody knows whose a replica is that says so of its line.
func (h *histories) disputed(e tidegate.Epoch) bool {
	d := h.disputes[lineOf(e)]
	return d != nil && d.proven && (e.Fork == 0 || d.twins && e.Origin == 0)
}
