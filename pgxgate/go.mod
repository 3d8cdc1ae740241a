module github.com/tidegatedb/tidegate/pgxgate

go 1.25.0

require (
	github.com/jackc/pgx/v5 v5.13.0
	github.com/tidegatedb/tidegate v0.1.0
)
