package promgate

import (
	"context"

	"github.com/tidegatedb/tidegate"
)

// suspected counts a suspect. The engine has looked at the stack for it, beside which a
// lock is cheap.
func (c *Collector) suspected(_ context.Context, x tidegate.Suspect) {
	site := c.callSite(c.cluster(x.Cluster), x.Write)
	c.m.suspects.WithLabelValues(valid(x.Cluster), site).Inc()
}

// callSite returns the label of a call site: its name, or "other" where MaxCallSites
// have one.
func (c *Collector) callSite(k *cluster, name string) string {
	if name == "" {
		name = "unknown" // not on the stack of the goroutine that writes
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !k.callSites[name] {
		if len(k.callSites) >= c.cfg.MaxCallSites {
			return other
		}
		k.callSites[name] = true
	}
	return valid(name)
}
