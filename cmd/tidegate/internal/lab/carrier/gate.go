package carrier

import (
	"net/http"

	"github.com/tidegatedb/tidegate/httpgate"
)

// SessionHeader is how the lab's clients say who they are, as a login would. Who
// sends it is known, and must not be taken for somebody new without a token.
const SessionHeader = "X-Lab-Session"

// gate is the library's middleware.
type gate struct{ *httpgate.Middleware }

// newGate returns a gate by a configuration that says where tokens are. What all
// carriers have in common is added.
func newGate(cfg Config, c httpgate.Config) (Gate, error) {
	c.Keyring, c.Clusters = cfg.Keyring, []string{cfg.Cluster}
	c.Known = func(r *http.Request) bool { return r.Header.Get(SessionHeader) != "" }
	if cfg.Missing == httpgate.Fresh {
		c.Missing = func(*http.Request) httpgate.Policy { return httpgate.Fresh }
	}
	m, err := httpgate.New(c)
	if err != nil {
		return nil, err
	}
	return gate{m}, nil
}

// Stats implements Gate.
func (g gate) Stats() Stats {
	s := g.Middleware.Stats()
	return Stats{Emitted: s.Emitted, Late: s.Late, CatchUps: s.CatchUps, Fresh: s.Fresh, Refused: s.Refused.Total()}
}
