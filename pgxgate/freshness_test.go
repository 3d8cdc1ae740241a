package pgxgate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/pgxgate"
)

const (
	update = "update kv set v = $2 where k = $1"
	get    = "select v from kv where k = $1"
)

// TestReadYourWrites writes and reads at once while one replica does not replay:
// no read may miss, and most are answered by the other replica.
func TestReadYourWrites(t *testing.T) {
	c := cluster(t)
	db := open(t, c)
	pause(t, c.Replicas()[0])
	ctx, seen := inSession(t)
	k := key(t)
	const n = 500
	for i := range int64(n) {
		must[any](t)(db.Write().Exec(ctx, update, k, i+1))
		var v int64
		if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&v); err != nil || v != i+1 {
			t.Fatalf("read %d: got %d, error %v", i, v, err)
		}
	}
	// The opportunity to go wrong: the paused replica lacks all of it.
	if v := sql(t, c.Replicas()[0], "select v from kv where k = "+itoa(k)); v != "0" {
		t.Fatalf("the paused replica has %s", v)
	}
	replica := 0
	for _, d := range seen.All() {
		switch {
		case d.Node == c.Replicas()[0].Name:
			t.Fatalf("went to the paused replica: %v", d)
		case d.Reason == tidegate.ReasonNone || d.Unproven:
			t.Fatalf("no proof: %v", d)
		case d.Role == tidegate.RoleReplica:
			replica++
		}
	}
	t.Logf("%d of %d reads on the replica that replays; stats %+v", replica, n, db.Stats())
	if replica < n/2 {
		t.Errorf("only %d of %d reads were answered by the healthy replica", replica, n)
	}
}

// TestTokenCarriesTheSession writes in one instance and reads in another that
// has only the token.
func TestTokenCarriesTheSession(t *testing.T) {
	c := cluster(t)
	one, two := open(t, c), open(t, c)
	pause(t, c.Replicas()[0])
	k := key(t)
	ring := must[*tidegate.Keyring](t)(tidegate.NewKeyring(tidegate.KeyringConfig{Keys: []tidegate.Key{{ID: "a", Secret: make([]byte, 32)}}}))
	session := tidegate.NewSession()
	for i := range int64(100) {
		must[any](t)(one.Write().Exec(tidegate.WithSession(t.Context(), session), update, k, i+1))
		signed := ring.Sign(session.Token())
		token := must[tidegate.Token](t)(ring.Verify(signed))
		var v int64
		if err := two.Read(tidegate.Causal).QueryRow(tidegate.WithToken(t.Context(), token), get, k).Scan(&v); err != nil || v != i+1 {
			t.Fatalf("got %d, want %d, error %v", v, i+1, err)
		}
	}
}

// TestMonotonicReads lets a session read another's writes: what it has seen on
// one replica must not vanish on the next, whichever replays later.
func TestMonotonicReads(t *testing.T) {
	c := cluster(t)
	db := open(t, c)
	writer, _ := inSession(t)
	k := key(t)
	r := c.Replicas()
	for round := range int64(6) {
		lagging, other := r[round%2], r[(round+1)%2]
		resume := pause(t, lagging)
		must[any](t)(db.Write().Exec(writer, update, k, round+1))
		eventually(t, "the other replica to replay", func() bool { return sql(t, other, "select v from kv where k = "+itoa(k)) == itoa(round+1) })
		reader, seen := inSession(t)
		newest := int64(0)
		for range 30 {
			var v int64
			if err := db.Read(tidegate.Causal).QueryRow(reader, get, k).Scan(&v); err != nil {
				t.Fatal(err)
			}
			if v < newest {
				last, _ := seen.Last()
				t.Fatalf("went back from %d to %d: %v", newest, v, last)
			}
			newest = v
		}
		resume()
	}
}

