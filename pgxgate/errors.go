package pgxgate

import (
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

// explain adds what a connection that could not be had means: the database is
// closed, or otherwise what.
func (db *DB) explain(err, otherwise error) error {
	switch {
	case db.core.Closed():
		return fmt.Errorf("%w (%w)", tidegate.ErrClosed, err)
	case lostNetwork(err), errors.Is(err, errNodeGone), errors.Is(err, errNoConnection):
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
