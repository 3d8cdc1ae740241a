package traffic

import (
	"context"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// Backend is the application as its users know it. It is safe for concurrent use.
type Backend interface {
	// Client returns what one session talks to the application with, for as long as
	// the session lasts. Sessions of the load are numbered from 0.
	Client(session int) Client
}

// Client is one session's way to the application. It is safe for concurrent use,
// because requests of a session may overlap.
type Client interface {
	// Read runs the read that op describes (Asked, Strong) and fills in Answer and
	// Err, and Instance if the application chose it.
	Read(ctx context.Context, op *record.Op)
	// Write runs the write that op describes (Key, Version) and fills in Err, and
	// Instance if the application chose it.
	Write(ctx context.Context, op *record.Op)
	// Forget loses all tokens that the client holds and returns how many. No request
	// of the client is under way.
	Forget(ctx context.Context) int
}

// Event tells a session of another one's write.
type Event struct {
	Row     record.Row // that was written
	Message []byte     // the event as it was sent
}

// Listener is a client that is told of other sessions' writes.
type Listener interface {
	// Events returns where the events come.
	Events() <-chan Event
	// Reread is Read because of an event, which it brings along.
	Reread(ctx context.Context, op *record.Op, e Event)
}
