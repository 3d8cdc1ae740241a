// Package carrier lets strategies serve behind real HTTP, as an application with
// several instances does, and carries the sessions of those that have any. A
// [Fleet] is one HTTP server for each instance, a balancer in front of them that
// sends each request to the next one, and a client of its own for each session.
//
// How sessions are carried is a [Carrier]: what the instances wrap their handlers
// with, and what the clients do with the tokens that come back. A new one is a file
// with a Carrier in it, and its name in [All].
package carrier

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/httpgate"
)

// Carrier is a way of carrying sessions.
type Carrier struct {
	// Name is what --carrier and the report call it: lower case, dashes.
	Name string
	// About says in one sentence what it does.
	About string
	// Events says that each write also sends an event, with the writer's token, to
	// another session, which reads again because of it.
	Events bool
	// CatchesUp says that a session whose history is lost always catches up, whatever
	// Config.Missing says.
	CatchesUp bool
	// Open begins to carry the sessions of one strategy. It may start what the
	// instances share.
	Open func(ctx context.Context, cfg Config) (Way, error)
}

// Config is what a carrier is given. Every field must be set.
type Config struct {
	Keyring *tidegate.Keyring
	Cluster string
	// Missing is what a client gets that is known and brings no token.
	Missing httpgate.Policy
}

// Way is a carrier at work. It is safe for concurrent use.
type Way interface {
	// Gate returns what one instance wraps its handlers with.
	Gate(ctx context.Context) (Gate, error)
	// Client returns what one session sends its requests with, all of them to the
	// host. The key identifies the session: it is what [SessionHeader] says.
	Client(ctx context.Context, key, host string, base http.RoundTripper) (Client, error)
	// Close ends what Open has started. Nothing uses the way any more.
	Close()
}

// Gate gives requests their sessions. It is safe for concurrent use.
type Gate interface {
	Wrap(next http.Handler) http.Handler
	Stats() Stats
}

// Client sends one session's requests. It is safe for concurrent use, except for
// Forget.
type Client interface {
	Do(req *http.Request) (*http.Response, error)
	// Forget loses all tokens that are kept for the session, wherever that is, and
	// returns how many they were. No request is under way.
	Forget(ctx context.Context) int
}

// Stats counts what the gates of a fleet have done.
type Stats struct {
	// Emitted counts responses with a token, Late those whose session came to
	// require more when it was too late for one.
	Emitted, Late uint64
	// CatchUps counts sessions that had to see all that was committed, for a token
	// that was missing or refused; Fresh those that began with nothing to see.
	CatchUps, Fresh uint64
	// Refused counts tokens that were refused.
	Refused uint64
	// Undelivered counts events that were lost, because their session had too many
	// to read for.
	Undelivered uint64
}

func (s Stats) plus(o Stats) Stats {
	return Stats{
		Emitted: s.Emitted + o.Emitted, Late: s.Late + o.Late, CatchUps: s.CatchUps + o.CatchUps,
		Fresh: s.Fresh + o.Fresh, Refused: s.Refused + o.Refused, Undelivered: s.Undelivered + o.Undelivered,
	}
}

// Minus returns what was counted since o.
func (s Stats) Minus(o Stats) Stats {
	return Stats{
		Emitted: s.Emitted - o.Emitted, Late: s.Late - o.Late, CatchUps: s.CatchUps - o.CatchUps,
		Fresh: s.Fresh - o.Fresh, Refused: s.Refused - o.Refused, Undelivered: s.Undelivered - o.Undelivered,
	}
}

// All lists the carriers.
func All() []Carrier { return []Carrier{header, cookie, stored, event} }

// Names lists the names of all carriers.
func Names() (names []string) {
	for _, c := range All() {
		names = append(names, c.Name)
	}
	return names
}

// Find returns the carrier with the name.
func Find(name string) (Carrier, error) {
	for _, c := range All() {
		if c.Name == name {
			return c, nil
		}
	}
	return Carrier{}, fmt.Errorf("there is no carrier %q; there are %s", name, strings.Join(Names(), ", "))
}
