// Package tidegatetest is for an application's own tests: a cluster in memory
// whose replication lag the test controls, and a few assertions.
//
// A lag that is rare in production happens here when the test says so:
//
//	func TestProfileShowsWhatWasSaved(t *testing.T) {
//		db := tidegatetest.New(t, tidegatetest.Config{})
//		ctx := tidegate.WithSession(t.Context(), tidegate.NewSession())
//
//		db.Replica(0).Hold() // from here on it applies nothing
//		db.Replica(1).Hold()
//		if err := SaveProfile(ctx, db, "ann", "Ann"); err != nil {
//			t.Fatal(err)
//		}
//		db.StaleUnlessRouted("profile:ann") // without routing, this test could fail
//
//		if name, err := ShowProfile(ctx, db, "ann"); err != nil || name != "Ann" {
//			t.Errorf("the profile shows %q, %v", name, err)
//		}
//	}
//
// The cluster keeps strings under keys. It is not a database: there is no SQL, no
// transaction, and no isolation between keys. What is real is the routing: Put and
// Get go through the same core, sessions, tokens and decisions as in production,
// so code that chooses a wrong class, loses its session or drops a token fails
// here as it would there. Such code takes its storage as an interface with a Put
// and a Get. Code that needs SQL is tested on real servers.
//
// One [Cluster] is one instance of an application. What another instance would do
// with a token, a test does in a new session of that token.
//
// It works in the bubbles of testing/synctest, where waits take no time, and
// outside of them. Nothing is left running when the test has ended.
package tidegatetest
