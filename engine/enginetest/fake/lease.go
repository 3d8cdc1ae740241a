package fake

import (
	"context"
	"errors"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// maxAttempts bounds how often one read is tried.
const maxAttempts = 4

// errUnproven is a connection that the proof does not hold for.
var errUnproven = errors.New("fake: nothing is proven for the connection")

// lease is a read's hold on a proven connection.
type lease struct {
	g        *Gate
	read     engine.Read
	conn     *conn
	attempts int
}

// take finds a node, and a connection to it that the proof holds for.
func (l *lease) take(ctx context.Context, class tidegate.Class) error {
	for {
		if err := l.g.core.Begin(ctx, class, &l.read); err != nil {
			return err
		}
		err := l.acquire(ctx)
		if err == nil {
			return nil
		}
		if err = l.goOn(ctx, err); err != nil {
			return err
		}
	}
}

func (l *lease) acquire(ctx context.Context) error {
	g := l.g
	p := g.pools[0][l.read.Node()]
	c, err := p.acquire(ctx)
	if err != nil {
		l.failed(ctx, false)
		return err
	}
	if !g.opts.Mistakes.SkipsAdmit && !g.core.Admit(ctx, &l.read, &c.born) {
		p.release(c)
		return errUnproven
	}
	if c.role == tidegate.RolePrimary && !l.read.Primary() {
		// The server was promoted and its connections live on.
		g.core.Suspect(l.read.Node())
		g.core.Fail(&l.read, tidegate.RetryRole, false)
		p.release(c)
		return errUnproven
	}
	l.conn = c
	return nil
}

// goOn returns nil when the read may begin again after an attempt that failed
// with err, else what the read fails with.
func (l *lease) goOn(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if l.attempts++; l.attempts < maxAttempts {
		return nil
	}
	if errors.Is(err, errUnproven) {
		return l.g.core.Refuse(&l.read)
	}
	return err
}

// failed ends an attempt that failed before the first row.
func (l *lease) failed(ctx context.Context, sent bool) {
	core := l.g.core
	switch {
	case ctx.Err() != nil && !sent:
		core.Cancel(&l.read)
	case ctx.Err() != nil:
		core.End(&l.read)
	case l.read.Primary():
		core.Retry(&l.read, tidegate.RetryConnection, sent)
	default:
		core.Fail(&l.read, tidegate.RetryConnection, sent)
	}
}

// at tells the position of a read on the primary, taken behind it.
func (l *lease) at(p place) {
	if !l.g.opts.Mistakes.ForgetsPosition {
		l.g.core.At(&l.read, &l.conn.born, p.pos, p.durable || l.g.opts.Mistakes.SaysDurable)
	}
}

// release gives the connection back.
func (l *lease) release() {
	l.g.pools[0][l.conn.l.n.index].release(l.conn)
}
