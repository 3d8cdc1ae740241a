package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is what a scenario can do to one server.
type Server interface {
	// DSN is a connection string; an empty user is a superuser.
	DSN(user, database string) string
	// KillBackend kills one server process with signal 9 and returns when the
	// server has noticed.
	KillBackend(pid int) error
	// Kill kills all processes of the server with signal 9.
	Kill() error
	// Start starts a server that does not run and returns when it takes
	// connections.
	Start(ctx context.Context) error
	// Restart stops the server in order and starts it again.
	Restart(ctx context.Context) error
	// Suspend stops all its processes, so that nothing answers and no connection ends.
	Suspend() error
	// Resume lets them go on.
	Resume() error
}

// Site is the cluster that a scenario is let loose on.
type Site struct {
	Primary  Server
	Replicas []Server
	// Table is the table that the sessions read and write: k bigint, v bigint.
	Table string
	// Witness returns a statement that gives the witness a new version: a row of
	// the table that every read of a scenario with a witness asks for. Run it in
	// a transaction, and sessions see from when on that is visible.
	Witness func() string
	// ApplyDelay is how much later than the primary a slow standby applies.
	ApplyDelay time.Duration

	// Instances is the number of application instances. Replace puts a new one in
	// the place of one of them, counted from 0, and returns when the old one has
	// answered what it was asked and is closed.
	Instances int
	Replace   func(ctx context.Context, instance int) error

	// Restarted tells that a server goes down now, for good or to come back:
	// figures are counted from one such moment to the next.
	Restarted func()
	// Trouble tells that these replicas, counted from 0, are in trouble from now on, and
	// what it returns that they could answer as before: how long reads stay away from
	// them afterwards is measured from there.
	Trouble func(replicas ...int) (over func())

	// Throttle waits until the strategy lets a bulk job write its next batch. Nil means
	// that it holds none back.
	Throttle func(ctx context.Context) error
	// Batch tells that a bulk job has written so many rows.
	Batch func(rows int)

	// Say tells whoever watches what is wrong now; empty means nothing is.
	Say func(what string)
}

const (
	// repairTime bounds the undoing of a fault after the run was cut short.
	repairTime = 10 * time.Second
	// recoveryTime bounds how long a server may take to answer as expected.
	recoveryTime = 60 * time.Second
)

// on runs a statement on a server.
func on(ctx context.Context, s Server, sql string) error {
	conn, err := pgx.Connect(ctx, s.DSN("", ""))
	if err != nil {
		return err
	}
	defer hangUp(conn)
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

// until asks a server again and again until the query answers true. A server
// that does not answer is asked anew: it may be starting.
func until(ctx context.Context, s Server, sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, recoveryTime)
	defer cancel()
	var conn *pgx.Conn
	for {
		yes, err := false, error(nil)
		if conn == nil {
			conn, err = pgx.Connect(ctx, s.DSN("", ""))
		}
		if err == nil {
			err = conn.QueryRow(ctx, sql, args...).Scan(&yes)
		}
		if yes || err != nil {
			hangUp(conn)
			conn = nil
		}
		if yes {
			return nil
		}
		if slept := sleep(ctx, 5*time.Millisecond); slept != nil {
			hangUp(conn)
			if err == nil {
				err = slept
			}
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
}

// caughtUp waits until a replica has replayed all that the primary had flushed
// when it was called.
func caughtUp(ctx context.Context, primary, replica Server) error {
	conn, err := pgx.Connect(ctx, primary.DSN("", ""))
	if err != nil {
		return err
	}
	defer hangUp(conn)
	var lsn string
	if err := conn.QueryRow(ctx, "select pg_current_wal_flush_lsn()::text").Scan(&lsn); err != nil {
		return err
	}
	return until(ctx, replica, "select pg_last_wal_replay_lsn() >= $1::text::pg_lsn", lsn)
}

// repair undoes a fault, also when the run was cut short: the cluster may be
// used again. A failure joins err.
func repair(ctx context.Context, err *error, undo func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), repairTime)
	defer cancel()
	if e := undo(ctx); e != nil {
		*err = errors.Join(*err, fmt.Errorf("undo: %w", e))
	}
}

// Alter changes a setting of a running server that takes effect by a reload, and
// returns when the server has read it. An empty value takes the change back.
func Alter(ctx context.Context, s Server, name, value string) error {
	change := "alter system reset " + name
	if value != "" {
		change = "alter system set " + name + " = '" + value + "'"
	}
	if err := on(ctx, s, change); err != nil {
		return err
	}
	if err := on(ctx, s, "select pg_reload_conf()"); err != nil {
		return err
	}
	// ALTER SYSTEM keeps its settings in a file of its own.
	return until(ctx, s, `select $2 = exists (
		select from pg_settings where name = $1 and sourcefile like '%/postgresql.auto.conf')`, name, value != "")
}

func hangUp(conn *pgx.Conn) {
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// unlessOver forgets an error that came after the run was cut short.
func unlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
