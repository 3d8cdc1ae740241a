package admin

import (
	"context"
	"net/http"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// Source is a cluster that is shown, such as a pgxgate.DB.
type Source interface {
	// Status returns what is known of the cluster now.
	Status() engine.Status
	// Explain says for each node why a read of the class may or may not go there
	// now for the context's session.
	Explain(ctx context.Context, class tidegate.Class) engine.Explanation
}

// A RolloutSource is a [Source] whose rollout can be changed.
type RolloutSource interface {
	Source
	SetRollout(r tidegate.Rollout)
}

// Config configures a [Handler].
type Config struct {
	// Sources are the clusters to show; none may be nil. One is named by its
	// Status().Cluster.
	Sources []Source
	// Keyring verifies the tokens that /explain is asked about. Nil means that they
	// are refused.
	Keyring *tidegate.Keyring
	// ChangeRollout allows PUT and POST to /rollout, for the sources that are a
	// [RolloutSource]. Browsers are let through only from pages of the same origin;
	// who else may do it is for the application to check, in front of the handler.
	ChangeRollout bool
}

// Handler returns the handler of the pages. It is safe for concurrent use, and
// works below http.StripPrefix.
func Handler(cfg Config) http.Handler {
	cfg.Sources = append([]Source(nil), cfg.Sources...)
	return &handler{Config: cfg, origin: http.NewCrossOriginProtection()}
}