func TestStrongGoesToThePrimary(t *testing.T) {
	c := cluster(t)
	db := open(t, c)
	ctx, seen := inSession(t)
	class := tidegate.Strong("test", "a decision")
	k := key(t)
	// A replica first, so that the primary has something to have shown.
	var v int64
	if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&v); err != nil {
		t.Fatal(err)
	}
	for i := range int64(50) {
		must[any](t)(db.Write().Exec(t.Context(), update, k, i+1)) // another's write
		if err := db.Read(class).QueryRow(ctx, get, k).Scan(&v); err != nil || v != i+1 {
			t.Fatalf("got %d, want %d, error %v", v, i+1, err)
		}
		d, _ := seen.Last()
		if d.Role != tidegate.RolePrimary || d.Reason != tidegate.ReasonStrong || d.Unproven {
			t.Fatalf("decision %v", d)
		}
		// What the primary showed must not vanish on a replica.
		if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&v); err != nil || v != i+1 {
			t.Fatalf("after a strong read: got %d, want %d, error %v", v, i+1, err)
		}
	}
}

func TestNoSessionGoesToThePrimaryAndIsCounted(t *testing.T) {
	db := open(t, cluster(t))
	ctx, seen := tidegate.Observe(t.Context())
	var v int64
	if err := db.Read(tidegate.Causal).QueryRow(ctx, get, 1).Scan(&v); err != nil {
		t.Fatal(err)
	}
	if d, _ := seen.Last(); d.Role != tidegate.RolePrimary || d.Reason != tidegate.ReasonNoSession {
		t.Errorf("decision %v", d)
	}
	must[any](t)(db.Write().Exec(t.Context(), update, key(t), 1))
	if s := db.Stats(); s.Sessionless != 1 || s.SessionlessWrites != 1 {
		t.Errorf("counted %+v", s)
	}
}

func TestRelaxedWithinItsBudget(t *testing.T) {
	c := cluster(t)
	db := open(t, c)
	ctx, seen := inSession(t)
	fresh := tidegate.Relaxed("fresh", "test", tidegate.Within(2*time.Second), tidegate.Wait(time.Second)) // on a busy machine, too
	var v int64
	if err := db.Read(fresh).QueryRow(ctx, get, 1).Scan(&v); err != nil {
		t.Fatal(err)
	}
	if d, _ := seen.Last(); d.Role != tidegate.RoleReplica || !d.StalenessKnown || d.Staleness > 2*time.Second {
		t.Errorf("decision %v", d)
	}
	// Both replicas stop, the primary moves on: their age grows beyond any budget
	// of a few milliseconds.
	for _, r := range c.Replicas() {
		pause(t, r)
	}
	k := key(t)
	must[any](t)(db.Write().Exec(t.Context(), update, k, 1))
	strict := tidegate.Relaxed("strict", "test", tidegate.Within(5*time.Millisecond), tidegate.Wait(20*time.Millisecond))
	eventually(t, "the replicas to be older than 5ms", func() bool {
		if err := db.Read(strict).QueryRow(ctx, get, k).Scan(&v); err != nil {
			t.Fatal(err)
		}
		d, _ := seen.Last()
		return d.Role == tidegate.RolePrimary
	})
	if v != 1 {
		t.Errorf("the primary showed %d", v)
	}
	if err := db.Read(tidegate.Relaxed("any", "test", tidegate.AnyStaleness())).QueryRow(ctx, get, k).Scan(&v); err != nil || v != 0 {
		t.Errorf("any staleness: got %d, error %v; a paused replica has 0", v, err)
	}
}

func TestWroteAnotherWay(t *testing.T) {
	c := cluster(t)
	db := open(t, c)
	pause(t, c.Replicas()[1])
	ctx, _ := inSession(t)
	pool := must[interface {
		Exec(context.Context, string, ...any) (tag, error)
	}](t)(db.Primary())
	k := key(t)
	for i := range int64(50) {
		must[any](t)(pool.Exec(ctx, update, k, i+1))
		tidegate.Wrote(ctx, "main")
		var v int64
		if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&v); err != nil || v != i+1 {
			t.Fatalf("got %d, want %d, error %v", v, i+1, err)
		}
	}
}

