package pgxgate

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"net"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
	"github.com/tidegatedb/tidegate/pgxgate/internal/wire"
)

// bornSQL is the first thing asked on every connection. What it says of the
// server stays true for as long as the connection lives: a connection belongs to
// one incarnation.
//
// pg_is_in_recovery is evaluated once, below the rest, so that a promotion in
// the middle cannot mix both roles.
const bornSQL = `/* tidegate: which server is this */ select r,
 case when r then pg_last_wal_replay_lsn() else pg_current_wal_flush_lsn() end,
 case when r then pg_last_wal_receive_lsn() else pg_current_wal_insert_lsn() end,
 case when r then (select received_tli::bigint from pg_stat_wal_receiver)
  else ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint end,
 (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint,
 (select coalesce((extract(epoch from stats_reset) * 1000000)::bigint, 0) from pg_stat_bgwriter),
 (select system_identifier from pg_control_system()),
 coalesce(host(inet_server_addr()), ''), current_setting('port'),
 pg_size_bytes(current_setting('wal_segment_size')), current_setting('wal_block_size')::bigint,
 pg_backend_pid(), (select (extract(epoch from backend_start) * 1000000)::bigint from pg_stat_get_activity(pg_backend_pid()))
 from (select pg_is_in_recovery() as r offset 0) x`

// connState is what pgxgate knows of one connection.
type connState struct {
	// otherRole tells that the connection, when it was last given back, had said that
	// its server is a primary now where it was a replica, or the other way round.
	otherRole bool
	// born is the observation taken when the connection was made. Its Received
	// is the connection's birth: the server was linked by then.
	born   engine.Observation
	layout layout
	// wire takes positions; nil on connections that only read replicas.
	wire *wire.Conn
	// afterSQL is what asks for them.
	afterSQL string
	// process names the server process that works for the connection.
	process uint64
}

// tagged is a network connection that knows its state. Every read needs the state,
// and a map such as pgconn's CustomData costs a read more than all of its routing.
type tagged struct {
	net.Conn
	state *connState
}

// stateOf returns the state that AfterConnect has left, nil on a connection that
// is not ours.
func stateOf(c *pgx.Conn) *connState {
	switch nc := c.PgConn().Conn().(type) {
	case *tagged:
		return nc.state
	case *wire.Conn:
		s, _ := nc.Owner.(*connState)
		return s
	}
	return nil
}

// tag leaves the state on the connection.
func tag(c *pgx.Conn, s *connState) {
	switch nc := c.PgConn().Conn().(type) {
	case *tagged:
		nc.state = s
	case *wire.Conn:
		nc.Owner = s
	}
}

// bear asks a new connection who it is connected to and prepares the position
// statements where positions will be taken, in one round trip.
func bear(ctx context.Context, pc *pgconn.PgConn, w *wire.Conn, async AsyncCommits) (*connState, error) {
	s := &connState{wire: w, afterSQL: wire.AfterSQL}
	if async == AsyncAbsent {
		s.afterSQL = wire.FlushSQL
	}
	s.born.Sent = engine.Now()
	p := pc.StartPipeline(ctx)
	if w != nil {
		p.SendPrepare(wire.AfterName, s.afterSQL, nil)
		p.SendPrepare(wire.BeforeName, wire.BeforeSQL, nil)
	}
	p.SendQueryParams(bornSQL, nil, nil, nil, nil)
	if err := p.Sync(); err != nil {
		return nil, err
	}
	var row [][]byte
	for {
		res, err := p.GetResults()
		if err != nil {
			p.Close()
			return nil, capability(err)
		}
		if rr, ok := res.(*pgconn.ResultReader); ok {
			r := rr.Read()
			if r.Err != nil {
				p.Close()
				return nil, capability(r.Err)
			}
			if len(r.Rows) == 1 {
				row = r.Rows[0]
			}
		}
		if _, ok := res.(*pgconn.PipelineSync); ok {
			break
		}
	}
	s.born.Received = engine.Now()
	if err := p.Close(); err != nil {
		return nil, err
	}
	if w != nil {
		w.MarkPrepared()
	}
	if err := s.read(row); err != nil {
		return nil, err
	}
	// A pooler gives its clients numbers of its own to cancel by.
	if pid := pc.PID(); pid != 0 && uint64(pid) != s.process>>32 {
		return nil, errPooler
	}
	return s, nil
}

// read takes in the row of bornSQL.
func (s *connState) read(row [][]byte) error {
	if len(row) != 13 {
		return fmt.Errorf("pgxgate: the server described itself with %d columns instead of 13", len(row))
	}
	text := make([]string, len(row))
	for i, v := range row {
		text[i] = string(v)
	}
	num := func(i int) int64 {
		n, _ := strconv.ParseInt(text[i], 10, 64)
		return n
	}
	s.layout = layout{segment: uint64(num(9)), block: uint64(num(10))}
	if s.layout.segment == 0 || s.layout.block == 0 {
		return fmt.Errorf("pgxgate: the server says wal_segment_size %q and wal_block_size %q; both are needed", text[9], text[10])
	}
	a := answer{replica: text[0] == "t", hasSecond: row[2] != nil, line: uint64(num(3))}
	var err error
	if row[1] != nil {
		a.hasFirst = true
		if a.first, err = parseLSN(text[1]); err != nil {
			return err
		}
	}
	if row[2] != nil {
		if a.second, err = parseLSN(text[2]); err != nil {
			return err
		}
	}
	system, _ := strconv.ParseUint(text[6], 10, 64)
	s.born.Epoch.System = system
	s.born.Started = started(system, text[4], text[8])
	s.born.Server = hash(text[6], text[7], text[8])
	s.born.Incarnation = tidegate.Incarnation(hash(text[6], text[7], text[8], text[4], text[5]))
	if row[12] != nil {
		s.process = processID(num(11), num(12))
	} else {
		s.process = processID(num(11), 0)
	}
	return a.fill(&s.born, s.layout)
}

// errPooler is a connection whose other end is not a server's process: what is asked on it next
// can reach another one, so that nothing that it says can be held against what it showed.
var errPooler = errors.New("pgxgate: this connection leads through a pooler such as PgBouncer, where nothing can be proven of the server behind it; " +
	"let the node's DSN lead to the server itself, and leave pooling to this process's own pools")

// processID names a server process: its number, and its start where the role may
// see that, so that a reused number is not taken for it.
func processID(pid, startMicros int64) uint64 { return uint64(pid)<<32 | uint64(uint32(startMicros)) }

// hash is FNV-1a over separated parts; never zero or all ones, which mean
// "unknown" and "none" where identities are compared.
func hash(parts ...string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(strings.Join(parts, "\x00")))
	return min(max(h.Sum64(), 1), math.MaxUint64-1)
}

// capability turns a refusal of the functions that everything rests on into an
// error that says what to do.
func capability(err error) error {
	switch sqlState(err) {
	case "0A000", "42883", "42501":
		return fmt.Errorf("pgxgate: this server or role does not offer the log positions that freshness is proven by "+
			"(it needs pg_last_wal_replay_lsn, pg_current_wal_flush_lsn, pg_control_system and pg_stat_bgwriter); let the role use them, "+
			"or, where a managed server refuses them, leave it out of Config.Nodes, since it cannot be routed by position: %w", err)
	}
	return err
}
