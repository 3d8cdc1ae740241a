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

var held = tidegate.Strong("held", "shows the primary's newest state")

// TestWhatIsStillOpenCounts: rows count from when they are delivered. A read that
// is made while others of its session are open on the primary shows at least what
// they have shown, although their position is not known yet.
func TestWhatIsStillOpenCounts(t *testing.T) {
	c := cluster(t)
	db := open(t, c)
	for _, r := range c.Replicas() {
		pause(t, r)
	}
	strong, w := db.Read(held), db.Write()
	// Each holder reads the key on the primary and calls meanwhile before it ends.
	for name, hold := range map[string]func(ctx context.Context, k int64, meanwhile func(int64)) error{
		"rows of a read": func(ctx context.Context, k int64, meanwhile func(int64)) error {
			return each(ctx, strong.Query, k, meanwhile)
		},
		"rows of a write": func(ctx context.Context, k int64, meanwhile func(int64)) error {
			return each(ctx, w.Query, k, meanwhile)
		},
		"a read transaction": func(ctx context.Context, k int64, meanwhile func(int64)) error {
			return strong.Tx(ctx, func(tx pgx.Tx) error { return each(ctx, tx.Query, k, meanwhile) })
		},
		"a write transaction": func(ctx context.Context, k int64, meanwhile func(int64)) error {
			return w.Tx(ctx, func(tx pgx.Tx) error { return each(ctx, tx.Query, k, meanwhile) })
		},
		"a pinned connection": func(ctx context.Context, k int64, meanwhile func(int64)) error {
			conn, err := db.Acquire(ctx, held)
			if err != nil {
				return err
			}
			defer conn.Release()
			return each(ctx, conn.Conn().Query, k, meanwhile)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, seen := inSession(t)
			k := key(t)
			must[any](t)(db.Write().Exec(t.Context(), update, k, 5)) // another's
			err := hold(ctx, k, func(shown int64) {
				var v int64
				if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&v); err != nil || v < shown {
					d, _ := seen.Last()
					t.Errorf("%d was shown, then %d, error %v (%v)", shown, v, err, d)
				}
				if shown != 5 || sql(t, c.Replicas()[0], "select v from kv where k = "+itoa(k)) != "0" {
					t.Errorf("%d was shown: nothing could have gone wrong", shown)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// each reads a key and calls f while the rows are open.
func each(ctx context.Context, query func(context.Context, string, ...any) (pgx.Rows, error), k int64, f func(int64)) error {
	rows, err := query(ctx, get, k)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var v int64
		if err := rows.Scan(&v); err != nil {
			return err
		}
		f(v)
	}
	return rows.Err()
}

// TestOpenRowsOnACrowdedReplica: the same on a replica that the session leaves
// because its own open rows crowd it.
func TestOpenRowsOnACrowdedReplica(t *testing.T) {
	c := cluster(t)
	db := open(t, c, func(cfg *pgxgate.Config) {
		for i := range cfg.Nodes {
			cfg.Nodes[i].DSN += " pool_max_conns=20"
		}
	})
	k := key(t)
	// One replica stops in front of the write: sessions read it on the other one.
	pause(t, c.Replicas()[1])
	must[any](t)(db.Write().Exec(t.Context(), update, k, 5))
	eventually(t, "replay", func() bool { return sql(t, c.Replicas()[0], "select v from kv where k = "+itoa(k)) == "5" })
	elsewhere := 0
	for range 10 {
		ctx, seen := inSession(t)
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		shown := int64(0)
		var open []pgx.Rows
		for range 12 {
			rows := must[pgx.Rows](t)(db.Read(tidegate.Causal).Query(ctx, "select v, generate_series(1, 50000) from kv where k = $1", k))
			open = append(open, rows)
			var v, n int64
			if !rows.Next() || rows.Scan(&v, &n) != nil {
				t.Fatal(rows.Err())
			}
			d, _ := seen.Last()
			if v < shown {
				t.Fatalf("%d was shown, then %d (%v)", shown, v, d)
			}
			if d.Node != c.Replicas()[0].Name {
				elsewhere++
			}
			shown = max(shown, v)
		}
		for _, rows := range open {
			rows.Close()
		}
		cancel()
	}
	t.Logf("%d of 120 reads were not on the replica that has the row", elsewhere)
}

// TestTransactionsThatEndThemselves: the function of a transaction can end it
// itself, which the handle does not see; what it has shown counts all the same,
// and nobody waits for a process that lives on in a pool.
func TestTransactionsThatEndThemselves(t *testing.T) {
	c := cluster(t)
	db := open(t, c)
	for _, r := range c.Replicas() {
		pause(t, r)
	}
	look := func(ctx context.Context, tx pgx.Tx, k int64) (v int64) {
		if err := tx.QueryRow(ctx, get, k).Scan(&v); err != nil {
			t.Error(err)
		}
		return v
	}
	for name, end := range map[string]func(context.Context, pgx.Tx) error{"commit": func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) }, "rollback": func(ctx context.Context, tx pgx.Tx) error { return tx.Rollback(ctx) }} {
		for kind, run := range map[string]func(context.Context, func(pgx.Tx) error) error{"read": db.Read(held).Tx, "write": db.Write().Tx} {
			t.Run(kind+" "+name, func(t *testing.T) {
				ctx, seen := inSession(t)
				k := key(t)
				must[any](t)(db.Write().Exec(t.Context(), update, k, 5))
				shown := int64(0)
				err := run(ctx, func(tx pgx.Tx) error {
					shown = look(ctx, tx, k)
					return end(ctx, tx)
				})
				if !errors.Is(err, pgx.ErrTxClosed) || shown != 5 {
					t.Errorf("showed %d, error %v", shown, err)
				}
				for range 3 {
					var v int64
					if err := db.Read(tidegate.Causal).QueryRow(ctx, get, k).Scan(&v); err != nil || v < shown {
						t.Fatalf("%d was shown, then %d, error %v", shown, v, err)
					}
					if d, _ := seen.Last(); d.Unproven {
						t.Errorf("%v", d)
					}
				}
			})
		}
	}
}
