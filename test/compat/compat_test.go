// Package compat runs code that other projects generate or publish for pgx
// through the routed handles.
package compat

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/georgysavva/scany/v2/pgxscan"
	"github.com/jackc/pgx/v5"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/pgcluster"
	"github.com/tidegatedb/tidegate/pgxgate"
	"github.com/tidegatedb/tidegate/test/compat/given"
	"github.com/tidegatedb/tidegate/test/compat/held"
)

// open returns a routed database whose first replica does not replay, and a
// session in a context.
func open(t *testing.T) (context.Context, *pgxgate.DB, *tidegate.Decisions) {
	t.Helper()
	c := pgcluster.ForTest(t, pgcluster.Config{Replicas: 2})
	schema, err := os.ReadFile("schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	sql := func(s *pgcluster.Server, text string) {
		t.Helper()
		if _, err := s.SQL(t.Context(), "postgres", text); err != nil {
			t.Fatal(err)
		}
	}
	sql(c.Primary(), string(schema)+"create role app login; grant all on authors to app")
	if err := c.Primary().WaitCaughtUp(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	sql(c.Replicas()[0], "select pg_wal_replay_pause()")
	var nodes []pgxgate.Node
	for _, s := range c.Servers() {
		nodes = append(nodes, pgxgate.Node{Name: s.Name, DSN: s.DSN("app", "postgres")})
	}
	db, err := pgxgate.Open(t.Context(), pgxgate.Config{Cluster: "main", Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	ctx, seen := tidegate.Observe(tidegate.WithSession(t.Context(), tidegate.NewSession()))
	return ctx, db, seen
}

func check(t *testing.T, seen *tidegate.Decisions) {
	t.Helper()
	replica := 0
	for _, d := range seen.All() {
		if d.Unproven {
			t.Errorf("unproven: %v", d)
		}
		if d.Role == tidegate.RoleReplica {
			replica++
		}
	}
	if replica == 0 {
		t.Error("no read was answered by a replica")
	}
	t.Logf("%d of %d reads on a replica", replica, len(seen.All()))
}

func TestSQLCHeld(t *testing.T) {
	ctx, db, seen := open(t)
	w, r := held.New(db.Write()), held.New(db.Read(tidegate.Causal))
	if _, err := w.CreateAuthor(ctx, held.CreateAuthorParams{ID: 1, Name: "a"}); err != nil {
		t.Fatal(err)
	}
	if a, err := r.GetAuthor(ctx, 1); err != nil || a.Name != "a" {
		t.Fatal(a, err)
	}
	if err := w.RenameAuthor(ctx, held.RenameAuthorParams{ID: 1, Name: "b"}); err != nil {
		t.Fatal(err)
	}
	if a, err := r.GetAuthor(ctx, 1); err != nil || a.Name != "b" {
		t.Fatal(a, err)
	}
	if n, err := w.CopyAuthors(ctx, []held.CopyAuthorsParams{{ID: 2, Name: "x"}, {ID: 3, Name: "y"}}); err != nil || n != 2 {
		t.Fatal(n, err)
	}
	if all, err := r.ListAuthors(ctx); err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	w.RenameAuthors(ctx, []held.RenameAuthorsParams{{ID: 2, Name: "xx"}, {ID: 3, Name: "yy"}}).Exec(func(i int, err error) {
		if err != nil {
			t.Error(i, err)
		}
	})
	r.GetAuthors(ctx, []int64{2, 3}).QueryRow(func(i int, a held.Author, err error) {
		if err != nil || a.Name != []string{"xx", "yy"}[i] {
			t.Error(i, a, err)
		}
	})
	if err := db.Write().Tx(ctx, func(tx pgx.Tx) error {
		n, err := w.WithTx(tx).DeleteAuthor(ctx, 3)
		if n != 1 {
			t.Errorf("deleted %d", n)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.GetAuthor(ctx, 3); !errors.Is(err, pgx.ErrNoRows) {
		t.Fatal(err)
	}
	if _, err := r.CreateAuthor(ctx, held.CreateAuthorParams{ID: 9, Name: "z"}); !errors.Is(err, tidegate.ErrReadOnly) {
		t.Errorf("a write through Read: %v", err)
	}
	check(t, seen)
}

func TestSQLCGiven(t *testing.T) {
	ctx, db, seen := open(t)
	q := given.New()
	if _, err := q.CreateAuthor(ctx, db.Write(), given.CreateAuthorParams{ID: 1, Name: "a"}); err != nil {
		t.Fatal(err)
	}
	if a, err := q.GetAuthor(ctx, db.Read(tidegate.Causal), 1); err != nil || a.Name != "a" {
		t.Fatal(a, err)
	}
	if n, err := q.CopyAuthors(ctx, db.Write(), []given.CopyAuthorsParams{{ID: 2, Name: "x"}}); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if err := db.Read(tidegate.Causal).Tx(ctx, func(tx pgx.Tx) error {
		all, err := q.ListAuthors(ctx, tx)
		if len(all) != 2 {
			t.Errorf("%v", all)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	check(t, seen)
}

func TestScany(t *testing.T) {
	ctx, db, seen := open(t)
	type author struct {
		ID   int64
		Name string
	}
	for i := range int64(20) {
		if _, err := db.Write().Exec(ctx, "insert into authors values ($1, 'n')", i); err != nil {
			t.Fatal(err)
		}
		var all []author
		if err := pgxscan.Select(ctx, db.Read(tidegate.Causal), &all, "select id, name from authors"); err != nil || len(all) != int(i)+1 {
			t.Fatal(all, err)
		}
		var one author
		if err := pgxscan.Get(ctx, db.Read(tidegate.Causal), &one, "select id, name from authors where id = $1", i); err != nil || one.ID != i {
			t.Fatal(one, err)
		}
	}
	var none author
	if err := pgxscan.Get(ctx, db.Read(tidegate.Causal), &none, "select id, name from authors where id = -1"); !pgxscan.NotFound(err) {
		t.Error(err)
	}
	check(t, seen)
}
