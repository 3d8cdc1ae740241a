package main

import (
	"fmt"
	"strings"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/fault"
)

// The load when neither the flags nor the scenario say.
const (
	usualSessions = 32
	usualRate     = 1000
)

func (c *labCommand) sessions() int {
	switch s, err := fault.Find(c.Scenario); {
	case c.Sessions != nil:
		return *c.Sessions
	case err == nil && s.Sessions > 0:
		return s.Sessions
	}
	return usualSessions
}

func (c *labCommand) rate() float64 {
	switch s, err := fault.Find(c.Scenario); {
	case c.Rate != nil:
		return *c.Rate
	case err == nil && s.Rate > 0:
		return s.Rate
	}
	return usualRate
}

// capacityHelp says how a primary comes to have little room.
func capacityHelp() string {
	var b strings.Builder
	b.WriteString("\nA primary with little room (--primary-slots, --primary-cost, with any strategy and scenario):\n" +
		"all servers share this machine, and one that was really too busy would slow down the load too.\n" +
		"So a statement of the application costs time and no work: it holds one of the slots, inside the\n" +
		"server, while it sleeps, and queues if none is free, reads and writes alike, whatever pool they\n" +
		"come from. No strategy can see it. slots / cost statements a second are what the primary can do;\n" +
		"the load does not wait for it. --pairs compares with steady runs on the same servers.\n")
	for _, s := range fault.All() {
		if s.Primary.Cost > 0 {
			fmt.Fprintf(&b, "  %-18s %v; %d sessions, %.0f reads/s\n", s.Name, s.Primary, s.Sessions, s.Rate)
		}
	}
	return b.String()
}
