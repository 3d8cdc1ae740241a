package pgxgate

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidegatedb/tidegate"
)

// sqlState returns the error's SQLSTATE, "" for one that is not the server's.
func sqlState(err error) string {
	if err == nil {
		return ""
	}
	var pe *pgconn.PgError
	if errors.As(err, &pe) {
		return pe.Code
	}
	return ""
}

// connectionLost reports whether the server ended the connection with the error.
func connectionLost(err error) bool {
	switch sqlState(err) {
	case "57P01", "57P02", "57P03", "08000", "08003", "08006":
		return true
	}
	return false
}

// remedy is what can be done about a read that failed before its first row.
type remedy uint8

const (
	// surface: the error is the application's.
	surface remedy = iota
	// elsewhere: the node is at fault; another one may answer.
	elsewhere
	// onPrimary: a replica cannot answer this; the primary may.
	onPrimary
	// sameAgain: the statement was prepared for what is no longer there; pgx has
	// forgotten it by now.
	sameAgain
)

// remedyFor judges the error of a read.
func remedyFor(ctx context.Context, err error, primary bool) remedy {
	if ctx.Err() != nil {
		return surface
	}
	if errors.Is(err, errNodeGone) {
		return elsewhere
	}
	var pe *pgconn.PgError
	if !errors.As(err, &pe) {
		if clientSide(err) {
			return surface
		}
		return elsewhere
	}
	switch pe.Code {
	case "57P01", "57P02", "57P03", "53300", "08000", "08003", "08006":
		return elsewhere
	case "40001", "40P01":
		// On a replica nothing but replay conflicts with a read.
		if !primary {
			return elsewhere
		}
	case "0A000":
		if pe.Routine == "RevalidateCachedQuery" {
			return sameAgain
		}
		// A standby refuses unlogged and temporary tables and serializable reads.
		if !primary {
			return onPrimary
		}
	case "42P01", "42703", "42704", "42883", "3F000":
		// A migration that has not been replayed yet: table, column, type,
		// function, schema.
		if !primary {
			return onPrimary
		}
	}
	return surface
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

// explain adds what a connection that could not be had means: the database is
// closed, or otherwise what.
func (db *DB) explain(err, otherwise error) error {
	switch {
	case db.core.Closed():
		return fmt.Errorf("%w (%w)", tidegate.ErrClosed, err)
	case lostNetwork(err), errors.Is(err, errNodeGone):
		return fmt.Errorf("%w: %w", otherwise, err)
	}
	return err
}

// readError explains errors that come from the handle and not from the
// statement.
func readError(err error) error {
	if sqlState(err) == "25006" {
		return fmt.Errorf("%w: %w", tidegate.ErrReadOnly, err)
	}
	return err
}
