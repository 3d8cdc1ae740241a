package pgcluster_test

import (
	"testing"

	"github.com/tidegatedb/tidegate/internal/pgcluster"
)

// TestLinks breaks one replication link and leaves the other one alone.
func TestLinks(t *testing.T) {
	c := pgcluster.ForTest(t, pgcluster.Config{Replicas: 2, Links: true})
	p, r1, r2 := c.Primary(), c.Replicas()[0], c.Replicas()[1]
	const streaming = "SELECT string_agg(application_name, ',' ORDER BY application_name) FROM pg_stat_replication WHERE state = 'streaming'"
	const rows = "SELECT coalesce(string_agg(t, ',' ORDER BY t), '') FROM tide"
	write := func(s *pgcluster.Server, row string) {
		t.Helper()
		query(t, s, "INSERT INTO tide VALUES ('"+row+"')")
	}
	shows := func(s *pgcluster.Server, want string) {
		t.Helper()
		if got := query(t, s, rows); got != want {
			t.Errorf("%s shows %q, want %q", s.Name, got, want)
		}
	}
	query(t, p, "CREATE TABLE tide (t text)")
	must(t, p.WaitCaughtUp(t.Context(), 2))

	// Stalled, it counts as streaming and gets nothing.
	r1.Link().Stall()
	write(p, "1")
	must(t, p.WaitCaughtUp(t.Context(), 1))
	if got := query(t, p, streaming); got != "replica1,replica2" {
		t.Errorf("%s stream while one link is stalled", got)
	}
	shows(r1, "")
	shows(r2, "1")
	r1.Link().Mend()
	must(t, p.WaitCaughtUp(t.Context(), 2))
	shows(r1, "1")

	// Cut, it goes, and comes back by itself.
	r1.Link().Cut()
	await(t, p, streaming, "replica2")
	write(p, "2")
	must(t, p.WaitCaughtUp(t.Context(), 1))
	shows(r1, "1")
	shows(r2, "1,2")
	r1.Link().Mend()
	must(t, p.WaitCaughtUp(t.Context(), 2))
	shows(r1, "1,2")

	// To a new upstream with the fault still in force; a restart keeps both.
	r2.Link().Cut()
	await(t, p, streaming, "replica1")
	must(t, r1.Promote(t.Context()))
	must(t, r2.Follow(r1))
	must(t, r2.Restart(t.Context()))
	write(r1, "3")
	shows(r2, "1,2")
	r2.Link().Mend()
	must(t, r1.WaitCaughtUp(t.Context(), 1))
	shows(r2, "1,2,3")
	if got := query(t, p, "SELECT count(*) FROM pg_stat_replication"); got != "0" {
		t.Errorf("%s standbys are still with the old primary", got)
	}
}

func TestNoLinks(t *testing.T) {
	c := pgcluster.ForTest(t, pgcluster.Config{Replicas: 1})
	for _, s := range c.Servers() {
		if s.Link() != nil {
			t.Errorf("%s has a link that nobody asked for", s.Name)
		}
	}
}
