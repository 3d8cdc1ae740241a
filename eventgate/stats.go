package eventgate

import (
	"errors"
	"sync/atomic"

	"github.com/tidegatedb/tidegate"
)

// Stats counts what happened since a gate was made.
type Stats struct {
	// Injected counts tokens that were put into messages.
	Injected uint64
	// Sessionless counts messages that got none because there was no session.
	Sessionless uint64
	// Merged counts tokens that were taken out and became part of a session.
	Merged uint64
	// Missing counts messages without a token, Fresh those of them that were
	// allowed to require nothing.
	Missing, Fresh uint64
	// CatchUps counts how often a session was made to catch up, for a token that
	// was missing or refused.
	CatchUps uint64
	// Refused counts tokens that were refused.
	Refused Refusals
}

// Refusals counts refused tokens by reason.
type Refusals struct {
	// Malformed counts what is no token.
	Malformed uint64
	// Signature counts tokens that were altered, are not signed, or were signed
	// elsewhere.
	Signature uint64
	// Key counts tokens of a key that is not in the key ring.
	Key uint64
	// Expired counts tokens whose lifetime was over.
	Expired uint64
	// Future counts tokens from a clock that is ahead.
	Future uint64
	// TooLarge counts tokens above the bound on their length.
	TooLarge uint64
	// TooMany counts messages with more tokens than Config.MaxTokens.
	TooMany uint64
}

// Total returns the sum over all reasons.
func (r Refusals) Total() uint64 {
	return r.Malformed + r.Signature + r.Key + r.Expired + r.Future + r.TooLarge + r.TooMany
}

type counts struct {
	injected, sessionless, merged, missing, fresh, catchUps       atomic.Uint64
	malformed, signature, key, expired, future, tooLarge, tooMany atomic.Uint64
}

func (c *counts) refuse(err error) {
	switch {
	case errors.Is(err, ErrTooManyTokens):
		c.tooMany.Add(1)
	case errors.Is(err, tidegate.ErrTokenSignature):
		c.signature.Add(1)
	case errors.Is(err, tidegate.ErrTokenKey):
		c.key.Add(1)
	case errors.Is(err, tidegate.ErrTokenExpired):
		c.expired.Add(1)
	case errors.Is(err, tidegate.ErrTokenFuture):
		c.future.Add(1)
	case errors.Is(err, tidegate.ErrTokenTooLarge):
		c.tooLarge.Add(1)
	default:
		c.malformed.Add(1)
	}
}

// Stats returns the counters.
func (g *Gate) Stats() Stats {
	c := &g.counts
	return Stats{
		Injected: c.injected.Load(), Sessionless: c.sessionless.Load(),
		Merged: c.merged.Load(), Missing: c.missing.Load(), Fresh: c.fresh.Load(), CatchUps: c.catchUps.Load(),
		Refused: Refusals{
			Malformed: c.malformed.Load(), Signature: c.signature.Load(), Key: c.key.Load(), Expired: c.expired.Load(),
			Future: c.future.Load(), TooLarge: c.tooLarge.Load(), TooMany: c.tooMany.Load(),
		},
	}
}
