// Package grpcgate carries tokens in the metadata of gRPC calls: each call has a
// session on the server, and the caller's session comes to know what it has written
// and seen there.
//
//	server, err := grpcgate.NewServer(grpcgate.ServerConfig{Keyring: keyring, Clusters: []string{"main"}})
//	s := grpc.NewServer(server.Options()...)
//
//	client, err := grpcgate.NewClient(grpcgate.ClientConfig{Keyring: keyring, Clusters: []string{"main"}})
//	conn, err := grpc.NewClient(target, append(client.Options(), creds)...)
//
// A handler reads and writes with its context. So does the code of the client: a call
// whose context has a session sends its token, and merges what comes back. A call
// without a session is as if the client side were not there.
//
// A service that calls others with its handler's context passes the session on, and
// back: it is one history through all of them. Tokens go only to connections that the
// client side is installed on.
//
// # On the wire
//
// The metadata key is x-consistency-token, in both directions. A caller that is not
// in Go sends every token that it has, as values of their own or joined by commas,
// and keeps what comes back in headers and trailers; it can drop those that the call
// has sent.
//
// A server answers in the header where that has not been sent: a unary call's after
// the handler, a stream's before its first message. Otherwise, and for whatever comes
// later, in the trailer, with which a failed call and one that panicked answer as
// well. A call that has changed nothing has no token, unless it failed. One that
// read from a replica always has one, also when it says the same: it means a later
// moment.
//
// # Streams
//
// The token of a stream goes out when it begins, and comes back with the first message
// and with the end. What happens between is not known to the caller's session: where a
// message of a long stream is about a write, put a token into the message, as package
// eventgate does.
//
// # What is missing, refused or lost
//
// A token that does not verify, is of other clusters only, or comes in excess of
// MaxTokens advances nothing. The session catches up, on whichever side it is: it must
// see all that is committed by now in the configured clusters. A call without any is
// what ServerConfig.Missing says. Stats counts all of it by reason.
//
// A call that fails on its way (cancelled, late, connection lost) may have committed
// without its caller knowing where. The caller's session catches up then too, which
// covers what has been committed by that time; a handler that goes on and commits
// afterwards is beyond it, as it is beyond the caller's knowledge. Of a stream that is
// left by cancelling its context the session hears a moment after: a caller who reads on
// at once receives until the error first.
//
// # The order of interceptors
//
// On a client, those that repeat calls come before these, in the list of options, so
// that each attempt's answer is merged. The attempts that a gRPC retry policy makes by
// itself are hidden: what one of them answered is not known when a later one succeeds.
// On a server, those that recover from panics and those that authenticate come before
// these, so that a panic is answered with the token, and that ServerConfig.Known can
// tell who it is.
package grpcgate
