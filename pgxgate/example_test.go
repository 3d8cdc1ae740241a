package pgxgate_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/pgxgate"
)

var (
	// A decision hangs on it: presence or absence, a permission, money.
	ClaimHeld = tidegate.Strong("claim-held", "two workers must not both win")
	// May be a minute old, and proves that it is not older.
	Dashboard = tidegate.Relaxed("dashboard", "rollups for humans", tidegate.Within(time.Minute))
)

func Example() {
	rename := func(ctx context.Context, id int64, name string) error {
		db, err := pgxgate.Open(ctx, pgxgate.Config{
			Cluster: "main",
			Nodes: []pgxgate.Node{ // in any order: roles are discovered
				{DSN: "host=db1 user=app dbname=shop"},
				{DSN: "host=db2 user=app dbname=shop"},
				{DSN: "host=db3 user=app dbname=shop"},
			},
		})
		if err != nil {
			return err
		}
		defer db.Close()

		// One session for each user or job: its history starts here, or goes on
		// from the token that the client brought along.
		session := tidegate.NewSession()
		ctx = tidegate.WithSession(ctx, session)

		// On the primary. The session now knows the position of the commit.
		if _, err = db.Write().Exec(ctx, "update profiles set name = $1 where id = $2", name, id); err != nil {
			return err
		}

		// On a replica that has the update, or on the primary: never stale.
		return db.Read(tidegate.Causal).QueryRow(ctx, "select name from profiles where id = $1", id).Scan(&name)
	}
	_ = rename
}

func ExampleReader_Tx() {
	report := func(ctx context.Context, db *pgxgate.DB) error {
		// Read-only, on one node, with one snapshot.
		return db.Read(Dashboard).Tx(ctx, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, "select day, total from sales")
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				// ...
			}
			return rows.Err()
		})
	}
	_ = report
}

func ExampleDB_Explain() {
	why := func(ctx context.Context, db *pgxgate.DB) {
		ctx, seen := tidegate.Observe(ctx)
		_, _ = db.Read(ClaimHeld).Exec(ctx, "select 1 from claims where id = 7")
		for _, d := range seen.All() {
			fmt.Println(d)
		}
		fmt.Print(db.Explain(ctx, tidegate.Causal))
	}
	_ = why
}

// A rollout in steps, changed while the process runs: first only count what
// replicas would have answered, then route a stable part of the sessions.
func ExampleDB_SetRollout() {
	db, err := pgxgate.Open(context.Background(), pgxgate.Config{
		Cluster: "main",
		Nodes:   []pgxgate.Node{{DSN: "host=db1 dbname=shop"}, {DSN: "host=db2 dbname=shop"}},
		Rollout: tidegate.RolloutShadow,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	s := db.Stats()
	if s.ShadowReplica*10 > s.Shadowed*9 { // nine of ten would have been on a replica
		db.SetRollout(tidegate.RolloutShare(0.05))
	}
}

// A process that starts with a migration reads from no replica that has not replayed it.
// Where another process migrates, it hands its token on as text, signed by the keyring.
func ExampleDB_SetFloor() {
	ctx := context.Background()
	db, err := pgxgate.Open(ctx, pgxgate.Config{
		Cluster: "main",
		Nodes:   []pgxgate.Node{{DSN: "host=db1 dbname=shop"}, {DSN: "host=db2 dbname=shop"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	migration := tidegate.NewSession()
	if _, err := db.Write().Exec(tidegate.WithSession(ctx, migration), "alter table items add column if not exists note text"); err != nil {
		log.Print(err)
		return
	}
	db.SetFloor(migration.Token())
}

// Every address of a name is a node; which one is the primary is found out by
// asking.
func ExampleDNS() {
	db, err := pgxgate.Open(context.Background(), pgxgate.Config{
		Cluster: "main",
		Discoverer: &pgxgate.DNS{
			DSN:  "host=replicas.db.example port=5432 dbname=shop sslmode=verify-full",
			More: []string{"primary.db.example"},
		},
		DiscoverInterval: 10 * time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
}
