package pgxgate

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidegatedb/tidegate"
)

// remedy is what can be done about a read that failed before its first row.
type remedy uint8

const (
	// surface: the error is the application's.
	surface remedy = iota
	// elsewhere: the node is at fault; another one may answer.
	elsewhere
	// onPrimary: a replica cannot answer this; the primary may. What the primary says
	// is the answer.
	onPrimary
	// sameAgain: the statement was prepared for what is no longer there; pgx has
	// forgotten it by now.
	sameAgain
)

// remedyFor judges the error of a read, and names its cause where the read may begin
// again.
func remedyFor(ctx context.Context, err error, primary bool) (remedy, tidegate.RetryCause) {
	if ctx.Err() != nil {
		return surface, tidegate.RetryNone
	}
	switch {
	case errors.Is(err, errNodeGone):
		return elsewhere, tidegate.RetryConnection
	case errors.Is(err, errNoConnection):
		return elsewhere, tidegate.RetryPool
	}
	var pe *pgconn.PgError
	if !errors.As(err, &pe) {
		if clientSide(err) {
			return surface, tidegate.RetryNone
		}
		return elsewhere, tidegate.RetryConnection
	}
	switch pe.Code {
	case "57P01", "57P02", "57P03":
		return elsewhere, tidegate.RetryShutdown
	case "08000", "08003", "08006", "57P05":
		return elsewhere, tidegate.RetryConnection
	case "53300":
		return elsewhere, tidegate.RetryPool
	case "0A000":
		if pe.Routine == "RevalidateCachedQuery" {
			return sameAgain, tidegate.RetryStalePlan
		}
	}
	if primary {
		return surface, tidegate.RetryNone
	}
	switch {
	case recoveryConflict(pe):
		return elsewhere, tidegate.RetryRecoveryConflict
	case pe.Code == "0A000":
		// A standby refuses unlogged and temporary tables and serializable reads.
		return onPrimary, tidegate.RetryUnsupported
	case notReplayed(pe):
		return onPrimary, tidegate.RetryNotReplayed
	}
	return surface, tidegate.RetryNone
}

// recoveryConflict reports whether replay on a replica has cancelled the statement, or
// ended its connection. The SQLSTATE alone does not tell: a function can raise it, and
// advisory locks can deadlock on a replica too. The message does where it is English;
// in any language, that it comes from where the server reacts to replay.
func recoveryConflict(pe *pgconn.PgError) bool {
	switch pe.Code {
	case "40001", "40P01":
		return strings.Contains(pe.Message, "conflict with recovery") || strings.Contains(pe.Detail, "conflict with recovery") ||
			pe.File == "postgres.c" || pe.File == "standby.c"
	}
	return false
}

// notReplayed reports whether the statement names what a replica lacks while a migration
// has not been replayed there: a table, a column, a type, a function, a schema, a value of
// an enum type, a privilege.
func notReplayed(pe *pgconn.PgError) bool {
	switch pe.Code {
	case "42P01", "42703", "42704", "42883", "3F000", "42501":
		return true
	case "22P02":
		return pe.Routine == "enum_in" || pe.Routine == "enum_recv"
	}
	return false
}

// clientSide reports whether an error that is not the server's was made before
// anything was sent: arguments that do not fit, a tracer's or rewriter's refusal.
func clientSide(err error) bool {
	var ce *pgconn.ConnectError
	if errors.As(err, &ce) || pgconn.Timeout(err) {
		return false
	}
	return !lostNetwork(err)
}
