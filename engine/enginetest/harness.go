package enginetest

import (
	"context"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/engine"
)

// Harness makes clusters for the suite. What a cluster can be made to suffer is
// told by the interfaces that it has beside [Cluster]; the suite says loudly what
// it did not run for want of one.
type Harness interface {
	// Start returns a running cluster of a primary and so many replicas, with no
	// data that a subtest could meet. It ends with t. Harnesses whose clusters are
	// expensive may return the same one again, whole.
	Start(t *testing.T, replicas int) Cluster
	// Iterations is how often a subtest repeats itself: 10000 where a read costs
	// microseconds, fewer where a thousand cost seconds. The suite takes at least
	// 20.
	Iterations() int
}

// A Bubbler is a [Harness] whose clusters live in the bubbles of testing/synctest,
// one for each subtest.
type Bubbler interface{ Bubbles() }

// Cluster is a cluster under test. Replicas are numbered from 0.
type Cluster interface {
	// Open opens an instance of the application. A nil error means that each node
	// has been looked at once, with whatever result.
	Open(ctx context.Context, o Options) (Gate, error)
	// Commit writes a key on a way that no gate sees and returns its new version.
	Commit(t *testing.T, key int64) int64
	// Version returns the version of a key that the replica itself shows, past all
	// routing; zero when it has none.
	Version(t *testing.T, replica int, key int64) int64
	// Name returns what decisions call the replica.
	Name(replica int) string
}

// Options are what the suite wants to be special about an instance. A zero field
// means the adapter's default.
type Options struct {
	// Wait and ProofWait are as in engine.Config.
	Wait, ProofWait time.Duration
	// ConnLife is how long a connection may be used.
	ConnLife time.Duration
}

// Gate is one instance of the application over the adapter under test. It is safe
// for concurrent use. Sessions come with the context.
type Gate interface {
	// Write writes a key and returns its new version. Versions of a key only grow.
	Write(ctx context.Context, key int64) (version int64, err error)
	// Read reads keys in one statement; one that has no version is left out.
	Read(ctx context.Context, class tidegate.Class, keys ...int64) (map[int64]int64, error)
	// Core is the core that routes.
	Core() *engine.Core
	// Close closes the instance and leaves no goroutine behind.
	Close()
}

// A Pauser can stop and resume what a replica applies, while it goes on answering.
type Pauser interface {
	PauseReplica(t *testing.T, replica int)
	ResumeReplica(t *testing.T, replica int)
}

// A Stopper can stop a replica and start it again.
type Stopper interface {
	StopReplica(t *testing.T, replica int)
	StartReplica(t *testing.T, replica int)
}

// A Crasher can make a replica begin a new life, in which it may show an older
// state at first.
type Crasher interface {
	CrashReplica(t *testing.T, replica int)
}

// A PrimaryStopper can stop the primary and start it again.
type PrimaryStopper interface {
	StopPrimary(t *testing.T)
	StartPrimary(t *testing.T)
}

// A Doubter can cut a gate's connection in the middle of a write.
type Doubter interface {
	// WriteInDoubt writes a key through the gate and makes the gate lose the
	// connection before the outcome is known; the server process lives on. It
	// returns when the gate has reported that. land lets the process commit.
	WriteInDoubt(ctx context.Context, t *testing.T, g Gate, key int64) (land func())
}
