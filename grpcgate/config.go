package grpcgate

import (
	"context"
	"fmt"

	"github.com/tidegatedb/tidegate"
)

// Key is the metadata key that tokens travel under, in both directions.
const Key = "x-consistency-token"

// Policy is what a call without a token gets.
type Policy uint8

const (
	// Fresh is a new session that requires nothing: for a caller that has not been
	// here before.
	Fresh Policy = iota
	// CatchUp is a new session that must see all that is committed by now: for a
	// caller whose history is not known.
	CatchUp
)

// String returns "fresh" or "catch-up".
func (p Policy) String() string {
	if p == Fresh {
		return "fresh"
	}
	return "catch-up"
}

const (
	defaultMaxTokens = 8
	highestMaxTokens = 64
)

// ServerConfig configures a [Server].
type ServerConfig struct {
	// Keyring verifies and signs tokens. It is required, and all instances need the
	// same keys.
	Keyring *tidegate.Keyring
	// Clusters names the clusters that a session has to catch up with when its token
	// is missing or refused. At least one is required. List every cluster whose
	// positions pass here, also those of services that are called in turn: a token
	// that names none of them is refused as foreign.
	Clusters []string
	// Known tells whether a call without a token belongs to somebody who can have a
	// history, such as an authenticated user; method is the full name, such as
	// "/shop.Orders/Get". Nil means nobody.
	Known func(ctx context.Context, method string) bool
	// Missing says what a call without any token gets. Nil means [CatchUp] when Known
	// says so, and [Fresh] otherwise.
	Missing func(ctx context.Context, method string) Policy
	// MaxTokens is how many tokens of a call are read; more are refused. Zero means
	// 8; at most 64.
	MaxTokens int
}

// ClientConfig configures a [Client].
type ClientConfig struct {
	// Keyring signs what is sent and verifies what comes back. It is required, and
	// the services on both sides need the same keys.
	Keyring *tidegate.Keyring
	// Clusters names the clusters that a session has to catch up with when a
	// service's token is refused, or when a call failed without the service's word on
	// what it did. At least one is required. A token that names none of them is
	// refused as foreign.
	Clusters []string
	// MaxTokens is how many tokens of an answer are read; more are refused. Zero means
	// 8; at most 64.
	MaxTokens int
}

// newVerifier checks what both sides have in common.
func newVerifier(name string, keyring *tidegate.Keyring, clusters []string, maxTokens int) (verifier, error) {
	if keyring == nil {
		return verifier{}, fmt.Errorf("%w: %s.Keyring is nil; use tidegate.NewKeyring", tidegate.ErrConfig, name)
	}
	if len(clusters) == 0 {
		return verifier{}, fmt.Errorf("%w: %s.Clusters is empty; name the clusters whose positions tokens carry here", tidegate.ErrConfig, name)
	}
	if len(clusters) > tidegate.MaxMarks {
		return verifier{}, fmt.Errorf("%w: %s.Clusters has %d names; a token carries at most %d", tidegate.ErrConfig, name, len(clusters), tidegate.MaxMarks)
	}
	for i, c := range clusters {
		if len(c) == 0 || len(c) > tidegate.MaxClusterName {
			return verifier{}, fmt.Errorf("%w: %s.Clusters[%d] (%q) has %d bytes; use 1 to %d", tidegate.ErrConfig, name, i, c, len(c), tidegate.MaxClusterName)
		}
	}
	if maxTokens == 0 {
		maxTokens = defaultMaxTokens
	}
	if maxTokens < 1 || maxTokens > highestMaxTokens {
		return verifier{}, fmt.Errorf("%w: %s.MaxTokens is %d; use 1 to %d", tidegate.ErrConfig, name, maxTokens, highestMaxTokens)
	}
	return verifier{keyring: keyring, clusters: append([]string(nil), clusters...), most: maxTokens}, nil
}
