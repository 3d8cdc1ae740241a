package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// poolFinder finds out which of a database's pools an operation uses: they are
// private to it, but a pool tells its tracer who it is. Both arms of a
// comparison pay for that alike.
type poolFinder struct{}

type foundKey struct{}

// TraceAcquireStart implements pgxpool.AcquireTracer.
func (poolFinder) TraceAcquireStart(ctx context.Context, p *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	if found, ok := ctx.Value(foundKey{}).(**pgxpool.Pool); ok {
		*found = p
	}
	return ctx
}

// TraceAcquireEnd implements pgxpool.AcquireTracer.
func (poolFinder) TraceAcquireEnd(context.Context, *pgxpool.Pool, pgxpool.TraceAcquireEndData) {}

// TraceQueryStart implements pgx.QueryTracer, which a tracer has to.
func (poolFinder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (poolFinder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// poolOf does an operation once and returns the pool whose connection it used.
func poolOf(ctx context.Context, op func(context.Context) error) (*pgxpool.Pool, error) {
	var found *pgxpool.Pool
	if err := op(context.WithValue(ctx, foundKey{}, &found)); err != nil {
		return nil, err
	}
	if found == nil {
		return nil, errors.New("an operation went through no pool")
	}
	return found, nil
}

// backend returns the server process behind a pool of one connection.
func backend(ctx context.Context, p *pgxpool.Pool) (uint32, error) {
	c, err := p.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer c.Release()
	return c.Conn().PgConn().PID(), nil
}

// witness sees to it that both arms use one connection of one pool.
type witness struct {
	pool *pgxpool.Pool
	pid  uint32
	was  int64 // acquired
}

func watchPool(ctx context.Context, p *pgxpool.Pool) (*witness, error) {
	if n := p.Config().MaxConns; n != 1 {
		return nil, fmt.Errorf("a comparison needs a pool of one connection, this one has up to %d", n)
	}
	pid, err := backend(ctx, p)
	return &witness{p, pid, p.Stat().AcquireCount()}, err
}

// check fails if not exactly n operations have used the connection since.
func (w *witness) check(ctx context.Context, n int64) error {
	if got := w.pool.Stat().AcquireCount() - w.was; got != n {
		return fmt.Errorf("%d of %d operations used the pool that they were to share: the others were routed elsewhere, or tried again", got, n)
	}
	pid, err := backend(ctx, w.pool)
	if err == nil && pid != w.pid {
		err = errors.New("the connection was replaced in the middle of a comparison")
	}
	return err
}
