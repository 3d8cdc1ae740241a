package pgxgate

import "github.com/tidegatedb/tidegate/engine"

// Core returns the routing core, for the conformance suite.
func (db *DB) Core() *engine.Core { return db.core }

// ReplicaConns returns how many connections for reads as a replica the named node counts,
// and how many its pool has.
func (db *DB) ReplicaConns(name string) (counted int64, pooled int32) {
	for _, n := range db.nodes {
		if p := n.pools[replicaReads].Load(); n.name == name && p != nil {
			return n.open.Load(), p.Stat().TotalConns()
		}
	}
	return -1, -1
}

// AcquiredConns returns how many connections of all pools are in use.
func (db *DB) AcquiredConns() (n int32) {
	for _, node := range db.nodes {
		for u := range node.pools {
			if p := node.pools[u].Load(); p != nil {
				n += p.Stat().AcquiredConns()
			}
		}
	}
	return n
}
