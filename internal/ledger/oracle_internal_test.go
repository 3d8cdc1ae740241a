package ledger

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/mono"
	"github.com/tidegatedb/tidegate/internal/rules"
)

// smallest is the smallest position that covers what is needed.
func smallest(need tidegate.Position) uint64 {
	if need.Strict() {
		return need.Number() + 1
	}
	return need.Number()
}

// simulate runs a world for some steps and returns what went wrong first, and how
// often the session's requirement was known, open and lost.
func simulate(seed uint64, steps int) (wrong string, settled, open, changed int) {
	w := newWorld(seed)
	var sent []token
	for range steps {
		time.Sleep(time.Microsecond)
		p := w.places[w.r.IntN(len(w.places))]
		switch k := w.r.IntN(1000); {
		case k < 60:
			w.primary().vis++
			w.primary().app++
		case k < 250:
			w.replicate()
		case k < 262:
			w.crash()
		case k == 262 && w.r.IntN(3) == 0:
			w.promote()
		case k < 550:
			w.probe(p, w.r.IntN(len(w.servers)))
		case k < 580: // a write
			s := w.primary()
			s.vis++
			s.app++
			p.known.join(truth{s.line: s.vis})
			p.l.Reached(tidegate.Epoch{System: 1, Line: s.line}, at(s.app))
		case k < 590: // one whose outcome is not known, or that went another way
			s := w.primary()
			p.known.join(truth{s.line: s.vis})
			if w.r.IntN(2) == 0 {
				p.l.CatchUp()
			} else if s.id == p.table.Nodes[max(p.table.Primary, 0)].Incarnation {
				p.l.Owe(s.id, nil)
			} else {
				p.l.CatchUp()
			}
		case k < 620: // a read of any class on any usable replica
			if i := w.r.IntN(len(w.servers)); p.table.Nodes[i].Usable {
				p.dispatch(i)
			}
		case k < 800:
			w.finish(p)
		case k < 830:
			sent = append(sent[max(0, len(sent)-5):], p.token())
		case k < 860:
			if len(sent) > 0 {
				t := sent[w.r.IntN(len(sent))] // also an old one, also one of its own
				if w.r.IntN(2) == 0 {
					b, err := tidegate.NewToken(t.marks...).AppendBinary(nil)
					if err != nil {
						continue // too many histories
					}
					arrived, _ := tidegate.ParseBinary(b)
					t.marks = arrived.Marks()
				}
				p.l.Merge(t.marks)
				p.known.join(t.known)
				p.replicas.join(t.replicas)
			}
		default: // a causal read is about to be routed
			if wrong = w.stays(p); wrong != "" {
				return
			}
			if w.r.IntN(3) > 0 {
				continue
			}
			status, asks := settle(p.l, p.table)
			switch status {
			case Settled:
				settled++
				wrong = w.routes(p)
			case Open:
				open++
				for i := range w.servers { // what is asked for comes soon
					if asks.Nodes>>i&1 != 0 && w.r.IntN(2) == 0 {
						for range 3 {
							time.Sleep(time.Microsecond)
							w.probe(p, i)
						}
					}
				}
			case Changed:
				if w.tell(p) {
					changed++
				}
			}
			if wrong != "" {
				return
			}
		}
	}
	return
}

func (p *place) dispatch(i int) {
	dispatch(p.l, p.table, i)
	p.reads = append(p.reads, flying{i, p.table.Nodes[i].Incarnation})
}

// finish ends a read. If the node still has the life that it was sent to, it
// shows what the node shows now.
func (w *world) finish(p *place) {
	if len(p.reads) == 0 {
		return
	}
	i := w.r.IntN(len(p.reads))
	rd := p.reads[i]
	p.reads = append(p.reads[:i:i], p.reads[i+1:]...)
	if w.r.IntN(10) == 0 {
		p.l.Undo(rd.id)
		return
	}
	if s := w.servers[rd.node]; s.id == rd.id {
		p.known.join(truth{s.line: s.vis})
		p.replicas.join(truth{s.line: s.vis})
	}
	p.l.Done(rd.id, mono.Now())
}

// tell reports to the session that what it required cannot be judged, with a
// read on the primary from which it goes on.
func (w *world) tell(p *place) bool {
	s := w.primary()
	if o := p.table.PrimaryObs(); o == nil || o.Incarnation != s.id || o.Epoch.Line != s.line {
		return false // that read fails: nobody is told
	}
	p.known, p.replicas = truth{s.line: s.vis}, truth{}
	p.l.Reached(p.table.Epoch, at(s.app))
	p.l.Restart(p.table.Epoch, s.id, p.l.news)
	return true
}

// stays checks where the session would stay.
func (w *world) stays(p *place) string {
	p.l.Lock()
	i := p.l.Stay(p.table, 0)
	p.l.Unlock()
	if i == none {
		return ""
	}
	if s := w.servers[i]; s.id == p.table.Nodes[i].Incarnation && !w.has(s.line, s.vis, p.known) {
		return "stays where it has seen more"
	}
	if w.r.IntN(2) == 0 {
		p.dispatch(i)
	}
	return ""
}

// routes checks what the session requires, and every node that would do.
func (w *world) routes(p *place) string {
	if !w.has(p.l.epoch.Line, smallest(p.l.mark), p.known) {
		return "the mark does not cover what the session was shown or told"
	}
	if !w.has(p.l.epoch.Line, smallest(p.l.shown), p.replicas) {
		return "shown does not cover what replicas showed"
	}
	eligible := none
	for i, s := range w.servers {
		n := &p.table.Nodes[i]
		if !n.Usable || !n.Applied.Covers(p.l.mark) || s.id != n.Incarnation {
			continue
		}
		if !w.has(s.line, s.vis, p.known) {
			return "a node qualifies that has less"
		}
		eligible = i
	}
	if eligible != none && w.r.IntN(2) == 0 {
		p.dispatch(eligible)
	}
	return ""
}

func TestLedgerCoversTheTruth(t *testing.T) {
	seeds, steps := uint64(100), 5000
	if testing.Short() {
		seeds = 10
	}
	var settled, open, changed int
	synctest.Test(t, func(t *testing.T) {
		for seed := range seeds {
			wrong, s, o, c := simulate(seed, steps)
			if wrong != "" {
				t.Errorf("seed %d: %s", seed, wrong)
			}
			settled, open, changed = settled+s, open+o, changed+c
		}
	})
	t.Logf("%d decisions, %d had to wait, %d had to be told", settled, open, changed)
	if settled < 20*int(seeds) || open < int(seeds) || changed < int(seeds) {
		t.Error("the simulation does not exercise all of the books")
	}
}

// Leaving a rule out is noticed.
func TestLedgerNeedsItsRules(t *testing.T) {
	for _, rule := range []rules.Rule{
		rules.BoundProbeAfterRead, rules.IncarnationInSeen, rules.SeenIsASet, rules.SeenKept, rules.EpochInMark,
	} {
		t.Run(rule.String(), func(t *testing.T) {
			rules.Break(t, rule)
			synctest.Test(t, func(t *testing.T) {
				for seed := range uint64(300) {
					if wrong, _, _, _ := simulate(seed, 3000); wrong != "" {
						t.Logf("seed %d: %s", seed, wrong)
						return
					}
				}
				t.Error("nothing went wrong in 300 runs without it")
			})
		})
	}
}
