package tidegate

import (
	"errors"
	"fmt"
	"time"
)

// The errors of routing and tokens. Errors that carry data wrap one of these.
var (
	// ErrNoPrimary means that no node is known to be the one primary now.
	ErrNoPrimary = errors.New("tidegate: no primary is known; retry when one has been promoted or is reachable again")
	// ErrNotFresh means that no node could be proven to have what the read needs. See [NotFreshError].
	ErrNotFresh = errors.New("tidegate: no node provably has what this read needs")
	// ErrOverloaded means that as many reads as may have fallen back to the primary. See [OverloadedError].
	ErrOverloaded = errors.New("tidegate: no replica qualifies, and as many reads as may are on the primary in their place")
	// ErrLagging means that a bulk job has waited as long as it may, and replicas are still too far behind for its next batch.
	ErrLagging = errors.New("tidegate: replicas are too far behind for the next batch; wait longer, or go on and slow down reads")
	// ErrReadOnly means that a statement tried to write through a Read handle.
	ErrReadOnly = errors.New("tidegate: a Read handle cannot write; use Write()")
	// ErrClosed means that the routed database has been closed.
	ErrClosed = errors.New("tidegate: closed; open it again")
	// ErrClass means that a class was declared with something that makes no sense.
	ErrClass = errors.New("tidegate: unusable class")
	// ErrConfig means that a configuration field has a value that cannot be used.
	ErrConfig = errors.New("tidegate: unusable configuration")

	// ErrNotKept means that a session's store alone is not enough to keep what it requires.
	ErrNotKept = errors.New("tidegate: the session is not safely kept; let its token go out with the answer")

	// ErrForeign means that the session must see what is not the cluster's.
	ErrForeign = errors.New("tidegate: the session's token is of another database system, or ahead of this one's history")

	// ErrToken is wrapped by every error about a token that was presented.
	ErrToken = errors.New("tidegate: token refused; go on with a new session that catches up (Session.CatchUp)")
	// ErrTokenMalformed means bytes that are no token of a version known here.
	ErrTokenMalformed = fmt.Errorf("%w: malformed", ErrToken)
	// ErrTokenSignature means a wrong signature: altered, or signed elsewhere.
	ErrTokenSignature = fmt.Errorf("%w: wrong signature", ErrToken)
	// ErrTokenKey means a key that is not in the key ring; keep retired keys there for a token's lifetime.
	ErrTokenKey = fmt.Errorf("%w: signed with a key that is not in the key ring", ErrToken)
	// ErrTokenExpired means that the token's lifetime is over.
	ErrTokenExpired = fmt.Errorf("%w: expired", ErrToken)
	// ErrTokenFuture means that the token claims to be issued later than now.
	ErrTokenFuture = fmt.Errorf("%w: issued in the future; check this machine's clock", ErrToken)
	// ErrTokenTooLarge means that a token exceeds its size bound.
	ErrTokenTooLarge = fmt.Errorf("%w: too large", ErrToken)
)

// OverloadedError says that a read was sent away: no replica qualified, and the primary
// had no room for reads that fall back to it. It wraps [ErrOverloaded].
type OverloadedError struct {
	// Cluster is the cluster's name.
	Cluster string
	// Class is what the read asked for.
	Class Class
	// Queued is how long the read waited for room.
	Queued time.Duration
	// RetryAfter is when a replica is expected to qualify, or where nobody can tell as
	// long as a read may queue: before that another attempt would only add to the load.
	RetryAfter time.Duration
}

// Error implements error.
func (e *OverloadedError) Error() string {
	return fmt.Sprintf("%v: cluster %s, class %s, queued %v; retry after %v", ErrOverloaded, e.Cluster, e.Class, e.Queued, e.RetryAfter)
}

// Unwrap makes errors.Is see [ErrOverloaded].
func (e *OverloadedError) Unwrap() error { return ErrOverloaded }

// ForeignTokenError says that a session must see what belongs to another database system, or
// what is further than the cluster's history goes, where [ForeignError] is the policy. It
// wraps [ErrForeign].
type ForeignTokenError struct {
	// Cluster is the cluster's name.
	Cluster string
	// Verdict is VerdictForeign or VerdictAhead.
	Verdict Verdict
	// Required is the position that is asked for, in its own history.
	Required Position
	// Epoch is the cluster's history.
	Epoch Epoch
}

// Error implements error.
func (e *ForeignTokenError) Error() string {
	return fmt.Sprintf("%v: cluster %s, required %v, %v in %v; take another token, or a new session", ErrForeign, e.Cluster, e.Required, e.Verdict, e.Epoch)
}

// Unwrap makes errors.Is see [ErrForeign].
func (e *ForeignTokenError) Unwrap() error { return ErrForeign }

// NotFreshError says what a read needed and what was there. It wraps
// [ErrNotFresh], and [ErrNoPrimary] when the primary could not be used either.
type NotFreshError struct {
	// Cluster is the cluster's name.
	Cluster string
	// Class is what the read asked for.
	Class Class
	// Required is the position the read needed.
	Required Position
	// Observed is the newest position that any usable replica was seen to have.
	Observed Position
	// Waited is how long the read waited for a replica.
	Waited time.Duration
	// NoPrimary tells that no primary was known.
	NoPrimary bool
}

// Error implements error.
func (e *NotFreshError) Error() string {
	s := fmt.Sprintf("%v: cluster %s, class %s, required %v, newest replica %v, waited %v", ErrNotFresh, e.Cluster, e.Class, e.Required, e.Observed, e.Waited)
	if e.NoPrimary {
		s += ", and no primary is known; retry when one is reachable"
	}
	return s
}

// Unwrap makes errors.Is see [ErrNotFresh] and, without a primary, [ErrNoPrimary].
func (e *NotFreshError) Unwrap() []error {
	if e.NoPrimary {
		return []error{ErrNotFresh, ErrNoPrimary}
	}
	return []error{ErrNotFresh}
}
