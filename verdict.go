package tidegate

import "fmt"

// Verdict says what has become of what a session must see, after the cluster's history
// has changed or for a token that came from elsewhere.
type Verdict uint8

// The verdicts.
const (
	// VerdictNone is the zero Verdict: nothing had to be judged.
	VerdictNone Verdict = iota
	// VerdictSurvived: the history goes on from a point behind it, so that it is there.
	VerdictSurvived
	// VerdictLost: the history has left the one that it belongs to before it. A position
	// covers all that was committed before it, so that the session's own part may be there.
	VerdictLost
	// VerdictUnknown: nobody can say, because the way from its history to this one is not
	// known, or because it was never durable, or not known itself.
	VerdictUnknown
	// VerdictForeign: it belongs to another database system.
	VerdictForeign
	// VerdictAhead: it is of this history and further than the history goes: the cluster
	// was restored to an earlier state, or lost its end in a crash, or somebody made it up.
	VerdictAhead
	verdicts
)

// Verdicts is the number of verdicts.
const Verdicts = int(verdicts)

var verdictNames = [verdicts]string{"none", "survived", "lost", "unknown", "foreign", "ahead"}

// String returns the verdict as a word for logs and metrics.
func (v Verdict) String() string {
	if v < verdicts {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict-%d", uint8(v))
}

// Worse returns the one of two verdicts that says more against what was judged.
func (v Verdict) Worse(o Verdict) Verdict { return max(v, o) }

// ForeignPolicy says what becomes of a read whose session must see something of another
// database system, or that is further than the history goes.
type ForeignPolicy uint8

// The policies.
const (
	// ForeignPrimary, the default, lets the primary answer, unproven, and tells so
	// ([ReasonHistoryChanged]). From there on the session goes on in this history.
	ForeignPrimary ForeignPolicy = iota
	// ForeignError fails the session's causal and strong reads with a [ForeignTokenError], until it has another
	// token.
	ForeignError
	// ForeignIgnore drops it, as if it had not been presented, and counts it.
	ForeignIgnore
	foreignPolicies
)

// String returns "primary", "error" or "ignore".
func (p ForeignPolicy) String() string {
	switch p {
	case ForeignPrimary:
		return "primary"
	case ForeignError:
		return "error"
	case ForeignIgnore:
		return "ignore"
	}
	return fmt.Sprintf("ForeignPolicy(%d)", uint8(p))
}

// Valid reports whether p is one of the policies.
func (p ForeignPolicy) Valid() bool { return p < foreignPolicies }
