package strategy

import (
	"context"
	"sync"

	"github.com/tidegatedb/tidegate"
)

// Memory is tidegate with sessions that an instance keeps in its memory. They
// have no token, so a load balancer has to keep each session on one instance:
// without that affinity every hop would lose the session. A new instance knows
// none of them in any case, and what happens then is the difference between the
// two variants.
type Memory struct {
	// Forgets takes a session that the instance does not know for a new one, as
	// is easily done; it then does not see what it has seen and written. False
	// makes it catch up with all that is committed.
	Forgets bool
}

// Name implements Strategy.
func (m Memory) Name() string {
	if m.Forgets {
		return "tidegate-amnesia"
	}
	return "tidegate-memory"
}

// About implements Strategy.
func (m Memory) About() string {
	if m.Forgets {
		return "tidegate with sessions in the instance's memory; one that it does not know is a new one, wrongly, and reads from replicas of any age"
	}
	return "tidegate with sessions in the instance's memory; one that it does not know catches up"
}

// Homebound implements Homebound.
func (Memory) Homebound() {}

// Open implements Strategy.
func (m Memory) Open(ctx context.Context, _ int, nodes Nodes, cfg Config) (Instance, error) {
	if m.Forgets {
		// The other half of the mistake: a new process would refuse replicas of unknown age
		// to those whom it takes for new.
		cfg.AnyLag = true
	}
	return openGated(ctx, nodes, cfg, &memory{forgets: m.Forgets, sessions: map[int]*tidegate.Session{}})
}

// memory carries sessions within one instance. One for users would also forget
// those that have not come back for long; a run of the lab has few.
type memory struct {
	forgets  bool
	mu       sync.Mutex
	sessions map[int]*tidegate.Session
}

func (c *memory) load(_ context.Context, s *Session) (*tidegate.Session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	session := c.sessions[s.ID]
	if session == nil {
		session = tidegate.NewSession()
		if !c.forgets {
			session.CatchUp(Cluster)
		}
		c.sessions[s.ID] = session
	}
	return session, nil
}

func (*memory) save(*Session, *tidegate.Session) {}
