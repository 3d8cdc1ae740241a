// Package eventgate carries tokens in messages and jobs, so that whoever reads
// because of one sees what it is about.
//
// An event that makes another session read again is the usual way to read something
// stale: the event is faster than replication. A job that starts on another machine
// is the same. Both carry the token of their sender:
//
//	gate, err := eventgate.New(eventgate.Config{Keyring: keyring, Clusters: []string{"main"}})
//
//	err = gate.Inject(ctx, eventgate.InMap(headers, eventgate.Header))        // the sender, after its commit
//	ctx, err = gate.Extract(ctx, eventgate.InMap(headers, eventgate.Header))  // the consumer, before its reads
//
// Extract merges: a session that takes out several tokens sees all that any of them
// asks for, beside what it had seen itself.
//
// # Where the token is
//
//	InMap, InMultiMap        headers as strings, or lists of them (NATS, SQS, HTTP)
//	InTable                  a table of AMQP; the extensions of a CloudEvent in Go
//	InString                 a field of a struct (see Envelope), a column of an outbox
//	InJSON                   an encoded object; its other members keep every byte
//	Carrier                  anything else, by two methods: the record of a Kafka client
//
// Header, CloudEventsAttribute and JSONField are the names.
//
// # Before or after the commit
//
// A commit has no position before it has happened. A message that is sent after it
// takes Inject. One that becomes visible by the same transaction, such as a job of
// a queue in the database or a row of an outbox, takes InjectBeforeCommit: its
// consumer sees all that is committed by when it takes the token out. A relay that
// reads an outbox and sends on can Inject from a session in which it has read the
// row on the primary: that is exact again. A message that is sent to a broker before
// the commit cannot be helped by any token.
//
// # Trust
//
// Tokens are signed. One that does not verify, for whatever reason, advances nothing;
// the session catches up with Config.Clusters instead, Extract returns a
// [RefusedError], and Stats counts it by reason. A message without a token does the
// same without the error, unless Config.Missing allows it to be Fresh. A broker that
// only the application can write to may go without signatures, if Config.TrustedBroker
// says so.
//
// # Jobs
//
// [Jobs] begins jobs, each with a session of its own. Three modes say what happens
// while no replica has what the token requires:
//
//	WaitThenPrimary   begin; each read follows the ladder of its class
//	AlwaysWait        wait for a replica, as long as the context allows
//	Postpone          give the worker back, by a PostponedError that says for how long
//
// The last two keep jobs off the primary. They hold for what the job begins with; a
// job that writes reads its own writes by the ladder. Jobs that must not wait behind
// a replica for ever count their tries, or look at their age, and use WaitThenPrimary
// then.
//
// # What it does not do
//
// It reads no database, keeps nothing but what jobs that were postponed have found
// out, and starts no goroutine. Ordering and delivery are the broker's. A message that
// comes twice asks twice for the same.
package eventgate
