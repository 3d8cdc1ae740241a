package pgxgate

import (
	"context"
	"log/slog"
	"time"
)

// Discoverer finds the nodes of a cluster.
type Discoverer interface {
	// Discover returns the nodes that there are now, in any order, as
	// Config.Nodes has them. A node is the one that it was if its name, its DSN
	// and the pointer in Pool are what they were: see [DB.SetNodes]. With an error
	// the nodes stay what they are; so they do when what it returns cannot be used.
	// It is called from one goroutine at a time, and must return when ctx ends.
	Discover(ctx context.Context) ([]Node, error)
}

const (
	discoverInterval = 30 * time.Second
	discoverTimeout  = 10 * time.Second
)

// discover asks the discoverer again and again until Close.
func (db *DB) discover(logger *slog.Logger) {
	every := db.cfg.DiscoverInterval
	if every == 0 {
		every = discoverInterval
	}
	ctx, cancel := context.WithCancel(context.Background())
	db.cancel = cancel
	db.leaving.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		failing := false
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			err := db.discoverOnce(ctx)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil && !failing:
				logger.Warn("the nodes cannot be discovered; they stay what they are", "error", err)
			case err == nil && failing:
				logger.Info("the nodes can be discovered again")
			}
			failing = err != nil
		}
	})
}

func (db *DB) discoverOnce(ctx context.Context) error {
	c, cancel := context.WithTimeout(ctx, discoverTimeout)
	defer cancel()
	nodes, err := db.cfg.Discoverer.Discover(c)
	if err != nil {
		return err
	}
	return db.SetNodes(nodes)
}
