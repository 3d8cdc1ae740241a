package enginetest

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/tidegatedb/tidegate"
)

// patience is how long the suite waits for what has to happen.
const patience = 20 * time.Second

// bench is what a subtest works with.
type bench struct {
	*testing.T
	h       Harness
	name    string
	missing map[string][]string
	skipped bool

	cluster Cluster
	key     int64
}

// start starts the subtest's cluster.
func (b *bench) start(replicas int) { b.cluster = b.h.Start(b.T, replicas) }

// times returns a part of the harness's iterations.
func (b *bench) times(divisor int) int { return max(20, b.h.Iterations()/divisor) }

// open opens an instance that is closed with the subtest.
func (b *bench) open(o Options) Gate {
	b.Helper()
	g, err := b.cluster.Open(b.Context(), o)
	if err != nil {
		b.Fatalf("Open: %v", err)
	}
	b.Cleanup(g.Close)
	return g
}

// ability returns the cluster as T, or skips the subtest and notes it.
func ability[T any](b *bench, name string) T {
	b.Helper()
	c, ok := b.cluster.(T)
	if !ok {
		b.missing[name] = append(b.missing[name], b.name)
		b.skipped = true
		b.Skipf("NOT RUN: the harness's cluster is no %s", name)
	}
	return c
}

// session returns a context with a session that goes on from tokens.
func session(ctx context.Context, tokens ...tidegate.Token) (context.Context, *tidegate.Session) {
	s := tidegate.NewSession(tokens...)
	return tidegate.WithSession(ctx, s), s
}

// wire sends a session's token over the wire.
func (b *bench) wire(s *tidegate.Session) tidegate.Token {
	b.Helper()
	raw, err := s.Token().AppendBinary(nil)
	if err != nil {
		b.Fatal(err)
	}
	t, err := tidegate.ParseBinary(raw)
	if err != nil {
		b.Fatal(err)
	}
	return t
}

func (b *bench) newKey() int64 {
	b.key++
	return b.key
}

func (b *bench) write(ctx context.Context, g Gate, key int64) int64 {
	b.Helper()
	v, err := g.Write(ctx, key)
	if err != nil {
		b.Fatalf("write of key %d: %v", key, err)
	}
	return v
}

// read reads a key and returns its version with the decision.
func (b *bench) read(ctx context.Context, g Gate, class tidegate.Class, key int64) (int64, tidegate.Decision) {
	b.Helper()
	v, d, err := tryRead(ctx, g, class, key)
	if err != nil {
		b.Fatalf("%s read of key %d: %v", class, key, err)
	}
	if d.Cluster != g.Core().Cluster() || d.Node == "" || d.Class != class || d.Reason == tidegate.ReasonNone || d.Role == tidegate.RoleUnknown {
		b.Errorf("the decision of a %s read is not complete: %+v", class, d)
	}
	return v, d
}

// tryRead reads a key; the decision is the one that the read ended with.
func tryRead(ctx context.Context, g Gate, class tidegate.Class, key int64) (int64, tidegate.Decision, error) {
	ctx, seen := tidegate.Observe(ctx)
	rows, err := g.Read(ctx, class, key)
	d, _ := seen.Last()
	return rows[key], d, err
}

// lacks reports whether the replica shows less of the key than the version.
func (b *bench) lacks(replica int, key, version int64) bool {
	b.Helper()
	return b.cluster.Version(b.T, replica, key) < version
}

// eventually waits until f reports true.
func (b *bench) eventually(what string, f func() bool) {
	b.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("not after %v: %s", patience, what)
		}
	}
}

// caughtUp waits until the replica shows the version.
func (b *bench) caughtUp(replica int, key, version int64) {
	b.Helper()
	b.eventually("a replica has caught up", func() bool { return !b.lacks(replica, key, version) })
}

// tally counts what reads did and what they could have done wrong.
type tally struct {
	reads, opportunities, unproven int
	reasons                        map[tidegate.Reason]int
	nodes                          map[string]int
}

func (n *tally) add(d tidegate.Decision, opportunity bool) {
	if n.reasons == nil {
		n.reasons, n.nodes = map[tidegate.Reason]int{}, map[string]int{}
	}
	n.reads++
	n.reasons[d.Reason]++
	n.nodes[d.Node]++
	if d.Unproven {
		n.unproven++
	}
	if opportunity {
		n.opportunities++
	}
}

// check fails the subtest when hardly any read could have gone wrong, or when
// many were not proven.
func (b *bench) check(n *tally) {
	b.Helper()
	b.Logf("%d reads, %d of them could have gone wrong, %d unproven, by %v, for %v", n.reads, n.opportunities, n.unproven, n.nodes, n.reasons)
	if n.opportunities < 1+n.reads/50 {
		b.Errorf("only %d of %d reads could have gone wrong: this run proves nothing", n.opportunities, n.reads)
	}
	if n.unproven > n.reads/100 {
		b.Errorf("%d of %d reads were not proven", n.unproven, n.reads)
	}
}

// leak returns a function that fails the subtest when there are more goroutines
// than now.
func (b *bench) leak() func() {
	before := runtime.NumGoroutine()
	return func() {
		b.Helper()
		for end := time.Now().Add(patience); runtime.NumGoroutine() > before; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				buf := make([]byte, 1<<20)
				b.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
			}
		}
	}
}
