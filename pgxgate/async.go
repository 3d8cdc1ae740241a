package pgxgate

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// asyncState knows whether commits may be acknowledged before they are durable.
type asyncState struct {
	declared AsyncCommits
	seen     atomic.Bool
	logger   *slog.Logger
}

// possible reports whether positions have to be the insert position.
func (a *asyncState) possible() bool {
	switch a.declared {
	case AsyncPossible:
		return true
	case AsyncAbsent:
		return false
	default:
		return a.seen.Load()
	}
}

// saw notes that a commit was asynchronous, or a default makes some so.
func (a *asyncState) saw(where string) {
	if a.declared == AsyncPossible || a.seen.Swap(true) {
		return
	}
	if a.declared == AsyncAbsent {
		a.logger.Warn("synchronous_commit is off although Config.AsyncCommits declares it absent: positions of other commits may be too low; declare AsyncPossible", "where", where)
		return
	}
	a.logger.Info("synchronous_commit is off: positions are taken from the insert position from now on; declare AsyncPossible, so that it does not depend on when this is seen", "where", where)
}

// look checks the defaults of the server, its databases and its roles.
func (a *asyncState) look(ctx context.Context, c *pgx.Conn) error {
	if a.declared == AsyncPossible || a.seen.Load() {
		return nil // as safe as can be
	}
	var off bool
	if err := c.QueryRow(ctx, asyncSQL).Scan(&off); err != nil {
		return err
	}
	if off {
		a.saw("a default of the server, a database or a role")
	}
	return nil
}
