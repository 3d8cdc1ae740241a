package wire

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func testCopy(t *testing.T, dsn string, w witness) {
	ctx := t.Context()
	c := connect(t, dsn, nil)
	rows := func(n, fail int) pgx.CopyFromSource {
		return pgx.CopyFromSlice(n, func(i int) ([]any, error) {
			if i == fail {
				return nil, errors.New("no more")
			}
			return []any{i, strings.Repeat("c", 1000)}, nil
		})
	}
	copyTo := func(table string, n, fail int) func() error {
		return func() error {
			_, err := c.CopyFrom(ctx, pgx.Identifier{table}, []string{"k", "v"}, rows(n, fail))
			return err
		}
	}
	for _, n := range []int{0, 1, 5000} {
		a, err := c.run(t, w, AfterCopy, copyTo("t", n, -1))
		if err != nil || a.Tag != "COPY" || a.Failed || a.TxStatus != 'I' {
			t.Errorf("%d rows: %v, %+v", n, err, a)
		}
	}
	if a, err := c.run(t, w, AfterCopy, copyTo("t", 100, 50)); err == nil || !a.Failed || a.TxStatus != 'I' {
		t.Errorf("given up by the client: %v, %+v", err, a)
	}

	// Refused by the server: whether the client's CopyDone comes before it
	// knows or after, nothing of an ask may be left over.
	if err := c.exec("create table picky (k int, v text check (length(v) < 10))")(); err != nil {
		t.Fatal(err)
	}
	for i, table := range []string{"nope", "picky", "picky", "picky"} {
		c.wire.Arm(AfterCopy)
		err := copyTo(table, 1+5000*(i%3), -1)()
		if a := c.wire.Take(); err == nil || !a.Failed || a.Tag != "" || a.Err != nil {
			t.Errorf("%s: %v, %+v", table, err, a)
		}
		var two int
		if err := c.QueryRow(ctx, "select 1 + $1", 1).Scan(&two); err != nil || two != 2 {
			t.Fatalf("after a refused COPY to %s: %d, %v", table, two, err)
		}
	}
	t.Run("out", func(t *testing.T) {
		var b strings.Builder
		c.wire.Arm(After)
		_, err := c.PgConn().CopyTo(ctx, &b, "copy (select generate_series(1, 3)) to stdout")
		if a := c.wire.Take(); err != nil || !a.OK || a.Tag != "COPY" || b.String() != "1\n2\n3\n" {
			t.Errorf("%v, %+v, %q", err, a, b.String())
		}
	})
	t.Run("with the wrong ask", func(t *testing.T) {
		c.wire.Arm(After)
		err := copyTo("t", 10, -1)()
		a := c.wire.Take()
		if err == nil || a.OK || !c.IsClosed() {
			t.Errorf("%v, %+v", err, a)
		}
		var n int
		if err := w.QueryRow(ctx, "select count(*) from t where k = 9 and v like 'c%'").Scan(&n); err != nil || n != 1 {
			t.Errorf("%d rows, %v", n, err)
		}
	})
}
