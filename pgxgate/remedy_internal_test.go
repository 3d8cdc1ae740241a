package pgxgate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidegatedb/tidegate"
)

func TestRemedyFor(t *testing.T) {
	t.Parallel()
	says := func(code, message, routine, file string) error {
		return fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code, Message: message, Routine: routine, File: file})
	}
	state := func(code string) error { return says(code, "", "", "") }
	type want struct {
		remedy
		cause tidegate.RetryCause
	}
	none := want{}
	for _, c := range []struct {
		name             string
		err              error
		replica, primary want
	}{
		{"admin shutdown", state("57P01"), want{elsewhere, tidegate.RetryShutdown}, want{elsewhere, tidegate.RetryShutdown}},
		{"crash shutdown", state("57P02"), want{elsewhere, tidegate.RetryShutdown}, want{elsewhere, tidegate.RetryShutdown}},
		{"cannot connect now", state("57P03"), want{elsewhere, tidegate.RetryShutdown}, want{elsewhere, tidegate.RetryShutdown}},
		{"connection failure", state("08006"), want{elsewhere, tidegate.RetryConnection}, want{elsewhere, tidegate.RetryConnection}},
		{"idle session timeout", state("57P05"), want{elsewhere, tidegate.RetryConnection}, want{elsewhere, tidegate.RetryConnection}},
		{"end of file", io.ErrUnexpectedEOF, want{elsewhere, tidegate.RetryConnection}, want{elsewhere, tidegate.RetryConnection}},
		{"reset", &net.OpError{Op: "read", Err: errors.New("reset")}, want{elsewhere, tidegate.RetryConnection}, want{elsewhere, tidegate.RetryConnection}},
		{"a node that is gone", errNodeGone, want{elsewhere, tidegate.RetryConnection}, want{elsewhere, tidegate.RetryConnection}},
		{"too many connections", state("53300"), want{elsewhere, tidegate.RetryPool}, want{elsewhere, tidegate.RetryPool}},
		{"no connection in time", fmt.Errorf("%w (1s)", errNoConnection), want{elsewhere, tidegate.RetryPool}, want{elsewhere, tidegate.RetryPool}},
		{"recovery conflict", says("40001", "canceling statement due to conflict with recovery", "", ""), want{elsewhere, tidegate.RetryRecoveryConflict}, none},
		{"recovery deadlock", says("40P01", "canceling statement due to conflict with recovery", "", ""), want{elsewhere, tidegate.RetryRecoveryConflict}, none},
		{"recovery conflict in German", says("40001", "storniere Anfrage wegen Konflikt mit der Wiederherstellung", "ProcessInterrupts", "postgres.c"), want{elsewhere, tidegate.RetryRecoveryConflict}, none},
		{"recovery deadlock in German", says("40P01", "storniere Anfrage wegen Konflikt mit der Wiederherstellung", "CheckRecoveryConflictDeadlock", "standby.c"), want{elsewhere, tidegate.RetryRecoveryConflict}, none},
		{"a function that raises it", says("40001", "try again", "exec_stmt_raise", "pl_exec.c"), none, none},
		{"advisory locks that deadlock", says("40P01", "deadlock detected", "DeadLockReport", "deadlock.c"), none, none},
		{"stale plan", says("0A000", "", "RevalidateCachedQuery", "plancache.c"), want{sameAgain, tidegate.RetryStalePlan}, want{sameAgain, tidegate.RetryStalePlan}},
		{"unlogged table", says("0A000", "cannot access temporary or unlogged relations during recovery", "", ""), want{onPrimary, tidegate.RetryUnsupported}, none},
		{"missing table", state("42P01"), want{onPrimary, tidegate.RetryNotReplayed}, none},
		{"missing column", state("42703"), want{onPrimary, tidegate.RetryNotReplayed}, none},
		{"missing type", state("42704"), want{onPrimary, tidegate.RetryNotReplayed}, none},
		{"missing function", state("42883"), want{onPrimary, tidegate.RetryNotReplayed}, none},
		{"missing schema", state("3F000"), want{onPrimary, tidegate.RetryNotReplayed}, none},
		{"missing privilege", state("42501"), want{onPrimary, tidegate.RetryNotReplayed}, none},
		{"missing enum value", says("22P02", "", "enum_in", "enum.c"), want{onPrimary, tidegate.RetryNotReplayed}, none},
		{"no number", says("22P02", "", "pg_strtoint32_safe", "numutils.c"), none, none},
		{"syntax error", state("42601"), none, none},
		{"a write", state("25006"), none, none},
		{"cancelled by the user", state("57014"), none, none},
		{"arguments that do not fit", errors.New("expected 2 arguments, got 1"), none, none},
	} {
		for primary, w := range map[bool]want{false: c.replica, true: c.primary} {
			if r, cause := remedyFor(t.Context(), c.err, primary); (want{r, cause}) != w {
				t.Errorf("%s, on the primary %v: remedy %d for %v, want %d for %v", c.name, primary, r, cause, w.remedy, w.cause)
			}
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if r, cause := remedyFor(over, c.err, false); r != surface || cause != tidegate.RetryNone {
			t.Errorf("%s, when the caller has gone: remedy %d", c.name, r)
		}
	}
}
