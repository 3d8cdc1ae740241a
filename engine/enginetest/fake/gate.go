package fake

import (
	"context"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// Gate routes reads and writes of one instance to a [Cluster]. It is safe for
// concurrent use.
type Gate struct {
	core  *engine.Core
	c     *Cluster
	opts  Options
	pools [2][]*pool // for reads and for writes, by node
}

// Open returns a gate that has looked at each node once.
func (c *Cluster) Open(ctx context.Context, opts Options) (*Gate, error) {
	g := &Gate{c: c, opts: opts}
	cfg := opts.Core
	if cfg.Cluster == "" {
		cfg.Cluster = "fake"
	}
	cfg.Nodes = nil
	for i, n := range c.nodes {
		node := engine.Node{Name: n.name, Source: &link{n, &g.opts}}
		if opts.Weights != nil {
			node.Weight = opts.Weights[i]
		}
		if opts.Tags != nil {
			node.Tags = opts.Tags[i]
		}
		if opts.Dedicated != nil {
			node.Dedicated = opts.Dedicated[i]
		}
		cfg.Nodes = append(cfg.Nodes, node)
		for use := range g.pools {
			g.pools[use] = append(g.pools[use], &pool{l: &link{n, &g.opts}})
		}
	}
	var err error
	if g.core, err = engine.New(cfg); err != nil {
		return nil, err
	}
	if err := g.core.Ready(ctx); err != nil {
		if !opts.Mistakes.Leaks {
			g.core.Close()
		}
		return nil, err
	}
	return g, nil
}

// Core returns the gate's core.
func (g *Gate) Core() *engine.Core { return g.core }

// Close closes the gate.
func (g *Gate) Close() { g.core.Close() }

// Connect makes a connection for reads to the node and puts it into the pool.
func (g *Gate) Connect(ctx context.Context, node int) error {
	p := g.pools[0][node]
	c, err := p.l.connect(ctx)
	if err == nil {
		p.release(c)
	}
	return err
}

// Disconnect ends the idle connections to the node; whoever uses one will notice.
func (g *Gate) Disconnect(node int) {
	for _, pools := range g.pools {
		pools[node].cut()
	}
}

// Result is what one read showed and how it came about.
type Result struct {
	// View is all that the node showed.
	View View
	// Node is where the read was answered, in which life.
	Node        *Node
	Incarnation tidegate.Incarnation
	// Decision says why.
	Decision tidegate.Decision
	// Sampled is when the node was read.
	Sampled time.Time
}

// Read reads keys; one that has no version is left out.
func (g *Gate) Read(ctx context.Context, class tidegate.Class, keys ...int64) (map[int64]int64, error) {
	rows := make(map[int64]int64, len(keys))
	_, err := g.read(ctx, class, func(n *Node) {
		for _, k := range keys {
			if v := n.newest(k); v != 0 {
				rows[k] = v
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// Look reads everything.
func (g *Gate) Look(ctx context.Context, class tidegate.Class) (Result, error) {
	var v View
	r, err := g.read(ctx, class, func(n *Node) { v = n.view() })
	r.View = v
	return r, err
}

func (g *Gate) read(ctx context.Context, class tidegate.Class, rows func(*Node)) (Result, error) {
	l := lease{g: g}
	for {
		if err := l.take(ctx, class); err != nil {
			return Result{}, err
		}
		r, err := l.run(ctx, rows)
		if err == nil {
			return r, nil
		}
		if err = l.goOn(ctx, err); err != nil {
			return Result{}, err
		}
	}
}

// run runs the statement, up to its last row.
func (l *lease) run(ctx context.Context, rows func(*Node)) (r Result, err error) {
	c := l.conn
	var pos place
	err = c.ask(ctx, OpRead, func(n *Node) {
		rows(n)
		r.Sampled, pos = time.Now(), n.newestPosition()
	})
	if err != nil {
		l.failed(ctx, true)
		return r, err
	}
	l.at(pos)
	l.g.core.End(&l.read)
	l.release()
	r.Node, r.Incarnation, r.Decision = c.l.n, c.life, l.g.core.Decision(&l.read)
	return r, nil
}
