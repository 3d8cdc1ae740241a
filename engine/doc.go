// Package engine is what a database adapter builds on: a [Core] that watches a
// cluster's nodes, routes reads, and keeps each session's marks.
//
// An adapter owns its server's dialect: how to probe a node ([Source], and
// [Prover] where a replica can be ahead of what its primary shows), how to take
// a write's position, which error means what. It decides nothing; pools and
// their health stay with the driver.
//
// This package may change between minor releases until version 1.
//
// # One read
//
//	var rd engine.Read
//	err := core.Begin(ctx, class, &rd)     // where to, possibly after a wait
//	conn := pools[rd.Node()].Acquire(ctx)
//	ok := core.Admit(ctx, &rd, conn.born)  // does the proof hold for this connection?
//	...                                    // the statement
//	core.At(&rd, conn.born, position)      // on the primary: the position in the same round trip
//	core.End(&rd)                          // when the last row has been delivered
//
// A read that its node fails before the first row calls [Core.Fail] and begins
// again; one that was not sent calls [Core.Cancel].
//
// # One write
//
//	w, err := core.BeginWrite(ctx)
//	...                                    // the statement, and the position after it
//	core.Committed(&w, conn.born, position) // or core.Unknown when either is not known
//	core.EndWrite(&w)
package engine
