package route

import (
	"fmt"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/freshness"
	"github.com/tidegatedb/tidegate/internal/ledger"
	"github.com/tidegatedb/tidegate/internal/mono"
)

// Verdict says why one node is eligible for a read or not.
type Verdict struct {
	Role           tidegate.Role
	Eligible       bool
	Why            string
	Applied        tidegate.Position
	ProbeAge       time.Duration
	Staleness      time.Duration
	StalenessKnown bool
	Flying         int64
}

// Explain judges every node for a read, without deciding anything. It returns
// what the session requires as far as the table allows to say.
func (r *Router) Explain(l *ledger.Ledger, class tidegate.Class) (tidegate.Position, []Verdict) {
	t, now := r.facts.Table(), mono.Now()
	n := need{relaxed: class.Need() == tidegate.NeedRelaxed, exclude: r.avoid(class), floor: r.floor.Load().in(t)}
	n.oldest = oldest(class, now)
	status := ledger.Settled
	var required tidegate.Position
	verdict := tidegate.VerdictNone
	if l != nil {
		var asks ledger.Asks
		l.Lock()
		try := l.Copy()
		l.Unlock()
		if staying(try, t, &n) == freshness.NoNode {
			status = try.Settle(t, &asks)
			verdict = try.Verdict()
		}
		required = try.Mark()
		n.mark = try.Need()
		if !n.relaxed {
			n.oldest = r.oldestFor(try)
		}
	}
	all := make([]Verdict, len(t.Nodes))
	for i := range t.Nodes {
		all[i] = r.verdict(t, i, &n, class, l, status, verdict, now)
	}
	return required, all
}

// fenceWords say why a node is fenced, and what to do about it.
var fenceWords = map[tidegate.Fence]string{
	tidegate.FenceDeposed:     "is fenced: it says it is a primary, and another node is on a higher timeline; rewind it, or make it anew",
	tidegate.FenceConflict:    "is fenced: more than one node says it is the primary of this timeline, or did; stop one, and make the standbys of both anew or promote one of them",
	tidegate.FenceDiverged:    "is fenced: it has what the primary's history does not contain, or may have; rewind it, or make it anew",
	tidegate.FenceForeign:     "is fenced: it belongs to another database system",
	tidegate.FenceUnknownLine: "is fenced: its timeline is not known, and more than one has been in sight; grant pg_monitor to the role, or wait for its next restartpoint",
	tidegate.FenceNoHistory:   "is fenced: the way from its timeline to the primary's is not known; give the role REPLICATION, or wait until it follows the primary",
}

// ejectionWords say why a node is out.
var ejectionWords = map[tidegate.EjectionReason]string{
	tidegate.EjectionNone:    "comes back",
	tidegate.EjectionLag:     "it was further behind than LongestLag or MostLag, and is not yet by half",
	tidegate.EjectionFailing: "it did not answer probes, and has not been well for long enough since",
}

