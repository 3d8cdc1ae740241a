package enginetest

import (
	"time"

	"github.com/tidegatedb/tidegate"
)

// readYourWrites: a session's read that follows its write sees it, while one of
// two replicas applies nothing.
func readYourWrites(b *bench) {
	b.start(2)
	p := ability[Pauser](b, "Pauser")
	g := b.open(Options{})
	p.PauseReplica(b.T, 0)
	ctx, _ := session(b.Context())
	var n tally
	for range b.times(1) {
		key := b.newKey()
		v := b.write(ctx, g, key)
		got, d := b.read(ctx, g, tidegate.Causal, key)
		if got < v {
			b.Fatalf("read %d after writing %d: %v", got, v, d)
		}
		n.add(d, b.lacks(0, key, v))
	}
	b.check(&n)
	if n.nodes[b.cluster.Name(0)] > 0 {
		b.Errorf("the replica that lacked everything answered %d reads", n.nodes[b.cluster.Name(0)])
	}
	if share := n.nodes[b.cluster.Name(1)]; share < n.reads/2 {
		b.Errorf("the sound replica answered %d of %d reads: want at least half", share, n.reads)
	}
}

// tokenHop: an instance that has only the token reads what another one wrote.
func tokenHop(b *bench) {
	b.start(2)
	p := ability[Pauser](b, "Pauser")
	gates := []Gate{b.open(Options{}), b.open(Options{})}
	p.PauseReplica(b.T, 0)
	var n tally
	token := tidegate.Token{}
	for i := range b.times(4) {
		ctx, s := session(b.Context(), token)
		key := b.newKey()
		v := b.write(ctx, gates[i%2], key)
		ctx, s = session(b.Context(), b.wire(s))
		got, d := b.read(ctx, gates[1-i%2], tidegate.Causal, key)
		if got < v {
			b.Fatalf("read %d after writing %d on the other instance: %v", got, v, d)
		}
		token = b.wire(s)
		n.add(d, b.lacks(0, key, v))
	}
	b.check(&n)
}

// toldOfWrite: a write on another way is seen once the session has been told.
func toldOfWrite(b *bench) {
	b.start(2)
	p := ability[Pauser](b, "Pauser")
	g := b.open(Options{})
	p.PauseReplica(b.T, 0)
	ctx, _ := session(b.Context())
	var n tally
	for range b.times(20) {
		key := b.newKey()
		v := b.cluster.Commit(b.T, key)
		tidegate.Wrote(ctx, g.Core().Cluster())
		got, d := b.read(ctx, g, tidegate.Causal, key)
		if got < v {
			b.Fatalf("read %d after being told of %d: %v", got, v, d)
		}
		n.add(d, b.lacks(0, key, v))
	}
	b.check(&n)
}

// outcomeUnknown: after a write whose outcome is not known no read is answered
// before the server process has ended, and then it shows what became of it.
func outcomeUnknown(b *bench) {
	b.start(1)
	c := ability[Doubter](b, "Doubter")
	g := b.open(Options{ProofWait: patience})
	for range 3 {
		ctx, _ := session(b.Context())
		key := b.newKey()
		land := c.WriteInDoubt(ctx, b.T, g, key)
		var got int64
		var d tidegate.Decision
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			got, d, err = tryRead(ctx, g, tidegate.Causal, key)
		}()
		select {
		case <-done:
			b.Fatalf("answered with %d while the outcome was open: %v, %v", got, d, err)
		case <-time.After(300 * time.Millisecond):
		}
		land()
		<-done
		if err != nil || got == 0 || d.Unproven {
			b.Fatalf("read %d of a write that landed: %v, %v", got, d, err)
		}
	}
}
