// Package freshness owns the facts: what each node of a cluster was last seen
// to have applied, which role and history it has, and when that was asked.
//
// A [Watcher] probes every node on its own and publishes an immutable [Table]
// behind one atomic pointer. It ejects nobody, pages nobody and decides nothing;
// that is the router's part. Whoever waits for a fact waits for the next table.
//
// # What an observation proves
//
// A probe that was sent at time t and says "applied p" proves that every read
// that begins after t on the same incarnation of that node shows at least p. Its
// bound proves that every read that ended before t on it showed at most that.
// Both hold without comparing clocks: only the sending process's monotonic
// clock is used, and the answer's arrival is not.
package freshness
