package pgxgate

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

var errBatchTx = errors.New("pgxgate: a batch that begins a transaction would keep its connection; use Tx and send the batch in it")

// batchResults ends its lease when it is closed.
type batchResults struct {
	pgx.BatchResults
	end     func(error)
	explain func(error) error
	first   error
	closed  bool
}

func (b *batchResults) note(err error) error {
	if err != nil && b.first == nil && !errors.Is(err, pgx.ErrNoRows) {
		b.first = err
	}
	return b.explain(err)
}

// Exec implements pgx.BatchResults.
func (b *batchResults) Exec() (pgconn.CommandTag, error) {
	tag, err := b.BatchResults.Exec()
	return tag, b.note(err)
}

// Query implements pgx.BatchResults.
func (b *batchResults) Query() (pgx.Rows, error) {
	rows, err := b.BatchResults.Query()
	return rows, b.note(err)
}

// QueryRow implements pgx.BatchResults.
func (b *batchResults) QueryRow() pgx.Row { return batchRow{b, b.BatchResults.QueryRow()} }

type batchRow struct {
	b   *batchResults
	row pgx.Row
}

// Scan implements pgx.Row.
func (r batchRow) Scan(dest ...any) error { return r.b.note(r.row.Scan(dest...)) }

// Close implements pgx.BatchResults.
func (b *batchResults) Close() error {
	err := b.note(b.BatchResults.Close())
	if !b.closed {
		b.closed = true
		b.end(b.first)
	}
	return err
}

// refuseBatchTx ends a batch that has begun a transaction.
func refuseBatchTx(br pgx.BatchResults, b *pgx.Batch, end func()) pgx.BatchResults {
	tx := br.Tx()
	_ = br.Close()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	_ = tx.Rollback(ctx)
	cancel()
	end()
	return pgx.FailedBatchResults(b, errBatchTx)
}
