package report

import (
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/carrier"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// Carriage is how a strategy fared whose requests went over HTTP. For one without
// sessions nothing is carried, and the counts of tokens are 0.
type Carriage struct {
	// Dropped counts requests right before which the client had lost tokens, Tokens
	// those tokens.
	Dropped int `json:"dropped"`
	Tokens  int `json:"dropped_tokens"`
	// CatchUps counts requests whose session had to see all that was committed, for
	// a token that was missing or refused; Fresh those whose session began with
	// nothing to see. The first request of each session is one or the other.
	CatchUps uint64 `json:"catch_ups"`
	Fresh    uint64 `json:"fresh"`
	// Refused counts tokens that were refused.
	Refused uint64 `json:"refused"`
	// Emitted counts responses with a token, Late those whose session came to
	// require more when it was too late for one.
	Emitted uint64 `json:"emitted"`
	Late    uint64 `json:"late"`
	// Overlapping counts requests that began while their session had another one in
	// flight.
	Overlapping int `json:"overlapping"`
	// Rereads counts answered reads that an event caused, Undelivered events that
	// were lost before.
	Rereads     int    `json:"rereads"`
	Undelivered uint64 `json:"undelivered"`
	// StaleRereads are those of the Rereads that lack what their event told of.
	StaleRereads int `json:"stale_rereads"`
	// Unexcused counts reads that broke a promise, without those of sessions that
	// had lost tokens and missed what they had known before: that is all that a
	// lost token excuses, where the policy allows it. It is for the verdict.
	Unexcused int `json:"-"`
}

// MeasureCarriage counts what a log and the gates know of the way of the sessions.
func MeasureCarriage(log *record.Log, s carrier.Stats) *Carriage {
	c := &Carriage{
		CatchUps: s.CatchUps, Fresh: s.Fresh, Refused: s.Refused,
		Emitted: s.Emitted, Late: s.Late, Undelivered: s.Undelivered,
	}
	for _, ops := range log.Sessions() {
		lost := false
		for i := range ops {
			op := &ops[i]
			lost = lost || op.Dropped > 0
			count(&c.Dropped, op.Dropped > 0)
			c.Tokens += op.Dropped
			count(&c.Overlapping, op.Overlaps)
			count(&c.Rereads, op.Told != nil && op.OK())
			missed := op.Broke(record.ReadsAfterEvents)
			count(&c.StaleRereads, missed)
			count(&c.Unexcused, missed || len(op.Violations) > 0 && !lost)
		}
	}
	return c
}
