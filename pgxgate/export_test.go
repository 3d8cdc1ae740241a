package pgxgate

import "github.com/tidegatedb/tidegate/engine"

// Core returns the routing core, for the conformance suite.
func (db *DB) Core() *engine.Core { return db.core }
