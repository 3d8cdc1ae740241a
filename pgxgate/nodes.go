package pgxgate

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// warmTime bounds the wait for connections to new nodes.
const warmTime = time.Second

// same reports whether a node that is given again leads where it did: by the
// same name, connection string and pool configuration.
func (n *node) same(given *Node, name string) bool {
	return n.name == name && n.given.DSN == given.DSN && n.given.Pool == given.Pool
}

// meet makes nodes of what the application gave; those that are known already
// stay what they are. The caller holds db.mu, or is Open.
func (db *DB) meet(given []Node) ([]*node, []engine.Node, error) {
	var nodes []*node
	var known []engine.Node
	for i := range given {
		base, err := given[i].poolConfig(i)
		if err != nil {
			return nil, nil, err
		}
		name := given[i].name(base)
		n := &node{given: given[i], name: name, base: base}
		n.watch = newWatch(db, base)
		for _, old := range db.nodes {
			if old.same(&given[i], name) {
				n = old
			}
		}
		nodes = append(nodes, n)
		known = append(known, engine.Node{Name: name, Source: n, Zone: given[i].Zone, Weight: given[i].Weight, Tags: given[i].Tags, Dedicated: given[i].Dedicated})
	}
	return nodes, known, nil
}

// fallbackReads is the default of Config.FallbackReads: any of the nodes can become
// the primary.
func (db *DB) fallbackReads() int32 {
	least := int32(math.MaxInt32)
	for _, n := range db.nodes {
		least = min(least, n.primaryReads())
	}
	return max(1, least/3*2+least%3*2/3)
}

// warm looks at the nodes that are new, all at once, so that they are connected to:
// until the watcher has looked at one it is nobody's primary, and gets no reads. One
// that cannot be reached now joins all the same. The caller holds db.mu.
func (db *DB) warm(nodes []*node) {
	ctx, cancel := context.WithTimeout(context.Background(), warmTime)
	defer cancel()
	var wg sync.WaitGroup
	for _, n := range nodes {
		if !slices.Contains(db.nodes, n) {
			wg.Go(func() { _, _ = n.Probe(ctx, nil) }) // what there is to know, the watcher will ask again
		}
	}
	wg.Wait()
}

// SetNodes makes the cluster's nodes these, while reads and writes go on. A node
// that is given as it was before keeps its connections and what is known of it;
// its zone, weight and tags may be new. One that is not listed any more gets no new
// statements, and its connections are closed as they are given back. A node that
// is new, or leads elsewhere under its old name, gets reads when it has proven
// itself by a first look, and writes when that has found it to be the primary: with
// a new password for all nodes, writes and reads fail for the round trip in between.
// SetNodes connects to new nodes before it changes anything, for a second at most.
//
// Errors wrap [tidegate.ErrConfig] and name the field, or [tidegate.ErrClosed];
// nothing has changed then.
func (db *DB) SetNodes(given []Node) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.core.Closed() {
		return tidegate.ErrClosed
	}
	nodes, known, err := db.meet(given)
	if err != nil {
		return err
	}
	db.warm(nodes)
	left, err := db.core.SetNodes(known)
	if err != nil {
		return err
	}
	db.nodes = nodes
	for _, s := range left {
		n := nodeOf(s)
		db.leaving.Go(func() { n.leave() })
	}
	return nil
}

// leave closes the node's connections as they become free.
func (n *node) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	n.watch.end(ctx)
	n.closePools()
}

// end closes the connection of a node that was taken away. Whoever waits for a turn
// on it must not go on waiting, nor connect again.
func (w *watch) end(ctx context.Context) {
	close(w.gone)
	w.turn <- struct{}{}
	if w.conn != nil {
		_ = w.conn.Close(ctx)
	}
	<-w.turn
}
