package strategy

import (
	"context"
	"strconv"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// PinTime is how long a sticky session reads from the primary after a write.
const PinTime = 5 * time.Second

// Sticky reads from the primary for 5 s after a session's write, else from each
// replica in turn: the commonest remedy for stale reads. Its token is the time
// of the last write, as a cookie would carry it, so that the pin holds on every
// instance. It hopes that no replica is ever later than that, and does not know
// what a session has read.
type Sticky struct{}

// Name implements Strategy.
func (Sticky) Name() string { return "sticky" }

// About implements Strategy.
func (Sticky) About() string {
	return "reads on the primary for 5 s after the session's write, else on each replica in turn"
}

// Open implements Strategy.
func (Sticky) Open(ctx context.Context, instance int, nodes Nodes, cfg Config) (Instance, error) {
	p, err := openPools(ctx, instance, nodes, cfg)
	if err != nil {
		return nil, err
	}
	return &sticky{p}, nil
}

type sticky struct{ *pools }

// Read implements Instance.
func (p *sticky) Read(ctx context.Context, s *Session, keys []int64) (record.Answer, error) {
	if pinned(s.Token, time.Now()) {
		return p.onPrimary(ctx, keys, reasonPinned)
	}
	return p.onReplica(ctx, keys, nil)
}

// Write implements Instance. A write that failed may have happened: it pins too.
func (p *sticky) Write(ctx context.Context, s *Session, key, version int64) error {
	err := p.pools.Write(ctx, s, key, version)
	s.Token = strconv.FormatInt(time.Now().UnixMicro(), 10)
	return err
}

// pinned reports whether the write that the token tells of was a moment ago. A
// token that cannot be read pins: reading too much from the primary is the
// smaller mistake.
func pinned(token string, now time.Time) bool {
	if token == "" {
		return false
	}
	wrote, err := strconv.ParseInt(token, 10, 64)
	return err != nil || now.Sub(time.UnixMicro(wrote)) < PinTime
}
