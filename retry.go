package tidegate

import "fmt"

// RetryCause says why an attempt of a read failed before its first row, so that the read
// began again. The zero RetryCause is none.
type RetryCause uint8

// The causes of a retry.
const (
	// RetryNone is the zero RetryCause: no attempt came before.
	RetryNone RetryCause = iota
	// RetryConnection: the connection could not be made, or was lost.
	RetryConnection
	// RetryShutdown: the server is shutting down, has crashed or is starting, or an
	// administrator has ended the connection.
	RetryShutdown
	// RetryPool: the node had no connection to give in time: those of its pool, or of the
	// server, are all in use.
	RetryPool
	// RetryRecoveryConflict: replay on the replica had to cancel the statement. It says
	// nothing against the node.
	RetryRecoveryConflict
	// RetryNotReplayed: the statement names what the replica does not know, as it is while
	// a migration has not been replayed there.
	RetryNotReplayed
	// RetryUnsupported: a replica can not do what the statement asks for, whatever it has
	// replayed.
	RetryUnsupported
	// RetryStalePlan: the statement was prepared on the connection for what has changed
	// since.
	RetryStalePlan
	// RetryRole: the connection says that its server is no longer what it was when it was
	// made, a replica or the primary.
	RetryRole
	// RetryUnproven: no look at the node came in time that holds for the connection.
	RetryUnproven
	retryCauses
)

// RetryCauses is the number of causes, for arrays by cause. RetryNone is the first of them.
const RetryCauses = int(retryCauses)

var retryNames = [...]string{
	"none", "connection", "shutdown", "pool", "recovery-conflict", "not-replayed", "unsupported", "stale-plan", "role", "unproven",
}

// String returns the cause as a word for logs and metrics.
func (c RetryCause) String() string {
	if int(c) < len(retryNames) {
		return retryNames[c]
	}
	return fmt.Sprintf("retry-cause-%d", uint8(c))
}
