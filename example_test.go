package tidegate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidegatedb/tidegate"
)

// Classes are declared once, beside the code that reads, and named after what
// the answer is for.
func Example_classes() {
	classes := []tidegate.Class{
		tidegate.Causal,
		tidegate.Strong("claim-held", "two workers must not both win", tidegate.Owner("jobs")),
		tidegate.NewCausal("profile", "people look at what they just saved", tidegate.Wait(50*time.Millisecond)),
		tidegate.Relaxed("dashboard", "rollups for humans", tidegate.Within(time.Minute)),
		tidegate.Relaxed("sitemap", "crawlers come back", tidegate.AnyStaleness()),
	}
	for _, c := range classes {
		fmt.Printf("%s: %s\n", c, c.Why())
	}
	// Output:
	// causal: sees the session's writes and what it saw before
	// claim-held (strong): two workers must not both win
	// profile (causal): people look at what they just saved
	// dashboard (relaxed): rollups for humans
	// sitemap (relaxed): crawlers come back
}

// A declaration that makes no sense and still compiles is an error of every
// read that uses it.
func ExampleClass_Err() {
	c := tidegate.Relaxed("dashboard", "rollups for humans", tidegate.Within(-time.Minute))
	fmt.Println(c.Err())
	// Output:
	// tidegate: unusable class: class "dashboard" has the budget -1m0s; use a positive duration or AnyStaleness()
}

// A client carries its token as text. What comes back is verified; a client
// whose token is refused goes on with a session that catches up.
func ExampleKeyring() {
	ring, err := tidegate.NewKeyring(tidegate.KeyringConfig{
		Keys:     []tidegate.Key{{ID: "2025-06", Secret: []byte("use 32 bytes of crypto/rand here")}},
		Lifetime: 2 * time.Hour,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	session := tidegate.NewSession()
	session.CatchUp("main")

	text := ring.Sign(session.Token())
	token, err := ring.Verify(text)
	fmt.Println(token.IsZero(), err)

	_, err = ring.Verify(strings.ToLower(text))
	fmt.Println(errors.Is(err, tidegate.ErrToken))
	// Output:
	// false <nil>
	// true
}

// Keys are replaced while they are used: add the new one last everywhere, move
// it to the front, drop the old one when a lifetime has passed.
func ExampleKeyring_SetKeys() {
	older := tidegate.Key{ID: "2025-06", Secret: []byte("use 32 bytes of crypto/rand here")}
	newer := tidegate.Key{ID: "2025-07", Secret: []byte("and 32 other bytes for a new key")}
	ring, err := tidegate.NewKeyring(tidegate.KeyringConfig{Keys: []tidegate.Key{older}})
	if err != nil {
		fmt.Println(err)
		return
	}
	text := ring.Sign(tidegate.Token{})
	for _, keys := range [][]tidegate.Key{{older, newer}, {newer, older}, {newer}} {
		if err := ring.SetKeys(keys...); err != nil {
			fmt.Println(err)
			return
		}
		_, err := ring.Verify(text)
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// <nil>
	// tidegate: token refused; go on with a new session that catches up (Session.CatchUp): signed with a key that is not in the key ring
}

// A session begins on one instance and goes on, by its token, on another one.
func ExampleSession() {
	// Instance 1: an old program, and not a Write handle, wrote to the database.
	first := tidegate.NewSession()
	ctx := tidegate.WithSession(context.Background(), first)
	tidegate.Wrote(ctx, "main")
	wire, err := first.Token().AppendBinary(nil)
	if err != nil {
		fmt.Println(err)
		return
	}

	// Instance 2: the same user's next request.
	token, err := tidegate.ParseBinary(wire)
	if err != nil {
		fmt.Println(err)
		return
	}
	second := tidegate.NewSession(token)
	for _, m := range second.Token().Marks() {
		fmt.Printf("cluster %s: must see all that was committed by now: %v\n", m.Cluster, m.CatchUp)
	}
	// Output:
	// cluster main: must see all that was committed by now: true
}

// Generated queries hide their rows; the context tells where they were read.
func ExampleObserve() {
	ctx, seen := tidegate.Observe(context.Background())

	// An adapter does this for every read of the context.
	tidegate.ObserverFrom(ctx).Add(tidegate.Decision{
		Cluster: "main", Node: "db-2", Role: tidegate.RoleReplica, Reason: tidegate.ReasonCovered,
		Required: tidegate.At(900), Observed: tidegate.At(912), Waited: 3 * time.Millisecond,
	})

	for _, d := range seen.All() {
		fmt.Println(d)
	}
	// Output:
	// causal read of main: replica db-2 (covered), required 900, had 912, waited 3ms
}