func (r *Router) verdict(t *freshness.Table, i int, n *need, class tidegate.Class, l *ledger.Ledger, status ledger.Status, judged tidegate.Verdict, now int64) Verdict {
	x := &t.Nodes[i]
	v := Verdict{Applied: x.Applied, ProbeAge: -1, Flying: r.slots[i].flying.Load()}
	if x.Obs == nil {
		v.Why = "has not been probed yet"
		if x.Err != nil {
			v.Why = fmt.Sprintf("never answered a probe: %v", x.Err)
		}
		return v
	}
	v.Role, v.ProbeAge = x.Obs.Role, time.Duration(now-x.Sent)
	if x.Current != 0 {
		v.Staleness, v.StalenessKnown = time.Duration(now-x.Current), true
	}
	switch {
	case x.Err != nil:
		v.Why = fmt.Sprintf("does not answer probes for %v: %v", time.Duration(now-x.FailedSince).Round(time.Millisecond), x.Err)
	case x.Fence != tidegate.FenceNone:
		v.Why = fenceWords[x.Fence]
	case v.Role == tidegate.RolePrimary && t.Primary != i:
		v.Why = "says it is a primary, and is not in use as one yet"
	case v.Role == tidegate.RolePrimary:
		v.Eligible = class.Need() == tidegate.NeedStrong || class.Need() == tidegate.NeedCausal && l == nil
		v.Why = "the primary: used for strong reads, and when no replica qualifies in time"
	case class.Need() == tidegate.NeedStrong:
		v.Why = "a strong read goes to the primary"
	case !x.Usable:
		v.Why = "no primary has been seen, so that nobody knows which history is the cluster's"
	case r.barred(class)>>uint(i)&1 != 0:
		v.Why = r.whyBarred(i, class)
	case n.exclude>>uint(i)&1 != 0 && r.facts.Silent(i, now):
		v.Why = "has been asked and does not answer: reads go around it until it does"
	case n.exclude>>uint(i)&1 != 0:
		e, _ := r.Ejected(i)
		v.Why = fmt.Sprintf("is left out for %v: %s", time.Duration(now-e.Since).Round(time.Millisecond), ejectionWords[e.Why])
	case class.Need() == tidegate.NeedCausal && l == nil:
		v.Why = "no session: nothing can be proven for it"
	case n.floor == beyondAll:
		v.Why = "the floor of this process is not known yet in this history; a look at the primary is needed"
	case !x.Applied.Covers(n.floor):
		v.Why = fmt.Sprintf("has applied %v, less than the floor of this process, %v", x.Applied, n.floor)
	case !n.relaxed && status == ledger.Changed:
		v.Why = "what the session requires is not a part of this history, as far as is known: " + judged.String()
	case !n.relaxed && n.mark == beyondAll:
		v.Why = "what the session requires was not durable yet when it was last looked at: only the primary has it for sure"
	case !n.relaxed && status == ledger.Open:
		v.Why = "what the session has seen elsewhere is not bounded yet; a look is needed"
	case r.eligible(t, i, n):
		v.Eligible, v.Why = true, "has everything that is required"+r.besides(i, class, n.exclude)
		if slow, took := r.Slow(i, now); slow {
			v.Why += fmt.Sprintf(", but answers late (in %v, in the middle): reads go around it while another has it", took.Round(100*time.Microsecond))
		}
	case n.oldest != 0 && !v.StalenessKnown:
		v.Why = "its staleness is not known: no look at the primary that it covers"
	case n.relaxed:
		v.Why = fmt.Sprintf("may be %v old, more than the budget", v.Staleness.Round(time.Millisecond))
	case n.oldest != 0 && x.Current < n.oldest:
		v.Why = fmt.Sprintf("may be %v old, more than LongestLag allows for a session without a mark", v.Staleness.Round(time.Millisecond))
	default:
		v.Why = fmt.Sprintf("has applied %v, less than required", x.Applied)
	}
	return v
}

// whyBarred says why a class does not use a node.
func (r *Router) whyBarred(i int, class tidegate.Class) string {
	n := r.slots[i].node.Load()
	require, _ := class.Tags()
	if tag := n.lacks(require); tag != "" {
		return fmt.Sprintf("lacks the tag %q, which the class requires", tag)
	}
	return fmt.Sprintf("is dedicated to classes that require or prefer one of its tags, %q", n.Tags)
}

// besides says what else there is to a node that is eligible.
func (r *Router) besides(i int, class tidegate.Class, avoid uint64) (and string) {
	if r.keeps(class, i, avoid) {
		and = "; it is out for its lag, and kept in use for this class (MinServing)"
	}
	if _, prefer := class.Tags(); len(prefer) > 0 {
		if tag := r.slots[i].node.Load().lacks(prefer); tag != "" {
			and += fmt.Sprintf("; lacks the tag %q, which the class prefers", tag)
		}
	}
	return and
}
