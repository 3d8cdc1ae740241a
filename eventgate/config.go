package eventgate

import (
	"context"
	"fmt"

	"github.com/tidegatedb/tidegate"
)

// Policy says what a message without a token means for the session that reads on
// because of it.
type Policy uint8

const (
	// Fresh requires nothing: the session goes on as it is. It is for messages that
	// tell of nothing in these databases.
	Fresh Policy = iota
	// CatchUp makes the session see all that is committed by now in
	// Config.Clusters. What the message tells of is part of that, if it was
	// committed before the message was sent.
	CatchUp
)

// String returns "fresh" or "catch-up".
func (p Policy) String() string {
	if p == Fresh {
		return "fresh"
	}
	return "catch-up"
}

// DefaultMaxTokens is the number of tokens that are read from one message.
const DefaultMaxTokens = 8

// Config configures a [Gate].
type Config struct {
	// Keyring signs the tokens that go out and verifies those that come in. It must
	// be set, unless TrustedBroker is. Its lifetime must be longer than a message
	// can lie in the broker or a job in its queue: a token that has expired is
	// refused, which costs freshness and never correctness.
	Keyring *tidegate.Keyring
	// TrustedBroker declares that nobody but this application can put a message
	// into the broker. Tokens go out unsigned then and do not expire, and unsigned
	// ones are accepted; signed ones are too, if there is a Keyring. A forged token
	// shows no data, but it can make a session wait for a position that never comes
	// and send its reads to the primary.
	TrustedBroker bool
	// Clusters names the clusters that a session catches up with when a token is
	// missing or refused: those that consumers read. At least one. Tokens of other
	// clusters are merged all the same, for whoever the session meets later.
	Clusters []string
	// Missing says what a message without a token means. Nil means CatchUp always:
	// a message is about something that was written, and a session that knows
	// nothing of it would read past it.
	Missing func(ctx context.Context) Policy
	// MaxTokens bounds the tokens that are read from one message; what is above it
	// is refused. Zero means DefaultMaxTokens.
	MaxTokens int
	// Refused is told of each message whose tokens were refused, once the session
	// has been made to catch up; err is a [RefusedError]. Nil means nobody. It must
	// be safe for concurrent use.
	Refused func(ctx context.Context, err error)
}

// Gate puts tokens into messages and takes them out. It is safe for concurrent
// use.
type Gate struct {
	cfg    Config
	counts counts
}

// New returns a gate, or an error that wraps [tidegate.ErrConfig] and names the
// field.
func New(cfg Config) (*Gate, error) {
	switch {
	case cfg.Keyring == nil && !cfg.TrustedBroker:
		return nil, fmt.Errorf("%w: Config.Keyring is nil; set it, or declare Config.TrustedBroker", tidegate.ErrConfig)
	case len(cfg.Clusters) == 0:
		return nil, fmt.Errorf("%w: Config.Clusters is empty; name the clusters that consumers read", tidegate.ErrConfig)
	case len(cfg.Clusters) > tidegate.MaxMarks:
		return nil, fmt.Errorf("%w: Config.Clusters has %d names; a token carries at most %d", tidegate.ErrConfig, len(cfg.Clusters), tidegate.MaxMarks)
	case cfg.MaxTokens < 0:
		return nil, fmt.Errorf("%w: Config.MaxTokens is %d; use a positive number, or zero for %d", tidegate.ErrConfig, cfg.MaxTokens, DefaultMaxTokens)
	}
	for i, name := range cfg.Clusters {
		if len(name) == 0 || len(name) > tidegate.MaxClusterName {
			return nil, fmt.Errorf("%w: Config.Clusters[%d] is %q; use 1 to %d bytes", tidegate.ErrConfig, i, name, tidegate.MaxClusterName)
		}
	}
	cfg.Clusters = append([]string(nil), cfg.Clusters...)
	if cfg.MaxTokens == 0 {
		cfg.MaxTokens = DefaultMaxTokens
	}
	return &Gate{cfg: cfg}, nil
}
