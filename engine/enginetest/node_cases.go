package enginetest

import (
	"context"
	"errors"
	"time"

	"github.com/tidegatedb/tidegate"
)

// singleNode: a primary alone is a cluster; a laptop needs nothing else.
func singleNode(b *bench) {
	b.start(0)
	g := b.open(Options{})
	ctx, _ := session(b.Context())
	for range 20 {
		key := b.newKey()
		v := b.write(ctx, g, key)
		for _, class := range []tidegate.Class{tidegate.Causal, decision, rollups} {
			if got, d := b.read(ctx, g, class, key); got < v || d.Role != tidegate.RolePrimary || d.Unproven || d.Waited > 0 {
				b.Fatalf("read %d, want %d: %v", got, v, d)
			}
		}
	}
}

// startWithReplicaDown: an instance starts with what is there and takes in what
// comes later.
func startWithReplicaDown(b *bench) {
	b.start(2)
	s := ability[Stopper](b, "Stopper")
	s.StopReplica(b.T, 0)
	g := b.open(Options{})
	ctx, _ := session(b.Context())
	key := b.newKey()
	v := b.write(ctx, g, key)
	b.caughtUp(1, key, v)
	got, d := b.read(ctx, g, tidegate.Causal, key)
	if got < v || d.Node == b.cluster.Name(0) {
		b.Errorf("read %d, want %d: %v", got, v, d)
	}
	s.StartReplica(b.T, 0)
	b.eventually("the replica that came later answers", func() bool {
		ctx, _ := session(b.Context())
		_, d := b.read(ctx, g, tidegate.Causal, key)
		return d.Node == b.cluster.Name(0)
	})
}

// startWithoutPrimary: an instance starts, and a write says what is missing.
func startWithoutPrimary(b *bench) {
	b.start(1)
	s := ability[PrimaryStopper](b, "PrimaryStopper")
	s.StopPrimary(b.T)
	g := b.open(Options{})
	ctx, _ := session(b.Context())
	key := b.newKey()
	if _, err := g.Write(ctx, key); !errors.Is(err, tidegate.ErrNoPrimary) {
		b.Errorf("a write without a primary: %v, want one that wraps ErrNoPrimary", err)
	}
	if _, _, err := tryRead(ctx, g, decision, key); !errors.Is(err, tidegate.ErrNoPrimary) || !errors.Is(err, tidegate.ErrNotFresh) {
		b.Errorf("a strong read without a primary: %v, want one that wraps ErrNotFresh and ErrNoPrimary", err)
	}
	s.StartPrimary(b.T)
	b.eventually("the primary is found", func() bool {
		_, err := g.Write(ctx, key)
		return err == nil
	})
}

// primaryGone: without the primary, writes fail and sessions that a replica
// covers go on.
func primaryGone(b *bench) {
	b.start(2)
	s := ability[PrimaryStopper](b, "PrimaryStopper")
	g := b.open(Options{ProofWait: time.Second})
	ctx, _ := session(b.Context())
	key := b.newKey()
	v := b.write(ctx, g, key)
	b.caughtUp(0, key, v)
	b.caughtUp(1, key, v)
	b.read(ctx, g, tidegate.Causal, key)
	s.StopPrimary(b.T)
	served := 0
	for range 20 {
		if got, d := b.read(ctx, g, tidegate.Causal, key); got < v || d.Role != tidegate.RoleReplica {
			b.Fatalf("read %d, want %d from a replica: %v", got, v, d)
		}
		fresh, _ := session(b.Context())
		if _, d := b.read(fresh, g, tidegate.Causal, key); d.Role != tidegate.RoleReplica {
			b.Fatalf("a session that requires nothing: %v", d)
		}
		// A failed write may leave its session with a duty that nobody can settle now.
		doomed, _ := session(b.Context())
		began := time.Now()
		if _, err := g.Write(doomed, key); err == nil {
			b.Fatal("a write succeeded without a primary")
		} else if d := time.Since(began); d > patience/4 {
			b.Fatalf("a write failed only after %v: %v", d, err)
		}
		served++
	}
	if _, _, err := tryRead(b.Context(), g, tidegate.Causal, key); err == nil {
		b.Error("a read without a session was answered without a primary")
	}
	s.StartPrimary(b.T)
	b.eventually("the primary is back", func() bool {
		_, err := g.Write(ctx, key)
		return err == nil
	})
	b.Logf("%d rounds without a primary", served)
}

// cancelledWait: a read that waits for a replica ends with its context.
func cancelledWait(b *bench) {
	b.start(1)
	p := ability[Pauser](b, "Pauser")
	g := b.open(Options{})
	p.PauseReplica(b.T, 0)
	patient := tidegate.NewCausal("suite-patient", "it waits for ever", tidegate.Wait(time.Hour))
	ctx, _ := session(b.Context())
	key := b.newKey()
	b.write(ctx, g, key)
	for _, cancelled := range []bool{true, false} {
		// A deadline leaves the read the half of the time, to be answered elsewhere.
		limited, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		if cancelled {
			limited, cancel = context.WithCancel(ctx)
			time.AfterFunc(100*time.Millisecond, cancel)
		}
		began := time.Now()
		_, d, err := tryRead(limited, g, patient, key)
		took := time.Since(began)
		cancel()
		if cancelled && !errors.Is(err, context.Canceled) {
			b.Errorf("the read ended with %v and %v, want context.Canceled", err, d)
		}
		if took > 2*time.Second {
			b.Errorf("the read ended %v after it began", took)
		}
	}
	if !b.lacks(0, key, 1) {
		b.Error("the replica had it: this run proves nothing")
	}
	if got, d := b.read(ctx, g, tidegate.Causal, key); got == 0 {
		b.Errorf("the session does not see its write any more: %v", d)
	}
}

// closes: a closed instance says so and leaves nothing behind.
func closes(b *bench) {
	b.start(1)
	left := b.leak()
	g, err := b.cluster.Open(b.Context(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	ctx, _ := session(b.Context())
	key := b.newKey()
	b.write(ctx, g, key)
	b.read(ctx, g, tidegate.Causal, key)
	g.Close()
	g.Close()
	if _, err := g.Write(ctx, key); !errors.Is(err, tidegate.ErrClosed) {
		b.Errorf("a write after Close: %v, want ErrClosed", err)
	}
	if _, _, err := tryRead(ctx, g, tidegate.Causal, key); !errors.Is(err, tidegate.ErrClosed) {
		b.Errorf("a read after Close: %v, want ErrClosed", err)
	}
	left()
}

// failedStart: a start that failed leaves nothing behind.
func failedStart(b *bench) {
	b.start(1)
	left := b.leak()
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	if g, err := b.cluster.Open(ctx, Options{}); !errors.Is(err, context.Canceled) {
		b.Errorf("Open with a context that is over: %v, want context.Canceled", err)
		if err == nil {
			g.Close()
		}
	}
	left()
}
