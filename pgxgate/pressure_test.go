package pgxgate_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidegatedb/tidegate/pgxgate"
)

// The limit of the reads that fall back is the most as long as nothing is known of the
// writes, so that it shows which of them are told of.
func TestWhichWritesTheLimitFollows(t *testing.T) {
	c := cluster(t)
	for name, x := range map[string]struct {
		write func(db *pgxgate.DB) error
		tells bool
	}{
		"exec": {func(db *pgxgate.DB) error {
			_, err := db.Write().Exec(t.Context(), "update kv set v = v where k = 1")
			return err
		}, true},
		"exec that fails": {func(db *pgxgate.DB) error {
			if _, err := db.Write().Exec(t.Context(), "update nothing set v = 1"); err == nil {
				t.Error("an update of no table succeeds")
			}
			return nil
		}, true},
		"query": {func(db *pgxgate.DB) error {
			var v int
			return db.Write().QueryRow(t.Context(), "update kv set v = v where k = 2 returning v").Scan(&v)
		}, true},
		"commit": {func(db *pgxgate.DB) error {
			return db.Write().Tx(t.Context(), func(tx pgx.Tx) error {
				if l := db.Status().FallbackLimit; l != 8 {
					t.Errorf("the limit is %v before the transaction ends", l)
				}
				_, err := tx.Exec(t.Context(), "update kv set v = v where k = 3")
				return err
			})
		}, true},
		"batch": {func(db *pgxgate.DB) error {
			var b pgx.Batch
			b.Queue("update kv set v = v where k = 4")
			return db.Write().SendBatch(t.Context(), &b).Close()
		}, false},
		"copy": {func(db *pgxgate.DB) error {
			_, err := db.Write().CopyFrom(t.Context(), pgx.Identifier{"kv"}, []string{"k", "v"}, pgx.CopyFromRows(nil))
			return err
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t, c, func(c *pgxgate.Config) { c.PrimaryReads, c.FallbackReads = 10, 8 })
			if l := db.Status().FallbackLimit; l != 8 {
				t.Fatalf("the limit is %v at first", l)
			}
			if err := x.write(db); err != nil {
				t.Fatal(err)
			}
			if l := db.Status().FallbackLimit; (l < 8) != x.tells {
				t.Errorf("the limit is %v", l)
			}
		})
	}
}
