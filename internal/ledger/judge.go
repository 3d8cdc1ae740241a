package ledger

import (
	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/mono"
	"github.com/tidegatedb/tidegate/internal/rules"
)

// judge decides whether what is required is a part of the table's history, and makes it
// the table's own if it is.
func (l *Ledger) judge(t *freshness.Table, asks *Asks) Status {
	if l.empty() || !rules.EpochInMark.On() {
		l.epoch = t.Epoch
		return Settled
	}
	if !l.epoch.Known() {
		// Only a catch-up of unknown birth has no epoch: it is born here.
		l.epoch = t.Epoch
	}
	if l.epoch.Known() && l.epoch == t.Epoch && len(l.others) == 0 {
		return l.believe(t)
	}
	worst := l.judgeOwn(t)
	for i := range l.others {
		worst = worst.Worse(judgeMark(t, &l.others[i]))
	}
	if worst == tidegate.VerdictForeign && l.ignores {
		l.dropForeign(t)
		l.verdict = worst
		return l.judge(t, asks)
	}
	if worst == tidegate.VerdictSurvived {
		l.takeOver(t)
		return l.believe(t)
	}
	// An instance can learn late of a new history: only a look at the primary
	// that was sent after the mark arrived may call it foreign.
	if p := t.PrimaryObs(); p == nil || p.Sent <= l.arrived {
		asks.primary(t)
		return Open
	}
	return l.changed(worst)
}

// judgeOwn judges what the session requires of its own epoch.
func (l *Ledger) judgeOwn(t *freshness.Table) tidegate.Verdict {
	return judgeMark(t, &tidegate.Mark{
		Epoch: l.epoch, Position: l.mark, Shown: l.shown, CatchUp: l.catch.open, Volatile: l.volatile,
	})
}

// judgeMark judges a mark; what was seen is judged by itself. Of the duties, catching up
// ends with the primary's life, and so with its history.
func judgeMark(t *freshness.Table, m *tidegate.Mark) tidegate.Verdict {
	if m.Epoch.Known() && m.Epoch.System != t.Epoch.System && t.Epoch.Known() {
		return tidegate.VerdictForeign
	}
	required := m.Position.Join(m.Shown)
	v := tidegate.VerdictSurvived
	if !required.IsZero() || m.CatchUp || len(m.Pending) > 0 {
		v = t.Judge(m.Epoch, required)
	}
	if m.Epoch.Same(t.Epoch) {
		return v
	}
	if m.CatchUp || len(m.Pending) > 0 || m.Volatile != 0 && rules.VolatileLife.On() && !t.Durable(m.Volatile, m.Position) {
		v = v.Worse(tidegate.VerdictUnknown)
	}
	return v
}

// takeOver makes everything that is required a part of the table's history, which
// contains it.
func (l *Ledger) takeOver(t *freshness.Table) {
	now := mono.Now()
	if !l.epoch.Same(t.Epoch) {
		l.verdict, l.volatile = tidegate.VerdictSurvived, 0
	}
	l.renamed(l.epoch, t.Epoch)
	l.epoch = t.Epoch
	for _, m := range l.others {
		same := m.Epoch.Same(t.Epoch)
		l.mark, l.shown = l.mark.Join(m.Position), l.shown.Join(m.Shown)
		if !m.Position.IsZero() {
			l.claimed, l.claimedSince = l.claimed.Join(m.Position), max(l.claimedSince, l.arrived)
		}
		l.patient = l.patient || m.Patient
		of := m.Epoch
		if same {
			of = t.Epoch
			l.unsure(m.Volatile, now)
		} else {
			l.verdict = tidegate.VerdictSurvived
		}
		for _, id := range m.Seen {
			e := l.entry(id)
			if e == nil {
				e = l.add(entry{id: id, epoch: of, node: freshness.NoNode})
			}
			e.since = max(e.since, l.arrived)
		}
		if m.CatchUp || len(m.Pending) > 0 {
			l.owe(now, m.Primary, m.Pending)
		}
	}
	l.others = nil
}

// renamed gives what was seen in an epoch the name by which it is better known.
func (l *Ledger) renamed(from, to tidegate.Epoch) {
	if !from.Same(to) {
		return
	}
	for i := range l.seen {
		if l.seen[i].epoch == from {
			l.seen[i].epoch = to
		}
	}
}

// dropForeign forgets what belongs to another database system.
func (l *Ledger) dropForeign(t *freshness.Table) {
	if l.epoch.System != t.Epoch.System {
		l.mark, l.shown, l.claimed, l.catch, l.volatile = tidegate.Position{}, tidegate.Position{}, tidegate.Position{}, catchUp{}, 0
		l.epoch = t.Epoch
	}
	k := 0
	for _, e := range l.seen {
		if e.epoch.System == t.Epoch.System || e.fly > 0 {
			l.seen[k] = e
			k++
		}
	}
	l.seen = l.seen[:k]
	k = 0
	for _, m := range l.others {
		if m.Epoch.System == t.Epoch.System {
			l.others[k] = m
			k++
		}
	}
	l.others = l.others[:k]
}

// believe reports Changed when a token requires what its history does not have: the
// cluster went back, by a restored backup or by a crash that lost what had been
// acknowledged, or the token was made up. No replica would ever have it.
func (l *Ledger) believe(t *freshness.Table) Status {
	p := t.PrimaryObs()
	if l.claimed.IsZero() || p == nil || p.Sent <= l.claimedSince {
		return Settled
	}
	// A mark can be strict, "beyond the newest": its number is what there has to be.
	if !p.Head.IsZero() && p.Head.Number() < l.claimed.Number() {
		if !l.ignores {
			return l.changed(tidegate.VerdictAhead)
		}
		l.mark, l.shown, l.verdict = l.mark.Meet(p.Head), l.shown.Meet(p.Head), tidegate.VerdictAhead
	}
	l.claimed = tidegate.Position{}
	return Settled
}

// settleVolatile asks whether a mark that was not durable when it was handed out is so by
// now. Until then the primary has it, as long as it lives on; if it does not, nobody
// knows: its log can have grown past the number again with something else.
func (l *Ledger) settleVolatile(t *freshness.Table, p *freshness.Observation, asks *Asks) Status {
	switch {
	case !l.Volatile():
		return Settled
	case t.Durable(l.volatile, l.mark):
		l.volatile = 0
		return Settled
	}
	asks.primary(t)
	switch {
	case p != nil && p.Incarnation == l.volatile:
		return Settled
	case p != nil && p.Sent > l.volatileSince:
		return l.changed(tidegate.VerdictUnknown)
	}
	return Open
}
