// Package tidegate is the vocabulary of read routing by proven freshness.
//
// Replication is asynchronous: a replica that answers a read may not yet have
// what the reader just wrote, or what it saw a moment ago on another replica.
// Tidegate keeps, for every session, the position in the replication history
// that it must see, and lets a read go only to a replica that provably has it.
//
// An application meets five things here:
//
//   - a [Class] says what a read needs: strong (a decision), causal (the
//     default) or relaxed with a named staleness budget;
//   - a [Session] is one user's or one job's causal history, and travels in a
//     context by [WithSession];
//   - a [Token] is that history on the wire, signed by a [Keyring] where it
//     meets a client, or kept in a [Store] by a [Keeper];
//   - a [Decision] says where a read went and why, collected by [Observe];
//   - the errors, which say what to do next.
//
// A database adapter such as pgxgate does the routing. [Mark], [Position],
// [Epoch], [Incarnation] and [Ledger] are for adapters and carriers; an
// application treats a token as opaque.
//
// # Guarantees
//
// For every session, on every instance that holds its token:
//
//  1. Read-your-writes: a causal read sees every write that the session was
//     told has committed.
//  2. Monotonic reads: a causal read never shows an older state than an earlier
//     read of the session showed.
//  3. Never silent: when no replica qualifies the read waits a bounded time,
//     uses the primary, or fails with a typed error. A [Decision] tells which.
//  4. Fail closed: unknown, NULL, timed out, mismatched, forged and expired all
//     mean "not proven fresh".
//
// The guarantees hold along the tokens that are presented: a client that only
// ever replaces one token by another has them along that chain, and a client
// that drops its token has a new session. They say nothing about other
// sessions' writes: those arrive when replication brings them.
package tidegate
