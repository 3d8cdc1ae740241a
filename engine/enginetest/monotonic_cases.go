package enginetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tidegatedb/tidegate"
)

// monotonicReads: what a session saw of others' writes it sees again, on
// whichever instance, while the replicas take turns in falling behind.
func monotonicReads(b *bench) {
	b.start(2)
	p := ability[Pauser](b, "Pauser")
	gates := []Gate{b.open(Options{}), b.open(Options{})}
	key := b.newKey()
	var n tally
	var last int64
	token := tidegate.Token{}
	for i := range b.times(10) {
		behind := i % 2
		p.PauseReplica(b.T, behind)
		v := b.cluster.Commit(b.T, key)
		b.caughtUp(1-behind, key, v)
		for j := range 4 {
			ctx, s := session(b.Context(), token)
			got, d := b.read(ctx, gates[j%2], tidegate.Causal, key)
			if got < last {
				b.Fatalf("read %d after %d: %v", got, last, d)
			}
			n.add(d, b.lacks(behind, key, last))
			last = got
			token = b.wire(s)
		}
		p.ResumeReplica(b.T, behind)
	}
	b.check(&n)
}

// monotonicReadsOverCrashes: what a replica showed before it crashed is seen
// again, although the replica itself may have gone back. Half of the rounds use
// an instance whose connections are new with nearly every read, so that they
// belong to a life that nobody has looked at yet.
func monotonicReadsOverCrashes(b *bench) {
	b.start(2)
	c := ability[Crasher](b, "Crasher")
	gates := []Gate{b.open(Options{}), b.open(Options{ConnLife: time.Millisecond})}
	key := b.newKey()
	ctx, _ := session(b.Context())
	var n tally
	var last int64
	for i := range min(200, b.times(50)) {
		victim, g := i%2, gates[i/2%2]
		for range 5 {
			v := b.cluster.Commit(b.T, key)
			b.caughtUp(victim, key, v)
			got, _ := b.read(ctx, g, tidegate.Causal, key)
			last = max(last, got)
		}
		c.CrashReplica(b.T, victim)
		for range 5 {
			gone := b.lacks(victim, key, last)
			got, d := b.read(ctx, g, tidegate.Causal, key)
			if got < last {
				b.Fatalf("read %d after %d: %v", got, last, d)
			}
			n.add(d, gone)
			last = got
		}
		b.caughtUp(victim, key, last)
	}
	b.check(&n)
}

// parallelSessions: many sessions at once, each with its own writes, while one
// replica falls behind and catches up again.
func parallelSessions(b *bench) {
	b.start(2)
	p := ability[Pauser](b, "Pauser")
	gates := []Gate{b.open(Options{}), b.open(Options{})}
	var mu sync.Mutex
	var n tally
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			p.PauseReplica(b.T, 0)
			over := ended(stop, 20*time.Millisecond)
			p.ResumeReplica(b.T, 0)
			if over || ended(stop, 5*time.Millisecond) {
				return
			}
		}
	})
	const sessions = 16
	errs := make(chan error, sessions)
	var readers sync.WaitGroup
	for i := range sessions {
		key := b.newKey()
		readers.Go(func() {
			errs <- oneSession(b.Context(), gates, key, b.times(20), i, func(d tidegate.Decision, v int64) {
				gone := b.lacks(0, key, v)
				mu.Lock()
				n.add(d, gone)
				mu.Unlock()
			})
		})
	}
	readers.Wait()
	close(stop)
	wg.Wait()
	for range sessions {
		if err := <-errs; err != nil {
			b.Error(err)
		}
	}
	b.check(&n)
}

// ended waits so long and reports whether stop was closed meanwhile.
func ended(stop <-chan struct{}, d time.Duration) bool {
	select {
	case <-stop:
		return true
	case <-time.After(d):
		return false
	}
}

// oneSession writes and reads one key, on the gates in turn.
func oneSession(ctx context.Context, gates []Gate, key int64, times, start int, note func(tidegate.Decision, int64)) error {
	ctx, _ = session(ctx)
	var last int64
	for i := range times {
		g := gates[(start+i)%len(gates)]
		if i%3 == 0 {
			v, err := g.Write(ctx, key)
			if err != nil {
				return fmt.Errorf("session %d: write: %w", start, err)
			}
			last = v
		}
		got, d, err := tryRead(ctx, g, tidegate.Causal, key)
		if err != nil {
			return fmt.Errorf("session %d: read: %w", start, err)
		}
		if got < last {
			return fmt.Errorf("session %d read %d after %d: %v", start, got, last, d)
		}
		last = got
		note(d, last)
	}
	return nil
}

// connectionChurn: connections that live for moments, so that most of them are
// younger than what is known of their node.
func connectionChurn(b *bench) {
	b.start(2)
	p := ability[Pauser](b, "Pauser")
	g := b.open(Options{ConnLife: 10 * time.Millisecond})
	ctx, _ := session(b.Context())
	var n tally
	for i := range b.times(10) {
		if i%10 == 0 {
			p.ResumeReplica(b.T, i/10%2)
			p.PauseReplica(b.T, 1-i/10%2)
		}
		key := b.newKey()
		v := b.write(ctx, g, key)
		got, d := b.read(ctx, g, tidegate.Causal, key)
		if got < v {
			b.Fatalf("read %d after writing %d: %v", got, v, d)
		}
		n.add(d, b.lacks(1-i/10%2, key, v))
	}
	b.check(&n)
}
