// Package fault holds the scenarios: what goes wrong in the cluster while the
// load runs.
package fault

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

// Scenario is something that happens to a cluster.
type Scenario struct {
	// Name is what --scenario calls it: lower case, dashes.
	Name string
	// About says in one sentence what happens.
	About string

	// Settings are server settings that the cluster is started with.
	Settings map[string]string
	// Fresh says that every strategy gets a cluster of its own, because the
	// scenario leaves one behind that differs from a new one.
	Fresh bool

	// Strategies are what a run compares when nobody says; nil means the usual
	// ones.
	Strategies []string
	// Errors says that the scenario ends connections in the middle of an answer.
	// Nobody can take back the rows that were delivered by then, so that such a
	// read may fail. No other may, and in no other scenario.
	Errors bool

	// WritesEnd is the part of the run after which the sessions only read. Zero
	// means that they write to the end.
	WritesEnd float64
	// Drops is the part of the operations before which the session's client has lost
	// its tokens. Above zero the sessions have clients, by HTTP.
	Drops float64
	// Witness adds the row that [Site.Witness] writes to every read.
	Witness bool
	// ConnLifetime is how long the connections of every strategy live. Zero means
	// what their pools have by themselves.
	ConnLifetime time.Duration

	// Sessions and Rate are how many sessions there are, and how many reads they make a
	// second, when nobody says. Zero means what is usual.
	Sessions int
	Rate     float64
	// Primary and Replicas are what each server can do, when nobody says.
	Primary, Replicas Capacity
	// Relaxed is the part of the reads that may be old, with each of the Budgets in
	// turn.
	Relaxed float64
	Budgets []record.Budget
	// ReadDeadline is how long a read may take. Zero means very long.
	ReadDeadline time.Duration
	// Sheds says that there can be more reads for the primary than it has room for,
	// so that some may be refused.
	Sheds bool
	// Hangs says that a server stops answering while its connections stay open. Reads
	// that were sent to it before anybody could know fail at their deadline, and no
	// other may.
	Hangs bool
	// Conflicts says that a run without recovery conflicts on replicas shows nothing.
	Conflicts bool
	// Migrates says that the scenario changes the table, which is then no table that
	// statements can have a cost on.
	Migrates bool

	// Opportunities is how many reads per 10 s of load have to be in danger (see
	// truth.Opportunities) for a run to say anything. Zero asks for none.
	Opportunities int

	// Inject makes it happen within the duration that begins now, and undoes it
	// before it returns, also when ctx is done early. Nil does nothing.
	Inject func(ctx context.Context, site *Site, duration time.Duration) error
}

// Wanted is the number of opportunities that a run of the duration needs.
func (s Scenario) Wanted(duration time.Duration) int {
	return int(float64(s.Opportunities) * duration.Seconds() / 10)
}

// Portable reports whether the scenario needs neither servers nor a load of its own, so
// that it can happen to those of another one: see [Scenario.Under].
func (s Scenario) Portable() bool {
	return s.Settings == nil && !s.Fresh && s.Drops == 0 && !s.Witness && !s.Migrates &&
		s.WritesEnd == 0 && s.Relaxed == 0 && s.Primary == (Capacity{}) && s.Replicas == (Capacity{})
}

// Under returns the scenario with the servers and the load of another one, to be
// compared with that: what goes wrong stays its own. It must be portable.
func (s Scenario) Under(other Scenario) Scenario {
	other.Name, other.About = s.Name, s.About
	other.Errors, other.Hangs, other.Conflicts, other.Opportunities = s.Errors, s.Hangs, s.Conflicts, s.Opportunities
	other.WritesEnd, other.Drops, other.ConnLifetime = s.WritesEnd, s.Drops, s.ConnLifetime
	other.Inject = s.Inject
	return other
}

// All lists the scenarios.
func All() []Scenario {
	return []Scenario{
		steady, lagSpike, allLag, slowStandbyApply, bulkWrite, idle, idleWriter,
		crashBackend, restartReplica, killReplica, ddl, churn, deploy, lostToken,
		stampede, budget, slowReplica, conflict, hang, backfill,
	}
}

// Names lists the names of all scenarios.
func Names() []string {
	var names []string
	for _, s := range All() {
		names = append(names, s.Name)
	}
	return names
}

// Find returns the scenario with the name.
func Find(name string) (Scenario, error) {
	for _, s := range All() {
		if s.Name == name {
			return s, nil
		}
	}
	return Scenario{}, fmt.Errorf("there is no scenario %q; there are %s", name, strings.Join(Names(), ", "))
}
