package eventgate

import (
	"context"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// SettleFunc makes one read of the class for the context's session that asks for
// nothing, and returns where it went. By it the session learns which position
// stands for what its token only describes, such as "all that is committed by now".
// It must pass on the errors of the database.
type SettleFunc func(ctx context.Context, class tidegate.Class) (tidegate.Decision, error)

// Settle returns the [SettleFunc] of a database that hands out connections, such as
// a pgxgate.DB.
func Settle[C interface {
	Decision() tidegate.Decision
	Release()
}](db interface {
	Acquire(ctx context.Context, class tidegate.Class) (C, error)
}) SettleFunc {
	return func(ctx context.Context, class tidegate.Class) (tidegate.Decision, error) {
		c, err := db.Acquire(ctx, class)
		if err != nil {
			return tidegate.Decision{}, err
		}
		defer c.Release()
		return c.Decision(), nil
	}
}

// A router decides reads that are never sent: an engine.Core.
type router interface {
	Begin(ctx context.Context, class tidegate.Class, rd *engine.Read) error
	Decision(rd *engine.Read) tidegate.Decision
	Cancel(rd *engine.Read)
}

func settleBy(r router) SettleFunc {
	return func(ctx context.Context, class tidegate.Class) (tidegate.Decision, error) {
		var rd engine.Read
		if err := r.Begin(ctx, class, &rd); err != nil {
			return tidegate.Decision{}, err
		}
		defer r.Cancel(&rd)
		return r.Decision(&rd), nil
	}
}
