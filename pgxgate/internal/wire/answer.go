package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgproto3"
)

var (
	// ErrNotPrepared means that the statements are not on the connection:
	// never prepared, or dropped by DEALLOCATE ALL or DISCARD ALL. Prepare
	// them again and call [Conn.MarkPrepared].
	ErrNotPrepared = errors.New("wire: the position statements are not prepared on this connection")

	// ErrStream means that the bytes on the connection are not the protocol,
	// or that the server ended the connection while it was asked.
	ErrStream = errors.New("wire: the connection is no longer followed")

	// errRow means that a statement of this name exists and is not ours.
	errRow = errors.New("wire: the position statement answered with an unexpected row")
)

// ServerError is the server's refusal of an ask. The client never sees it.
type ServerError struct {
	Severity string
	Code     string
	Message  string
}

func (e *ServerError) Error() string {
	return fmt.Sprintf("wire: position not given: %s: %s (SQLSTATE %s)", e.Severity, e.Message, e.Code)
}

// SQLState returns the SQLSTATE of the error.
func (e *ServerError) SQLState() string { return e.Code }

// Is reports a missing prepared statement as [ErrNotPrepared].
func (e *ServerError) Is(target error) bool {
	return target == ErrNotPrepared && e.Code == invalidStatementName
}

const invalidStatementName = "26000"

// Answer is what became known about an armed command. The zero value knows
// nothing and says that nothing was sent.
type Answer struct {
	// OK says that Flush, Insert and AsyncCommit were taken behind everything
	// that the armed command ran, whether it succeeded or not. Without it the
	// three are zero.
	OK bool

	// Flush and Insert are pg_current_wal_flush_lsn and
	// pg_current_wal_insert_lsn as 64 bit numbers. Insert is Flush where [FlushSQL]
	// was prepared.
	Flush, Insert uint64

	// AsyncCommit says that synchronous_commit was off for the session once
	// the command was over, if [AfterSQL] is what was prepared.
	AsyncCommit bool

	// Before is the state in front of the command, for [AroundCommit].
	Before Before

	// Tag is the last command tag that the command completed with, without
	// its numbers: "INSERT", "COMMIT", "CREATE INDEX". COMMIT of an aborted
	// transaction completes with "ROLLBACK".
	Tag string

	// Called says that any of the command's tags was CALL or DO: it may have
	// committed inside, with a setting that nobody saw.
	Called bool

	// Failed says that the server answered the command with an error. An
	// error hides the tag of the command that failed, so one that can have
	// been a CALL must be treated as Called.
	Failed bool

	// TxStatus is the status in the command's last ReadyForQuery: 'I', 'T' or
	// 'E', or 0 when the server has not ended the command.
	TxStatus byte

	// Sent says that the network accepted at least the first byte of a
	// message that runs something: Execute, Query or FunctionCall. Without it
	// nothing can have happened on the server.
	Sent bool

	// Err says why there is no position, when that is known: a [*ServerError],
	// [ErrNotPrepared] or [ErrStream]. It can be nil without OK, as when the
	// connection broke or the command never reached its end.
	Err error
}

// Before is the state of a transaction in front of its COMMIT.
type Before struct {
	OK          bool  // AsyncCommit and Wrote hold.
	AsyncCommit bool  // synchronous_commit was off in the transaction.
	Wrote       bool  // The transaction has an xid, so it has written something.
	Err         error // Why it is not OK, when that is known.
}

// after reads the row of [AfterSQL] or [FlushSQL].
func (a *Answer) after(row []byte) bool {
	const one, two = 2 + 4 + 8, 2 + 4 + 8 + 4 + 8
	if len(row) < one || binary.BigEndian.Uint32(row[2:]) != 8 {
		return false
	}
	flush := binary.BigEndian.Uint64(row[6:])
	switch columns := binary.BigEndian.Uint16(row); {
	case columns == 1 && len(row) == one:
		a.Flush, a.Insert, a.AsyncCommit = flush, flush, false
	case columns == 3 && len(row) == two+4+1 && binary.BigEndian.Uint32(row[one:]) == 8 && binary.BigEndian.Uint32(row[two:]) == 1:
		a.Flush, a.Insert, a.AsyncCommit = flush, binary.BigEndian.Uint64(row[18:]), row[two+4] != 0
	default:
		return false
	}
	return true
}

// before reads the row of [BeforeSQL].
func (b *Before) before(row []byte) bool {
	if len(row) != 2+4+1+4+1 || binary.BigEndian.Uint16(row) != 2 ||
		binary.BigEndian.Uint32(row[2:]) != 1 || binary.BigEndian.Uint32(row[7:]) != 1 {
		return false
	}
	b.AsyncCommit = row[6] != 0
	b.Wrote = row[11] != 0
	return true
}

// serverError reads the body of an ErrorResponse and says whether the server
// ends the connection with it.
func serverError(body []byte) (err *ServerError, fatal bool) {
	var m pgproto3.ErrorResponse
	if m.Decode(body) != nil {
		return &ServerError{Message: "malformed error"}, false
	}
	s := m.SeverityUnlocalized
	if s == "" {
		s = m.Severity
	}
	return &ServerError{Severity: s, Code: m.Code, Message: m.Message}, s == "FATAL" || s == "PANIC"
}

// commandName returns a command tag without the zero that ends it and the
// numbers behind the name. The usual names cost no allocation.
func commandName(tag []byte) string {
	tag = bytes.TrimSuffix(tag, []byte{0})
	for {
		i := bytes.LastIndexByte(tag, ' ')
		if i < 0 || !digits(tag[i+1:]) {
			break
		}
		tag = tag[:i]
	}
	switch string(tag) {
	case "INSERT":
		return "INSERT"
	case "UPDATE":
		return "UPDATE"
	case "DELETE":
		return "DELETE"
	case "MERGE":
		return "MERGE"
	case "SELECT":
		return "SELECT"
	case "COPY":
		return "COPY"
	case "BEGIN":
		return "BEGIN"
	case "COMMIT":
		return "COMMIT"
	case "ROLLBACK":
		return "ROLLBACK"
	case "CALL":
		return "CALL"
	case "DO":
		return "DO"
	case "SET":
		return "SET"
	}
	return string(tag)
}

func digits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}
