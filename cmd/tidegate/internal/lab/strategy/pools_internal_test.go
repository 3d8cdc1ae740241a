package strategy

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidegatedb/tidegate/cmd/tidegate/internal/lab/record"
)

var errBroken = errors.New("the connection broke")

// breaking answers a query with some rows of version 7, and then breaks.
type breaking struct {
	pgx.Rows
	rows int64
	next int64
}

func (b *breaking) Query(context.Context, string, ...any) (pgx.Rows, error) { return b, nil }
func (b *breaking) Close()                                                  {}
func (b *breaking) Err() error                                              { return errBroken }
func (b *breaking) CommandTag() pgconn.CommandTag                           { return pgconn.CommandTag{} }

func (b *breaking) Next() bool {
	b.next++
	return b.next <= b.rows
}

func (b *breaking) Scan(dest ...any) error {
	*dest[0].(*int64), *dest[1].(*int64) = b.next, 7
	return nil
}

// What was delivered before a failure is known: it decides whether the read could
// have gone elsewhere.
func TestRowsBeforeAFailure(t *testing.T) {
	t.Parallel()
	for n := range int64(3) {
		rows, err := readRows(t.Context(), &breaking{rows: n}, nil)
		if !errors.Is(err, errBroken) || int64(len(rows)) != n {
			t.Errorf("%d rows before the failure: got %v, %v", n, rows, err)
		}
		if n == 2 && rows[1] != (record.Row{Key: 2, Version: 7}) {
			t.Errorf("got %v", rows)
		}
	}
}
