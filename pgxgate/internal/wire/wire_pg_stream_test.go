package wire

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func testNotifications(t *testing.T, dsn string, w witness) {
	ctx := t.Context()
	var got []string
	c := connect(t, dsn, func(cfg *pgx.ConnConfig) {
		cfg.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) { got = append(got, n.Payload) }
	})
	if err := c.exec("listen ch")(); err != nil {
		t.Fatal(err)
	}
	const n = 200
	pad := strings.Repeat("n", 3000) // several to a read, and cut
	for i := range n {
		if i%2 == 0 {
			if _, err := w.Exec(ctx, "select pg_notify('ch', $1)", fmt.Sprintf("%d %s", i, pad)); err != nil {
				t.Fatal(err)
			}
			c.wire.Arm(After)
			if _, err := c.Exec(ctx, "insert into t values ($1, 'n')", i); err != nil {
				t.Fatal(err)
			}
		} else {
			c.wire.Arm(After)
			if _, err := c.Exec(ctx, "select pg_notify('ch', $1)", fmt.Sprintf("%d %s", i, pad)); err != nil {
				t.Fatal(err)
			}
		}
		if a := c.wire.Take(); !a.OK {
			t.Fatalf("%+v", a)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); len(got) < n && time.Now().Before(deadline); {
		c.exec("select 1")()
	}
	for i := range n {
		if i >= len(got) || got[i] != fmt.Sprintf("%d %s", i, pad) {
			t.Fatalf("of %d notifications, number %d is wrong or missing (%d came)", n, i, len(got))
		}
	}
}

func testLargeResult(t *testing.T, dsn string) {
	ctx := t.Context()
	c := connect(t, dsn, nil)
	for _, width := range []int{1000, 1 << 20} {
		const size = 50 << 20
		c.wire.Arm(After)
		rows, err := c.Query(ctx, "select i, repeat(chr(65 + i % 26), $1) from generate_series(1, $2) i", width, size/width)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for rows.Next() {
			var i int
			var v string
			if err := rows.Scan(&i, &v); err != nil {
				t.Fatal(err)
			}
			n++
			if i != n || len(v) != width || v[0] != v[width-1] || v[0] != byte(65+i%26) {
				t.Fatalf("row %d is wrong", i)
			}
		}
		a := c.wire.Take()
		if rows.Err() != nil || n != size/width || !a.OK || a.Tag != "SELECT" {
			t.Fatalf("%d rows, %v, %+v", n, rows.Err(), a)
		}
		if kept := cap(c.wire.spill) + cap(c.wire.body); kept > 16<<10 {
			t.Errorf("kept %d bytes of a result", kept)
		}
	}
}