// TestAllReplicasBehind uses the primary after the wait, proven, and says so.
func TestAllReplicasBehind(t *testing.T) {
	c := cluster(t)
	db := open(t, c)
	for _, r := range c.Replicas() {
		pause(t, r)
	}
	ctx, seen := inSession(t)
	k := key(t)
	must[any](t)(db.Write().Exec(ctx, update, k, 7))
	var v int64
	if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&v); err != nil || v != 7 {
		t.Fatal(v, err)
	}
	if d, _ := seen.Last(); d.Role != tidegate.RolePrimary || d.Reason != tidegate.ReasonBehind || d.Unproven || d.Waited < 15*time.Millisecond {
		t.Errorf("decision %v", d)
	}
	class := tidegate.NewCausal("impatient", "test", tidegate.Wait(0))
	if err := db.Read(class).QueryRow(ctx, get, k).Scan(&v); err != nil || v != 7 {
		t.Fatal(v, err)
	}
}

// TestFallbackLimit lets one read be on the primary for want of a replica: the next one
// is sent away in time, and neither strong reads nor writes queue behind it.
func TestFallbackLimit(t *testing.T) {
	c := cluster(t)
	db := open(t, c, func(cfg *pgxgate.Config) {
		cfg.PrimaryReads, cfg.FallbackReads, cfg.FallbackWait, cfg.Wait = 2, 1, 30*time.Millisecond, -1
	})
	for _, r := range c.Replicas() {
		pause(t, r)
	}
	ctx, seen := inSession(t)
	k := key(t)
	must[any](t)(db.Write().Exec(ctx, update, k, 7))
	holder := must[*pgxgate.Conn](t)(db.Acquire(ctx, tidegate.Causal))
	var v int64
	read := func(class tidegate.Class) error { return db.Read(class).QueryRow(ctx, get, k).Scan(&v) }
	var over *tidegate.OverloadedError
	if err := read(tidegate.Causal); !errors.As(err, &over) || over.Queued < 30*time.Millisecond || over.RetryAfter < 30*time.Millisecond {
		t.Errorf("the second one: %v", err)
	}
	if d, _ := seen.Last(); d.Reason != tidegate.ReasonShed || d.Node != "" {
		t.Errorf("decision %v", d)
	}
	stale := tidegate.Relaxed("stale", "test", tidegate.Within(time.Nanosecond), tidegate.StaleWhenShed())
	if err := read(stale); err != nil || v != 0 {
		t.Errorf("got %d from a replica that is behind, error %v", v, err)
	}
	if d, _ := seen.Last(); !d.Stale || d.Role != tidegate.RoleReplica {
		t.Errorf("decision %v", d)
	}
	if err := read(tidegate.Strong("strong", "test")); err != nil || v != 7 {
		t.Errorf("a strong read: got %d, error %v", v, err)
	}
	if d, _ := seen.Last(); d.Queued != 0 || d.Role != tidegate.RolePrimary {
		t.Errorf("decision %v", d)
	}
	must[any](t)(db.Write().Exec(ctx, update, k, 8))
	holder.Release()
	if err := read(tidegate.Causal); err != nil || v != 8 {
		t.Errorf("when there is room again: got %d, error %v", v, err)
	}
	if st := db.Stats(); st.Shed != 2 || st.Stale != 1 || st.Queued != 2 {
		t.Errorf("%+v", st)
	}
}

