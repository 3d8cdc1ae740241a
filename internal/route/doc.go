// Package route owns policy: which node is eligible for a read, how reads spread
// over the eligible ones, and the ladder for a read that none is eligible for:
// a bounded wait, the primary, a typed error.
//
// It never dials and never parses a token. Facts come from the freshness table,
// requirements from the session's ledger. A decision takes the session's own
// lock and no other.
package route
