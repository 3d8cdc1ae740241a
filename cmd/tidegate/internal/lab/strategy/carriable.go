package strategy

import (
	"context"
	"errors"

	"github.com/tidegatedb/tidegate"
)

// Carriable is a strategy that also serves behind HTTP, where requests of one
// session overlap and land on any instance: it keeps nothing of a session in
// [Session].
type Carriable interface {
	// Carried reports whether its sessions have a history that something else has
	// to carry, by tidegate's session in the operation's context. False is for a
	// strategy that knows nothing of sessions.
	Carried() bool
}

// Carried implements Carriable.
func (PrimaryOnly) Carried() bool { return false }

// Carried implements Carriable.
func (RoundRobin) Carried() bool { return false }

// Carried implements Carriable.
func (RemoteApply) Carried() bool { return false }

// Carried implements Carriable.
func (Tidegate) Carried() bool { return true }

// CarriableNames lists the names of the strategies that serve behind HTTP.
func CarriableNames() (names []string) {
	for _, s := range All() {
		if _, ok := s.(Carriable); ok {
			names = append(names, s.Name())
		}
	}
	return names
}

// inContext takes sessions from the operation's context, where an HTTP middleware
// has put them; it also keeps what they know then.
type inContext struct{}

var errNoSession = errors.New("there is no session in the context")

func (inContext) load(ctx context.Context, _ *Session) (*tidegate.Session, error) {
	session := tidegate.SessionFrom(ctx)
	if session == nil {
		return nil, errNoSession
	}
	return session, nil
}

func (inContext) save(*Session, *tidegate.Session) {}