// TestDeadlineWhileWaitingForAConnection: it is the caller's own, and no word on
// freshness.
func TestDeadlineWhileWaitingForAConnection(t *testing.T) {
	c := cluster(t)
	db := open(t, c, func(cfg *pgxgate.Config) { cfg.PrimaryReads = 1 })
	class := tidegate.Strong("strong", "test")
	holder := must[*pgxgate.Conn](t)(db.Acquire(t.Context(), class))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var v int64
	err := db.Read(class).QueryRow(ctx, get, key(t)).Scan(&v)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, tidegate.ErrNotFresh) {
		t.Errorf("%v", err)
	}
	holder.Release()
	if err := db.Read(class).QueryRow(t.Context(), get, key(t)).Scan(&v); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestOneNodeWithoutReplicas(t *testing.T) {
	c := cluster(t)
	db := open(t, c, func(cfg *pgxgate.Config) { cfg.Nodes = cfg.Nodes[:1] })
	ctx, seen := inSession(t)
	k := key(t)
	must[any](t)(db.Write().Exec(ctx, update, k, 3))
	var v int64
	if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&v); err != nil || v != 3 {
		t.Fatal(v, err)
	}
	if d, _ := seen.Last(); d.Reason != tidegate.ReasonNoReplica || d.Waited != 0 || d.Unproven {
		t.Errorf("decision %v: a laptop must not wait for replicas it does not have", d)
	}
}

func TestCancelReturnsAtOnce(t *testing.T) {
	c := cluster(t)
	db := open(t, c)
	for _, r := range c.Replicas() {
		pause(t, r)
	}
	ctx, _ := inSession(t)
	must[any](t)(db.Write().Exec(ctx, update, key(t), 1))
	patient := tidegate.NewCausal("patient", "test", tidegate.Wait(time.Minute))
	short, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		_, err := db.Read(patient).Exec(short, "select 1")
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	// A deadline shorter than the wait leaves time for the primary.
	soon, stop := context.WithTimeout(ctx, 3*time.Second)
	defer stop()
	if _, err := db.Read(patient).Exec(soon, "select 1"); err != nil {
		t.Errorf("error %v", err)
	}
}

func TestReadTransactionHasOneSnapshot(t *testing.T) {
	c := cluster(t)
	db := open(t, c)
	ctx, seen := inSession(t)
	k := key(t)
	must[any](t)(db.Write().Exec(ctx, update, k, 1))
	err := db.Read(tidegate.Causal).Tx(ctx, func(tx pgx.Tx) error {
		for range 3 {
			var v int64
			if err := tx.QueryRow(ctx, get, k).Scan(&v); err != nil || v != 1 {
				t.Fatalf("got %d, error %v", v, err)
			}
			must[any](t)(db.Write().Exec(t.Context(), update, k, 9))
			for _, r := range c.Replicas() {
				eventually(t, "replay", func() bool { return sql(t, r, "select v from kv where k = "+itoa(k)) == "9" })
			}
		}
		_, err := tx.Exec(ctx, update, k, 100)
		return err
	})
	if !errors.Is(err, tidegate.ErrReadOnly) {
		t.Errorf("a write in a read transaction: %v", err)
	}
	if d, _ := seen.Last(); d.Role != tidegate.RoleReplica {
		t.Errorf("decision %v", d)
	}
}

// TestPositionAheadOfThePrimary presents a token from what a restored backup has
// lost: a position that this history has never had.
func TestPositionAheadOfThePrimary(t *testing.T) {
	c := cluster(t)
	db := open(t, c)
	k := key(t)
	writer := tidegate.NewSession()
	must[any](t)(db.Write().Exec(tidegate.WithSession(t.Context(), writer), update, k, 1))
	mark := writer.Token().Marks()[0]
	mark.Position = tidegate.At(mark.Position.Number() + 1<<40)
	ctx, seen := tidegate.Observe(tidegate.WithToken(t.Context(), tidegate.NewToken(mark)))
	told := func() bool {
		d, ok := seen.Last()
		return ok && d.Reason == tidegate.ReasonHistoryChanged
	}
	var v int64
	for reads := 0; !told(); reads++ {
		if reads == 10 {
			t.Fatalf("after %d reads it still waits for what there is not: %v", reads, seen.All())
		}
		if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&v); err != nil || v != 1 {
			t.Fatalf("got %d, error %v", v, err)
		}
	}
	if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&v); err != nil || v != 1 {
		t.Fatalf("got %d, error %v", v, err)
	}
	if d, _ := seen.Last(); d.Role != tidegate.RoleReplica || d.Unproven {
		t.Errorf("once it is told it goes on as others do: %v", d)
	}
}
