// Package fake is a database cluster in memory, whose lag, roles, crashes and
// windows of visibility a test controls, and a [Gate]: the adapter over
// engine.Core that a real driver would be.
//
// A cluster moves by itself, each replica by its delay, or only when it is told
// to (Config.Manual). Either way it has no goroutine of its own: in a
// testing/synctest bubble the bubble's clock is its clock.
//
// Data is a log of commits. Each one has a serial number that is unique in the
// cluster whatever its history, writes one key, and is that key's version. A
// read shows the newest version of a key among the commits that its node shows.
//
// What is like PostgreSQL here: a primary flushes and streams a commit before it
// shows it; a replica shows a commit before it publishes it as applied; a crash
// makes a new incarnation whose visible state is older; a promotion is a new
// line and keeps the incarnation; an unknown outcome can still land.
package fake
