package tidegatetest_test

import (
	"context"
	"fmt"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/tidegatetest"
)

// Storage is what the application's code asks of its database. In production SQL
// stands behind it, in a test the cluster.
type Storage interface {
	Put(ctx context.Context, key, value string) error
	Get(ctx context.Context, class tidegate.Class, key string) (string, bool, error)
}

// Profiles is the code under test.
type Profiles struct{ db Storage }

func (p Profiles) Save(ctx context.Context, user, name string) error {
	return p.db.Put(ctx, "profile:"+user, name)
}

func (p Profiles) Show(ctx context.Context, user string) (string, error) {
	name, _, err := p.db.Get(ctx, tidegate.Causal, "profile:"+user)
	return name, err
}

// Whoever saves a profile sees it, however late the replicas are.
func Example() {
	t := newTB() // in a test: its own t
	defer t.done()

	db := tidegatetest.New(t, tidegatetest.Config{})
	profiles := Profiles{db}
	ctx := tidegate.WithSession(t.Context(), tidegate.NewSession())

	db.Replica(0).Hold()
	db.Replica(1).Hold()
	if err := profiles.Save(ctx, "ann", "Ann"); err != nil {
		t.Errorf("save: %v", err)
	}
	db.StaleUnlessRouted("profile:ann")

	ctx, seen := tidegate.Observe(ctx)
	name, err := profiles.Show(ctx, "ann")
	if err != nil || name != "Ann" {
		t.Errorf("the profile shows %q, %v", name, err)
	}
	tidegatetest.Routed(t, seen, tidegate.RolePrimary) // nobody else had it

	fmt.Println(name, len(t.errors))
	// Output: Ann 0
}

// Once the replicas have caught up they answer again.
func ExampleNode_Release() {
	t := newTB() // in a test: its own t
	defer t.done()

	db := tidegatetest.New(t, tidegatetest.Config{Replicas: 1})
	ctx := tidegate.WithSession(t.Context(), tidegate.NewSession())
	db.Replica(0).Hold()
	if err := db.Put(ctx, "k", "v"); err != nil {
		t.Errorf("put: %v", err)
	}
	db.Replica(0).Release()
	db.Probe()

	ctx, seen := tidegate.Observe(ctx)
	if v, _, err := db.Get(ctx, tidegate.Causal, "k"); err != nil || v != "v" {
		t.Errorf("%q, %v", v, err)
	}
	tidegatetest.Routed(t, seen, tidegate.RoleReplica)

	fmt.Println(len(t.errors))
	// Output: 0
}

// A job is queued with the token of the request that made it, so that it does not
// work on older data than the user saw.
func ExampleCovers() {
	t := newTB() // in a test: its own t
	defer t.done()

	db := tidegatetest.New(t, tidegatetest.Config{})
	request := tidegate.NewSession()
	if err := db.Put(tidegate.WithSession(t.Context(), request), "order:7", "paid"); err != nil {
		t.Errorf("put: %v", err)
	}
	queue := make(chan tidegate.Token, 1)
	queue <- request.Token() // the code under test: what the job is given

	token := <-queue
	tidegatetest.Covers(t, token, request)
	status, _, err := db.Get(tidegate.WithToken(t.Context(), token), tidegate.Causal, "order:7")
	fmt.Println(status, err, len(t.errors))

	// A queue that lost it would be noticed.
	tidegatetest.Covers(t, tidegate.Token{}, request)
	fmt.Println(len(t.errors))
	// Output:
	// paid <nil> 0
	// 1
}

// After a failover a session is told when its history cannot be judged any more.
func ExampleNode_Promote() {
	t := newTB() // in a test: its own t
	defer t.done()

	db := tidegatetest.New(t, tidegatetest.Config{})
	ctx := tidegate.WithSession(t.Context(), tidegate.NewSession())
	if err := db.Put(ctx, "k", "v"); err != nil {
		t.Errorf("put: %v", err)
	}
	db.Replica(0).Cut()
	if err := db.Put(ctx, "k", "w"); err != nil { // which will be lost
		t.Errorf("put: %v", err)
	}
	db.Replica(0).Promote()
	db.Probe()

	ctx, seen := tidegate.Observe(ctx)
	v, _, err := db.Get(ctx, tidegate.Causal, "k")
	d, _ := seen.Last()
	fmt.Println(v, err, d.Node == db.Primary().Name(), d.Reason, d.Verdict)
	// Output: v <nil> true history-changed lost
}
