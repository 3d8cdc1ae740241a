package fake

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// maxIdle is the number of connections that a pool keeps.
const maxIdle = 3

// conn is a connection. It dies with the incarnation that it was made to.
type conn struct {
	l    *link
	life tidegate.Incarnation
	// born is the observation taken when it was made; its Received is the
	// connection's birth.
	born  engine.Observation
	until time.Time // zero: for ever
	// role is what the server said with the last statement.
	role tidegate.Role
	cut  bool // by the network; nobody knows yet
}

// connect makes a connection and looks at what is at its other end.
func (l *link) connect(ctx context.Context) (*conn, error) {
	c := &conn{l: l}
	if err := l.ask(ctx, OpConnect, func(n *Node) { c.life = n.life }); err != nil {
		return nil, err
	}
	sent := engine.Now()
	err := c.ask(ctx, OpConnect, func(n *Node) { n.observe(&c.born, l.opts.Mistakes) })
	if err != nil {
		return nil, err
	}
	c.born.Sent, c.born.Received = sent, engine.Now()
	if l.opts.ConnLife > 0 {
		c.until = time.Now().Add(l.opts.ConnLife)
	}
	return c, nil
}

// ask does something on the connection. A server that dies on the answer's way
// has answered.
func (c *conn) ask(ctx context.Context, op Op, f func(n *Node)) error {
	if err := c.l.leg(ctx, op); err != nil {
		return err
	}
	var err error
	n := c.l.n
	n.with(func() {
		if n.down || n.life != c.life || c.cut {
			err = ErrDead
			return
		}
		f(n)
		c.role = n.role
	})
	if err != nil {
		return err
	}
	return c.back(ctx, op)
}

// back is the way of the answer, on which a connection can break. Whoever does
// not wait for the answer can not use the connection any more.
func (c *conn) back(ctx context.Context, op Op) error {
	if err := c.l.leg(ctx, op); err != nil {
		c.sever()
		return err
	}
	if b := c.l.opts.Breaks; b != nil && b(c.l.n, op) {
		c.sever()
		return ErrBroken
	}
	return nil
}

// sever breaks the connection from the inside of a use.
func (c *conn) sever() { c.l.n.with(func() { c.cut = true }) }

// pool keeps the connections of one instance to one node for one use.
type pool struct {
	l    *link
	mu   sync.Mutex
	idle []*conn
}

// acquire returns an idle connection or makes one.
func (p *pool) acquire(ctx context.Context) (*conn, error) {
	p.mu.Lock()
	p.expire()
	if n := len(p.idle); n > 0 {
		i := n - 1
		if p.l.opts.Pick != nil {
			i = p.l.opts.Pick(n)
		}
		c := p.idle[i]
		p.idle = slices.Delete(p.idle, i, i+1)
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	return p.l.connect(ctx)
}

func (p *pool) expire() {
	now := time.Now()
	p.idle = slices.DeleteFunc(p.idle, func(c *conn) bool { return !c.until.IsZero() && !now.Before(c.until) })
}

// release gives a connection back; a pool that is full drops its oldest, and one
// that has broken in use is not put back.
func (p *pool) release(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.cut {
		return
	}
	p.idle = append(p.idle, c)
	if len(p.idle) > maxIdle {
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	p.expire()
}

// cut ends the idle connections; whoever uses one will notice.
func (p *pool) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		c.cut = true
	}
}
