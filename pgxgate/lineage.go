package pgxgate

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// How a server's timeline came about stands in its timeline history file, which a role with
// REPLICATION can ask for on a connection of the replication protocol (TIMELINE_HISTORY, see
// "Streaming Replication Protocol" in PostgreSQL's manual). Other roles have to have seen the
// promotion.

const (
	// historyPause is the time between two attempts to get a history, and refusedPause
	// that after the role, or pg_hba.conf, has refused one: it can be granted.
	historyPause, refusedPause = time.Second, time.Minute
	// historyTime bounds one attempt: a probe waits for it.
	historyTime = 300 * time.Millisecond
)

// pedigree is what a server has told of how its timeline came about.
type pedigree struct {
	line    uint64
	lineage *engine.Lineage // nil if it has not
	next    time.Time       // when to ask again
	refused time.Time       // until when it is not asked at all, on no connection
	// replayed is where the server's replay ended, if it was asked as a primary of onLine.
	replayed tidegate.Position
	onLine   uint64
}

// lineage returns how the server's line came about, nil if it does not tell. It is the
// caller's turn.
func (w *watch) lineage(ctx context.Context, s *connState, line uint64) *engine.Lineage {
	p := &w.pedigree
	if line <= 1 || time.Now().Before(p.refused) || p.line == line && (p.lineage != nil || time.Now().Before(p.next)) {
		if line != p.line {
			return nil
		}
		return p.lineage
	}
	ctx, cancel := context.WithTimeout(ctx, historyTime)
	defer cancel()
	l, err := w.askHistory(ctx, s, line)
	p.line, p.lineage = line, l
	p.next = time.Now().Add(historyPause)
	switch sqlState(err) {
	case "42501", "28000": // no REPLICATION, no entry in pg_hba.conf
		p.refused = time.Now().Add(refusedPause)
	}
	return l
}

// startedSQL is asked on the connection of the replication protocol: a name can lead to
// another server each time.
const startedSQL = `select (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint, current_setting('port')`

// askHistory gets the history of a line from the server that the watch is connected to.
func (w *watch) askHistory(ctx context.Context, s *connState, line uint64) (*engine.Lineage, error) {
	cfg := w.cfg.Copy()
	cfg.RuntimeParams = map[string]string{"replication": "database"}
	if name := w.cfg.RuntimeParams["application_name"]; name != "" {
		cfg.RuntimeParams["application_name"] = name
	}
	c, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer closeNow(c)
	row, err := oneRow(ctx, c.PgConn(), startedSQL, 2)
	if err != nil {
		return nil, err
	}
	if started(s.born.Epoch.System, row[0], row[1]) != s.born.Started {
		return nil, fmt.Errorf("pgxgate: the connection for the timeline history leads to another server, or to its next life")
	}
	row, err = oneRow(ctx, c.PgConn(), fmt.Sprintf("TIMELINE_HISTORY %d", line), 2)
	if err != nil {
		return nil, err
	}
	return parseHistory(row[1], s.born.Epoch.System, s.layout)
}

// oneRow runs a command of the simple protocol, the only one that a walsender speaks.
func oneRow(ctx context.Context, c *pgconn.PgConn, command string, columns int) ([]string, error) {
	results, err := c.Exec(ctx, command).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) != columns {
		return nil, fmt.Errorf("pgxgate: %q was not answered with one row of %d columns", command, columns)
	}
	row := make([]string, columns)
	for i, v := range results[0].Rows[0] {
		row[i] = string(v)
	}
	return row, nil
}

// started names the life of a server process, however it is reached.
func started(system uint64, startMicros, port string) uint64 {
	return hash(strconv.FormatUint(system, 10), startMicros, port)
}

// parseHistory reads a timeline history file: a line for each timeline before, its number, where
// it was left, and why. See readTimeLineHistory in PostgreSQL's timeline.c.
func parseHistory(text string, system uint64, y layout) (*engine.Lineage, error) {
	l := &engine.Lineage{}
	for row := range strings.Lines(text) {
		row, _, _ = strings.Cut(row, "#")
		fields := strings.Fields(row)
		if len(fields) == 0 {
			continue
		}
		if len(fields) < 2 {
			return nil, fmt.Errorf("pgxgate: a timeline history has the line %q", row)
		}
		n, err := strconv.ParseUint(fields[0], 10, 32)
		if err != nil || n == 0 || len(l.Branches) > 0 && n <= l.Branches[len(l.Branches)-1].Epoch.Line {
			return nil, fmt.Errorf("pgxgate: a timeline history has the timeline %q, want rising numbers", fields[0])
		}
		end, err := parseLSN(fields[1])
		if err != nil {
			return nil, err
		}
		l.Branches = append(l.Branches, engine.Branch{Epoch: tidegate.Epoch{System: system, Line: n}, End: y.at(end)})
	}
	l.Complete = len(l.Branches) > 0 && l.Branches[0].Epoch.Line == 1
	return l, nil
}

// replayed returns where a primary's replay ended: after a promotion it stays where the
// line began, for as long as the server process lives. Some managed servers do not say. It
// is the caller's turn.
func (w *watch) replayed(ctx context.Context, c *pgx.Conn, s *connState, line uint64) tidegate.Position {
	p := &w.pedigree
	if line > 1 && p.onLine != line {
		var text *string
		switch err := c.QueryRow(ctx, replaySQL).Scan(&text); {
		case err != nil && sqlState(err) == "":
			return tidegate.Position{} // ask again
		case err == nil && text != nil:
			if lsn, err := parseLSN(*text); err == nil {
				p.replayed = s.layout.at(lsn)
			}
		}
		p.onLine = line
	}
	if p.onLine != line {
		return tidegate.Position{}
	}
	return p.replayed
}

// leastSQL is what a standby says, to any role, of the line that it has reached at least:
// what it would have to replay to be consistent again, and its last restartpoint.
const leastSQL = `/* tidegate: timeline */ select greatest(r.min_recovery_end_timeline, c.timeline_id)
 from pg_control_recovery() r, pg_control_checkpoint() c`

// leastLine returns a line that a standby has reached. It changes with a restartpoint, so that
// it is asked for now and then. It is the caller's turn.
func (w *watch) leastLine(ctx context.Context, c *pgx.Conn) uint64 {
	if now := time.Now(); now.Sub(w.least.asked) >= historyPause {
		w.least.asked = now
		var line int64
		if err := c.QueryRow(ctx, leastSQL).Scan(&line); err == nil && line > 0 && line <= math.MaxUint32 {
			w.least.line = max(w.least.line, uint64(line))
		}
	}
	return w.least.line
}
