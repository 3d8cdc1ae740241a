// Package pgxgate routes PostgreSQL reads to replicas that provably have what
// the session must see, through pgx.
//
//	db, err := pgxgate.Open(ctx, pgxgate.Config{
//		Cluster: "main",
//		Nodes:   []pgxgate.Node{{DSN: primaryOrReplica}, {DSN: another}},
//	})
//	db.Write().Exec(ctx, "update ...")                        // on the primary; the session's mark advances
//	db.Read(tidegate.Causal).QueryRow(ctx, "select ...")      // on a replica that has the update, or the primary
//	db.Write().Tx(ctx, func(tx pgx.Tx) error { ... })         // every read in it is on the primary
//	db.Read(Dashboard).Tx(ctx, func(tx pgx.Tx) error { ... }) // read-only, one node, one snapshot
//
// Roles are discovered: list the nodes in any order. One node without a replica
// works, and so does a start while nodes are down.
//
// # What the handles do to a statement
//
// Nothing. No SQL is inspected to decide a route; the class at the call site
// does. A write's position is asked for in the same round trip behind the
// statement, outside its transaction, so VACUUM, CREATE INDEX CONCURRENTLY, CALL
// of a procedure that commits, COPY, batches and strings of several statements
// keep their meaning. Pools, tracers, TLS and statement caches stay as
// configured.
//
// A read that its node fails before the first row goes elsewhere. A write is
// never replayed; when its outcome or its position is not known, the session's
// next causal read sees all that was committed by then.
//
// # What a Read handle does not keep you from
//
// Its connections are read-only (default_transaction_read_only), also on the
// primary, and take one statement at a time. A server still accepts some
// statements there that belong on the primary: LISTEN and NOTIFY, advisory
// locks (a standby accepts pg_advisory_lock, which then excludes nobody else),
// VACUUM, PREPARE TRANSACTION, and SET TRANSACTION READ WRITE as the first
// statement of a read transaction on the primary. Use Write() or Primary() for
// these.
//
// # Asynchronous commits
//
// With synchronous_commit off a commit is acknowledged before it is durable, so
// its position has to be taken differently: see [AsyncCommits]. A deferred
// trigger that changes the setting during COMMIT is beyond what can be captured.
package pgxgate
