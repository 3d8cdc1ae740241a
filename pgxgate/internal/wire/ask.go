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
	// AfterName is the name of the statement that [AfterSQL] is prepared as.
	AfterName = "tidegate_after"

	// AfterSQL reads the flush position, the insert position, and whether
	// synchronous_commit is off. Both functions fail on a standby.
	AfterSQL = `/* tidegate: position behind a write */ ` +
		`select pg_catalog.pg_current_wal_flush_lsn(), pg_catalog.pg_current_wal_insert_lsn(), ` +
		`pg_catalog.current_setting('synchronous_commit') operator(pg_catalog.=) 'off'`

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

func bindExecuteSync(name string) []byte {
	// One format code counts for all columns: 1 is binary.
	b, err := (&pgproto3.Bind{PreparedStatement: name, ResultFormatCodes: []int16{1}}).Encode(nil)
	if err == nil {
		b, err = (&pgproto3.Execute{}).Encode(b)
	}
	if err == nil {
		b, err = (&pgproto3.Sync{}).Encode(b)
	}
	if err != nil {
		panic("wire: BUG: " + err.Error()) // only a message over 1 GB cannot be encoded
	}
	return b
}
