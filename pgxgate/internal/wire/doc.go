// Package wire asks a PostgreSQL server for a log position in the round trip
// of a command, without changing what the command means.
//
// A [Conn] wraps the connection of a PostgreSQL client above TLS, which with
// pgx is what pgconn.Config.AfterNetConnect is for. While it is armed, it adds
// Bind, Execute and Sync of a prepared statement behind the client's own Sync
// or Query, takes the answer out of the server's stream, and holds the
// command's ReadyForQuery back until the answer is there. No SQL is inspected
// and every command keeps its own transaction, so VACUUM, CALL of a procedure
// that commits, and strings of several statements work as before.
//
// One command is known by its bytes, the Query "commit" that pgx ends a
// transaction with. In its place goes a sequence of the same COMMIT and the ask with
// one Sync: the server answers in one packet, where an ask of its own would wake the
// client twice. Execute commits before the next Bind is looked at (exec_execute_message
// in src/backend/tcop/postgres.c: a transaction statement finishes its command), so it
// commits whatever becomes of the ask. When it fails, the server skips the ask. The
// client gets its ReadyForQuery for the tag of the COMMIT, also when the connection
// fails, or the server goes, before the position is there.
//
// # Guarantees
//
// Formally: let C be the bytes that the client writes and S the bytes that the
// server would answer to them. The server reads C with complete, synchronised
// asks inserted only at points where the client has completed a Sync, a Query
// or, for [AfterCopy], a CopyDone, and, for [AroundCommit], in front of a
// write that starts at such a point; a write that is the Query "commit" has the
// ask inside. The client reads S, except that an
// asynchronous message (notice, notification, parameter status) which arrives
// between a command's ReadyForQuery and the position comes before that
// ReadyForQuery, and that the status byte in it is the newest that the server
// gave.
//
// Plainly: the client sees its own command and nothing else, and by the time
// it sees the end of the command the position is known or known to be lost. A
// command that the server has acknowledged stays acknowledged when the
// connection fails, or a deadline passes, before the position is there.
//
// Not promised:
//
//   - A COMMIT that fails has no position behind it.
//   - The acknowledgement of a COMMIT comes with its position: a server that has to wait
//     before it can give one, as for a lock on the catalog, acknowledges later.
//   - A position taken inside a transaction says nothing about its commit.
//   - An ask that ends up inside an open transaction block takes a snapshot
//     there. Do not arm a BEGIN: a later SET TRANSACTION would be refused, and
//     REPEATABLE READ would see the state at BEGIN.
//   - [AroundCommit] asks inside the client's transaction. If its statement is
//     gone the transaction is rolled back. A Conn sees DEALLOCATE ALL and
//     DISCARD ALL and then does not ask; one hidden in a function body it
//     cannot see.
//   - A COPY FROM STDIN under [After] fails with SQLSTATE 08P01 and the server
//     ends the connection, because the ask is behind the Query where the
//     server expects data. Use [AfterCopy].
//   - Behind a pooler that gives every transaction another server connection,
//     the ask can run on another one than the command.
//   - The unnamed portal does not survive an ask, nor the unnamed statement a
//     COMMIT. pgx never relies on that.
//   - pgx looks for a *tls.Conn when it negotiates channel binding and does
//     not find it behind a Conn: channel_binding=prefer authenticates without
//     binding, channel_binding=require fails to connect.
//   - pg_stat_activity shows the ask as the last query of an idle connection, and the
//     server's log has a COMMIT as an extended query where that is logged. With
//     client_min_messages at log or below the client gets the notices of the ask, too.
package wire
