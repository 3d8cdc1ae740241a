package pgxgate_test

import (
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

type tag = pgconn.CommandTag

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
