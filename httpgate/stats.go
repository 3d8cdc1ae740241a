package httpgate

import (
	"errors"
	"sync/atomic"

	"github.com/tidegatedb/tidegate"
)

// Stats is what a [Middleware] has done since it was made.
type Stats struct {
	// Emitted counts responses that carried a token, or took cookies away because a
	// [Store] has what they said.
	Emitted uint64
	// Late counts responses whose session came to require more after their first
	// byte: the client does not have it.
	Late uint64
	// Unkept counts the times, two for a response at most, at which a [Store] alone was not
	// enough to keep what the session required. The tidegate.Keeper's own Stats say why.
	Unkept uint64
	// CatchUps counts requests whose session had to catch up, because a token was
	// refused or Config.Missing said so. A keeper counts for itself those that it could not load.
	CatchUps uint64
	// Fresh counts requests that brought no token and got a session that requires
	// nothing.
	Fresh uint64
	// Refused counts tokens that were refused.
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
	// TooMany: requests, or responses to a Transport, with more tokens than are read.
	TooMany uint64
	// Foreign: of other clusters only.
	Foreign uint64
}

// Total returns the sum of all reasons.
func (r Refusals) Total() uint64 {
	return r.Malformed + r.Signature + r.Key + r.Expired + r.Future + r.TooLarge + r.TooMany + r.Foreign
}

var (
	errForeign = errors.New("httpgate: the token names none of the clusters")
	errTooMany = errors.New("httpgate: too many tokens")
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

// counters are the running ones behind Stats.
type counters struct {
	emitted, late, unkept, catchUps, fresh atomic.Uint64
	refused                                refusals
}

// Stats returns the counters. They are read one after the other, while requests
// go on.
func (m *Middleware) Stats() Stats {
	c := &m.counters
	return Stats{
		Emitted: c.emitted.Load(), Late: c.late.Load(), Unkept: c.unkept.Load(), CatchUps: c.catchUps.Load(), Fresh: c.fresh.Load(),
		Refused: c.refused.snapshot(),
	}
}
