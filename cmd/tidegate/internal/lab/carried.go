package lab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/carrier"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/fault"
	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/strategy"
	"github.com/tidegatedb/tidegate/httpgate"
)

// parallel is the part of the free reads that a client does not wait for before it
// goes on, as a page that loads its parts.
const parallel = 0.3

// validateCarrier returns a *[UsageError] for what sessions that travel by HTTP
// cannot do.
func (c *Config) validateCarrier() error {
	bad := func(flag, next, problem string, args ...any) error {
		return &UsageError{flag, fmt.Sprintf(problem, args...), next}
	}
	policies := []string{"", httpgate.CatchUp.String(), httpgate.Fresh.String()}
	if !slices.Contains(policies, c.Missing) {
		return bad("missing", "choose one of "+strings.Join(policies[1:], ", "), "there is no policy %q", c.Missing)
	}
	name := c.CarrierName()
	if name == "" {
		if c.Fresh() {
			return bad("missing", "name a --carrier, or leave it out", "without a carrier no client brings a token or misses one")
		}
		return nil
	}
	by, err := carrier.Find(name)
	switch {
	case err != nil:
		return bad("carrier", "choose one of "+strings.Join(carrier.Names(), ", "), "%v", err)
	case c.Instances < 2:
		return bad("instances", "the default is 2", "with --carrier %s there must be two at least, or nothing is carried", name)
	case by.CatchesUp && c.Fresh():
		return bad("missing", "leave it out", "with --carrier %s a session whose history is lost catches up, whatever the policy is", name)
	case by.Events && c.Sessions < 2:
		return bad("sessions", "the default is 32", "with --carrier %s there must be two at least, or nobody is told of a write", name)
	}
	for _, s := range c.Strategies {
		if !slices.Contains(strategy.CarriableNames(), s) {
			return bad("strategies", "choose from "+strings.Join(strategy.CarriableNames(), ","), "%s keeps its sessions in its own way and has no part in --carrier %s", s, name)
		}
	}
	return nil
}

// CarrierName is the name of the carrier that the flags and the scenario ask for,
// or empty.
func (c *Config) CarrierName() string {
	if s, err := fault.Find(c.Scenario); err == nil && c.Carrier == "" && s.Drops > 0 {
		return "header"
	}
	return c.Carrier
}

// Fresh reports whether a known client without a token is taken for somebody new.
func (c *Config) Fresh() bool { return c.Missing == httpgate.Fresh.String() }

// policy is what a known client without a token gets.
func (c *Config) policy() httpgate.Policy {
	if c.Fresh() {
		return httpgate.Fresh
	}
	return httpgate.CatchUp
}
