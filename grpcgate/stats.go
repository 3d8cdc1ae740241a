package grpcgate

import (
	"errors"
	"sync/atomic"

	"github.com/tidegatedb/tidegate"
)

// ServerStats is what a [Server] has done since it was made.
type ServerStats struct {
	// Emitted counts tokens that were put into headers and trailers.
	Emitted uint64
	// CatchUps counts calls whose session had to catch up, because a token was
	// refused or ServerConfig.Missing said so.
	CatchUps uint64
	// Fresh counts calls that brought no token and got a session that requires
	// nothing.
	Fresh uint64
	// Refused counts tokens that were refused.
	Refused Refusals
}

// ClientStats is what a [Client] has done since it was made.
type ClientStats struct {
	// Sent counts calls that carried a token.
	Sent uint64
	// Merged counts tokens that came back and were merged.
	Merged uint64
	// CatchUps counts calls after which the session had to catch up: for a token that
	// was refused, and for a call that was lost.
	CatchUps uint64
	// Lost counts calls that failed without the service's word on what it did.
	Lost uint64
	// Refused counts tokens that came back and were refused.
	Refused Refusals
}

// Refusals counts refused tokens by reason.
type Refusals struct {
	// Malformed: no token of a version that is known here.
	Malformed uint64
	// Signature: altered, or signed elsewhere.
	Signature uint64
	// Key: signed with a key that is not in the ring.
	Key uint64
	// Expired: older than the ring's lifetime.
	Expired uint64
	// Future: issued later than now; clocks disagree.
	Future uint64
	// TooLarge: longer than a token can be.
	TooLarge uint64
	// TooMany: calls or answers with more tokens than are read.
	TooMany uint64
	// Foreign: of other clusters only.
	Foreign uint64
}

// Total returns the sum of all reasons.
func (r Refusals) Total() uint64 {
	return r.Malformed + r.Signature + r.Key + r.Expired + r.Future + r.TooLarge + r.TooMany + r.Foreign
}

var (
	errForeign = errors.New("grpcgate: the token names none of the clusters")
	errTooMany = errors.New("grpcgate: too many tokens")
)

// refusals are counters of refused tokens, in the order of refusalReasons.
type refusals [8]atomic.Uint64

var refusalReasons = [len(refusals{})]error{
	tidegate.ErrTokenMalformed, tidegate.ErrTokenSignature, tidegate.ErrTokenKey, tidegate.ErrTokenExpired,
	tidegate.ErrTokenFuture, tidegate.ErrTokenTooLarge, errTooMany, errForeign,
}

func (r *refusals) add(err error) {
	for i, reason := range refusalReasons {
		if errors.Is(err, reason) {
			r[i].Add(1)
			return
		}
	}
	r[0].Add(1) // no token that this release knows
}

func (r *refusals) snapshot() Refusals {
	return Refusals{
		Malformed: r[0].Load(), Signature: r[1].Load(), Key: r[2].Load(), Expired: r[3].Load(),
		Future: r[4].Load(), TooLarge: r[5].Load(), TooMany: r[6].Load(), Foreign: r[7].Load(),
	}
}
