package wire

import "github.com/jackc/pgx/v5/pgproto3"

// Ask says what to ask for around an armed command, and where.
type Ask uint8

const (
	// After asks for the position behind every client write that ends in
	// Sync or Query and that, with the writes before it, runs something. It
	// is right for every command but COPY FROM STDIN.
	After Ask = iota + 1

	// AroundCommit is After, and also asks for the transaction's state in
	// front of the write. It is meant for COMMIT: the setting can be local to
	// the transaction, so it must be read before it is over.
	AroundCommit

	// AfterCopy asks for the position behind CopyDone or CopyFail. Until then
	// the server reads everything but copy data as an error. A COPY that the
	// server has already refused is not followed by an ask.
	AfterCopy
)

// The statements that the asks execute. The caller prepares both on a
// connection under these names and then calls [Conn.MarkPrepared].
//
// Every function and operator is qualified: the statements are analysed again
// whenever search_path changes, and must not find somebody's namesake.
const (
	// AfterName is the name that [AfterSQL] or [FlushSQL] is prepared as.
	AfterName = "tidegate_after"

	// FlushSQL reads the flush position. It fails on a standby.
	FlushSQL = `/* tidegate: position behind a write */ select pg_catalog.pg_current_wal_flush_lsn()`

	// AfterSQL also reads the insert position, and whether synchronous_commit is off.
	// Where it is known that it never is, FlushSQL can be prepared under [AfterName]
	// instead: the insert position is of no use then.
	AfterSQL = FlushSQL + `, pg_catalog.pg_current_wal_insert_lsn(), pg_catalog.current_setting('synchronous_commit') operator(pg_catalog.=) 'off'`

	// BeforeName is the name of the statement that [BeforeSQL] is prepared as.
	BeforeName = "tidegate_before"

	// BeforeSQL reads whether synchronous_commit is off in the transaction
	// and whether the transaction has written anything.
	BeforeSQL = `/* tidegate: state in front of a commit */ ` +
		`select pg_catalog.current_setting('synchronous_commit') operator(pg_catalog.=) 'off', ` +
		`pg_catalog.pg_current_xact_id_if_assigned() is not null`
)

// The complete messages of the two asks.
var (
	afterMsg  = bindExecuteSync(AfterName)
	beforeMsg = bindExecuteSync(BeforeName)
)

// A client's COMMIT, to the byte, and what goes to the server in its place: the
// same with the ask in one sequence, which the server answers in one packet, where
// an ask of its own wakes the client twice. The COMMIT is parsed anew each time:
// a prepared one could be gone, and then the transaction would fail.
var (
	commitMsg       = encode(&pgproto3.Query{String: "commit"})
	commitJoinedMsg = append(encode(&pgproto3.Parse{Query: "commit"}, &pgproto3.Bind{}, &pgproto3.Execute{}), afterMsg...)
)

func bindExecuteSync(name string) []byte {
	// One format code counts for all columns: 1 is binary.
	return encode(&pgproto3.Bind{PreparedStatement: name, ResultFormatCodes: []int16{1}}, &pgproto3.Execute{}, &pgproto3.Sync{})
}

func encode(messages ...pgproto3.FrontendMessage) (b []byte) {
	var err error
	for _, m := range messages {
		if b, err = m.Encode(b); err != nil {
			panic("wire: BUG: " + err.Error()) // only a message over 1 GB cannot be encoded
		}
	}
	return b
}
